"""The session that `covey spark …` runs on, quiet but for progress, and Spark's errors in one line each.

A JVM writes to the standard error that it was started with. Here that is not the user's (`covey.spark.gateway`) but a
file that the user named, or one that goes when the command ends. What a user must know of it comes back as an
exception, from which one line is made here.

A session that runs already (covey's commands may be called from Python) is used as it is, and is not ended.
"""

from __future__ import annotations

import importlib.util
import logging
import os
import re
import signal
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import IO, TYPE_CHECKING, Any, Final

from covey.cli.arguments import UsageError
from covey.cli.spark.arguments import SessionOptions
from covey.cli.terminal import progress, watched
from covey.errors import CoveyError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

NO_SPARK: Final = "PySpark is not installed; run: pip install 'covey[spark]'"
_LOG_LEVEL: Final = "ERROR"
_LOOK: Final = 0.25
"""Seconds between two looks at how far Spark's jobs are."""

_SQLSTATE = re.compile(r"\s*SQLSTATE: \w+")
_CONDITION = re.compile(r"\[[A-Z_]+(?:\.[A-Z_0-9]+)*\] .*")
_PYTHON_ERROR = re.compile(r"^(?:\w+\.)*\w*(?:Error|Exception): .*", re.MULTILINE)
_CAUSE = re.compile(r"^Caused by: [\w.$]+: (.*)$", re.MULTILINE)
_NO_MORE = ("at ", "Traceback", "Caused by", "=== Streaming Query")
"""What follows a Python error's own message."""
_SHOWN = 400
"""The most characters of what Spark says."""


def spark_is_installed() -> bool:
    """Whether PySpark can be imported."""
    return importlib.util.find_spec("pyspark") is not None


@contextmanager
def session(options: SessionOptions) -> Iterator[SparkSession]:
    """The session that the user asked for. Errors of Spark in the block are one line each."""
    if not spark_is_installed():
        raise CoveyError(NO_SPARK)
    from pyspark.sql import SparkSession

    running = SparkSession.getActiveSession()
    with spark_errors():
        if running is not None and options.master is None and options.remote is None:
            yield running
            return
        with _log(options.spark_log) as log, _quiet_interrupts() as plain:
            spark = _started(options, log)
            plain()
            try:
                yield spark
            finally:
                spark.stop()


@contextmanager
def _quiet_interrupts() -> Iterator[Callable[[], None]]:
    """Ctrl-C is a KeyboardInterrupt and no more. A session sets a handler of its own, which cancels all jobs over the
    connection that is in use just then, fails, and logs that; jobs end with the session anyway. What is yielded is to
    be called when the session has done so."""
    if threading.current_thread() is not threading.main_thread():
        yield lambda: None
        return
    handler, disabled = signal.getsignal(signal.SIGINT), logging.root.manager.disable

    def plain() -> None:
        signal.signal(signal.SIGINT, signal.default_int_handler)

    logging.disable(logging.ERROR)
    try:
        yield plain
    finally:
        signal.signal(signal.SIGINT, handler)
        logging.disable(disabled)


def _started(options: SessionOptions, log: IO[bytes]) -> SparkSession:
    with progress("starting Spark", shown=watched()):
        try:
            return _connected(options) if options.remote else _classic(options, log)
        except ImportError as error:
            extra = "pyspark[connect]" if options.remote else "covey[spark]"
            raise CoveyError(f"{_short(str(error))}; run: pip install '{extra}'") from None
        except CoveyError:
            raise
        except Exception as error:
            raise CoveyError(f"Spark didn't start: {spark_line(error)}{_last_line(log)}") from None


def _classic(options: SessionOptions, log: IO[bytes]) -> SparkSession:
    from pyspark.sql import SparkSession

    from covey.spark import local_session
    from covey.spark.gateway import start_java
    from covey.spark.session import find_java

    settings: dict[str, Any] = {"spark.log.level": _LOG_LEVEL, **dict(options.conf)}
    if options.master is None:
        return local_session("covey", options.cores, log=log, **settings)
    os.environ["JAVA_HOME"] = find_java()
    settings = {"spark.app.name": "covey", "spark.master": options.master} | settings
    builder = SparkSession.builder
    for name, value in settings.items():
        builder = builder.config(name, value)
    start_java(settings, log)
    return builder.getOrCreate()


def _connected(options: SessionOptions) -> SparkSession:
    from pyspark.sql import SparkSession

    if "://" not in str(options.remote):
        raise UsageError(f"--remote {options.remote} is not an address such as sc://host:15002")
    builder = SparkSession.builder.appName("covey").remote(options.remote)
    for name, value in options.conf:
        builder = builder.config(name, value)
    return builder.getOrCreate()


@contextmanager
def _log(path: str | None) -> Iterator[IO[bytes]]:
    with open(path, "ab") if path is not None else tempfile.TemporaryFile() as log:
        yield log


def _last_line(log: IO[bytes]) -> str:
    if not log.readable():
        return f" ({log.name} has more)"
    log.seek(0)
    lines = [line.strip() for line in log.read().decode(errors="replace").splitlines()]
    said = [line for line in lines if line and not line.startswith(("at ", "..."))]
    return f" ({said[-1][:_SHOWN]})" if said else ""


def is_local(spark: SparkSession) -> bool:
    """Whether Spark runs on this machine and sees the paths that the user sees."""
    master = str(spark.conf.get("spark.master", ""))
    return master == "local" or master.startswith("local[")


def cores(spark: SparkSession) -> int | None:
    """The cores of a local session; of others nobody knows."""
    master = str(spark.conf.get("spark.master", ""))
    found = re.fullmatch(r"local(?:\[(\d+|\*)(?:,\d+)?\])?", master)
    if found is None:
        return None
    return (os.cpu_count() or 1) if found[1] == "*" else int(found[1] or 1)


@contextmanager
def job_progress(spark: SparkSession, title: str) -> Iterator[None]:
    """How many tasks of the running jobs are done, where someone watches."""
    tracker = getattr(getattr(spark, "_sc", None), "statusTracker", None)
    if not watched() or tracker is None:
        yield
        return
    status, done = tracker(), threading.Event()
    with progress(title, shown=True) as step:

        def look() -> None:
            while not done.wait(_LOOK):
                stages = [status.getStageInfo(stage) for stage in status.getActiveStageIds()]
                known = [stage for stage in stages if stage is not None]
                finished = sum(stage.numCompletedTasks for stage in known)
                step(finished, finished, sum(stage.numTasks for stage in known) or None)

        watcher = threading.Thread(target=look, daemon=True)
        watcher.start()
        try:
            yield
        finally:
            done.set()
            watcher.join()


@contextmanager
def spark_errors() -> Iterator[None]:
    """Spark's errors as one line for the user."""
    try:
        yield
    except (CoveyError, OSError):
        raise
    except Exception as error:
        if not type(error).__module__.startswith(("pyspark", "py4j", "grpc")):
            raise
        if _interrupted(error):
            raise KeyboardInterrupt from None
        raise CoveyError(spark_line(error)) from error


def _interrupted(error: BaseException) -> bool:
    """Whether an error came of Ctrl-C: Spark's own cleaning up may fail and hide it."""
    inner: BaseException | None = error
    while inner is not None and not isinstance(inner, KeyboardInterrupt):
        inner = inner.__context__
    return inner is not None


def spark_line(error: BaseException) -> str:
    """What an error of Spark's says, without its stack: an error in a worker by its Python name, others by what Spark
    calls them, with the innermost cause."""
    text = str(error)
    raised = list(_PYTHON_ERROR.finditer(text)) if "Traceback" in text else []
    if raised:
        return _short(_paragraph(text[raised[-1].start() :]))
    condition = _CONDITION.search(text)
    line = condition[0] if condition is not None else text.splitlines()[0] if text else type(error).__name__
    causes = [cause for cause in _CAUSE.findall(text) if cause not in line]
    return _short(line + (f" ({causes[-1]})" if causes else ""))


def _paragraph(text: str) -> str:
    """The lines of a Python error's message, which may be several, without its module and what Java adds."""
    lines: list[str] = []
    for line in text.splitlines():
        if not line.strip() or line.lstrip().startswith(_NO_MORE):
            break
        lines.append(line.strip())
    kind, _, message = " ".join(lines).partition(": ")
    return message if kind.startswith("covey.") else f"{kind.rpartition('.')[2]}: {message}"


def _short(text: str) -> str:
    line = " ".join(_SQLSTATE.sub("", text).split())
    return line if len(line) <= _SHOWN else line[: _SHOWN - 1] + "…"
