"""The entry point: one command, and how it ends.

Exit codes: 0 all went well (also where the reader of a pipe went away), 1 something the user can mend, said in one
line, 130 interrupted. A traceback is a defect of covey's own, so only errors that are meant for people are caught.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from importlib import import_module
from typing import Final

from covey.cli.arguments import parse
from covey.cli.terminal import complain
from covey.errors import CoveyError

COMMANDS: Final = {
    "match": ("match", "run"),
    "explain": ("explain", "run"),
    "relate": ("relate", "run"),
    "compact": ("compact", "run"),
    "index build": ("index_files", "build"),
    "index stats": ("index_files", "stats"),
    "demo": ("demo", "run"),
    "spark match": ("spark_match", "run"),
    "spark stream": ("spark_stream", "run"),
    "spark profile": ("spark_profile", "run"),
    "spark compact": ("spark_compact", "run"),
    "lab list": ("lab", "show"),
    "lab run": ("lab", "run"),
    "lab report": ("lab", "report"),
    "broker": ("broker_server", "run"),
    "pub": ("pub", "run"),
    "sub": ("sub", "run"),
    "advertise": ("advertise", "run"),
    "status": ("broker_status", "status"),
    "routes": ("broker_status", "routes"),
    "trace": ("broker_status", "trace"),
    "load subscriptions": ("load", "subscriptions"),
    "load profile": ("load", "profile"),
    "load list": ("load", "show"),
    "load drop": ("load", "drop"),
    "token": ("broker_tokens", "run"),
}
"""The module in this room and the function in it; imported when it is asked for."""

INTERRUPTED: Final = 130


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; the result is the exit code."""
    try:
        options = parse(arguments)
        module, function = COMMANDS[options.command]
        code: int = getattr(import_module(f"covey.cli.{module}"), function)(options)
        sys.stdout.flush()
        return code
    except BrokenPipeError:
        _forget_output()
        return 0
    except KeyboardInterrupt as interrupt:
        complain(str(interrupt) or "interrupted")
        return INTERRUPTED
    except OSError as error:
        complain(f"{error.filename}: {error.strerror}" if error.filename and error.strerror else str(error))
        return 1
    except CoveyError as error:
        complain(str(error))
        return 1


def _forget_output() -> None:
    """Nobody reads standard output any more: what is still buffered goes nowhere instead of failing at exit."""
    if sys.stdout is sys.__stdout__ and sys.__stdout__ is not None:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.__stdout__.fileno())
