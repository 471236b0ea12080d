"""How `covey spark …` gets a session, and how Spark's errors become one line."""

from __future__ import annotations

import os
import sys
import tempfile
from argparse import Namespace
from collections.abc import Callable
from pathlib import Path
from typing import IO

import pytest
from pyspark import SparkContext
from pyspark.errors import AnalysisException
from pyspark.sql import SparkSession

from covey.cli.arguments import parse
from covey.cli.spark import session as spark_session
from covey.cli.spark.session import cores, is_local, spark_errors, spark_line
from covey.errors import CoveyError
from tests.cli.conftest import Outcome

Run = Callable[..., Outcome]


BROKEN_JAVA = """#!/bin/sh
case "$*" in
    -version) echo 'openjdk version "21.0.1"' >&2 ;;
    *launcher.Main*) printf '\\0\\n%s\\0' "$0" ;; # the command that Spark's script is to run
    *) printf 'Error: Could not create the Java Virtual Machine.\\n    at java\\n' >&2; exit 1 ;;
esac
"""


class Session:
    """As much of a session as is asked for its settings."""

    def __init__(self, master: str) -> None:
        self.conf = Namespace(get=lambda name, other: {"spark.master": master}.get(name, other))
        self.stopped = False

    def stop(self) -> None:
        self.stopped = True


@pytest.fixture
def no_session(monkeypatch: pytest.MonkeyPatch) -> None:
    """As in a process that has none yet."""
    monkeypatch.setattr(SparkSession, "getActiveSession", classmethod(lambda cls: None))
    for name in ("JAVA_HOME", "PYSPARK_PYTHON", "PYSPARK_DRIVER_PYTHON", "SPARK_LOCAL_IP"):
        monkeypatch.setenv(name, os.environ.get(name, ""))  # so that it is put back


@pytest.mark.parametrize("action", ["match", "stream", "profile"])
def test_without_pyspark_every_command_says_what_to_install(
    covey: Run, subscriptions: Path, events: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, action: str
) -> None:
    monkeypatch.setattr(spark_session, "spark_is_installed", lambda: False)
    more = ["--checkpoint", tmp_path / "c"] if action == "stream" else []
    done = covey("spark", action, subscriptions, events, "-o", tmp_path / "out", *more)
    assert (done.code, done.out) == (1, "")
    assert done.err == "covey: PySpark is not installed; run: pip install 'covey[spark]'\n"


@pytest.mark.usefixtures("no_session")
def test_without_java_the_error_explains_it(
    covey: Run, subscriptions: Path, events: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("covey.spark.session._homes", list)
    monkeypatch.setattr("covey.spark.session._bundled", lambda: None)
    done = covey("spark", "match", subscriptions, events, "-o", tmp_path / "out")
    assert (done.code, done.out, done.err.count("\n")) == (1, "", 1)
    assert "Spark needs Java 17 or newer and none was found: install a JDK" in done.err


@pytest.mark.usefixtures("no_session")
def test_a_session_that_does_not_start_says_why(
    covey: Run, subscriptions: Path, events: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    java = tmp_path / "java" / "bin" / "java"
    java.parent.mkdir(parents=True)
    java.write_text(BROKEN_JAVA)
    java.chmod(0o755)
    monkeypatch.setenv("JAVA_HOME", str(java.parent.parent))
    for name in ("_gateway", "_active_spark_context"):
        monkeypatch.setattr(SparkContext, name, None)
    done = covey("spark", "match", subscriptions, events, "-o", tmp_path / "out")
    assert (done.code, done.out) == (1, "")
    assert done.err == (
        "covey: Spark didn't start: [JAVA_GATEWAY_EXITED] Java gateway process exited before sending its port number. "
        "(Error: Could not create the Java Virtual Machine.)\n"
    )


@pytest.mark.usefixtures("no_session")
def test_what_a_new_session_says_goes_to_the_log_and_it_is_ended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    started = Session("local[3,2]")

    streams, device = (sys.stdout, sys.stderr), os.fstat(2)

    def start(app: str, number: int | None, *, log: IO[bytes], **settings: str) -> Session:
        log.write(b"noise of the JVM\n")
        # Another thread may take hold of them just now, and use them when the session has long been started.
        assert (sys.stdout, sys.stderr) == streams
        assert os.path.samestat(os.fstat(2), device)
        assert (app, number, settings["spark.driver.memory"]) == ("covey", 3, "1g")
        return started

    monkeypatch.setattr("covey.spark.local_session", start)
    log = tmp_path / "spark.log"
    arguments = ["s", "e", "-o", "o", "--cores", "3", "--conf", "spark.driver.memory=1g", "--spark-log", str(log)]
    with spark_session.session(parse(["spark", "match", *arguments])) as spark:
        assert spark is started
        assert not started.stopped
        print("for the user", file=sys.stderr)
    assert started.stopped
    assert log.read_text() == "noise of the JVM\n"
    assert capfd.readouterr().err == "for the user\n"
    # Without a log of the user's, there is none afterwards.
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    with spark_session.session(parse(["spark", "match", *arguments[:-2]])):
        pass
    assert [path.name for path in tmp_path.iterdir()] == ["spark.log"]
    assert capfd.readouterr().err == ""


@pytest.mark.parametrize(
    ("master", "count"),
    [("local", 1), ("local[3]", 3), ("local[4,2]", 4), ("local[*,2]", os.cpu_count()), ("spark://host:7077", None)],
)
def test_the_cores_of_a_local_session_are_known(master: str, count: int | None) -> None:
    session: SparkSession = Session(master)
    assert cores(session) == count
    assert is_local(session) == (count is not None)


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("[PATH_NOT_FOUND] There is no file:/x. SQLSTATE: 42K03", "[PATH_NOT_FOUND] There is no file:/x."),
        (
            "An error occurred while calling o68.parquet.\n: org.apache.spark.SparkException: [TASK_WRITE_FAILED] Task "
            "failed. SQLSTATE: 58030\n\tat org.apache.x(X.scala:1)\n"
            "Caused by: java.io.IOException: No space left on device\n\t... 3 more",
            "[TASK_WRITE_FAILED] Task failed. (No space left on device)",
        ),
        (
            "An exception was thrown:\nTraceback (most recent call last):\n  File \"w.py\", line 1, in x\n    y()\n"
            "covey.errors.EventError: row 3: 'cheap' is a string;\nexpected double\n\n\tat org.apache.x(X.scala:1)",
            "row 3: 'cheap' is a string; expected double",
        ),
        ("Traceback (most recent call last):\n  File \"w\"\nKeyError: 1\nValueError: bad\n\tat x", "ValueError: bad"),
        ("plain words\nand more", "plain words"),
        ("", "SparkError"),
        ("x" * 1000, "x" * 399 + "…"),
    ],
)  # fmt: skip
def test_an_error_of_sparks_is_one_line(text: str, line: str) -> None:
    class SparkError(Exception):
        pass

    assert spark_line(SparkError(text)) == line


def test_only_errors_of_sparks_are_taken_for_the_users() -> None:
    with pytest.raises(CoveyError, match=r"^what it says$"), spark_errors():
        raise AnalysisException("what it says")
    for error in (KeyboardInterrupt("stop"), ZeroDivisionError("a defect"), FileNotFoundError("a file")):
        with pytest.raises(type(error), match=str(error)), spark_errors():
            raise error


def test_an_interrupt_is_one_even_if_spark_fails_over_it() -> None:
    error = AnalysisException("broken pipe")
    error.__context__ = KeyboardInterrupt()
    with pytest.raises(KeyboardInterrupt), spark_errors():
        raise error
