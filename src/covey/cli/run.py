"""The entry point: one command, and how it ends.

Exit codes: 0 all went well (also where the reader of a pipe went away), 1 something the user can mend, said in one
line, 130 interrupted. A traceback is a defect of covey's own, so only errors that are meant for people are caught.
"""

from __future__ import annotations

import atexit
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
    "check": ("check", "run"),
    "schema": ("schemas", "run"),
    "report": ("report", "run"),
    "compact": ("compact", "run"),
    "index build": ("index_files", "build"),
    "index stats": ("index_files", "stats"),
    "demo": ("demo", "run"),
    "doctor": ("doctor", "run"),
    "spark match": ("spark.match", "run"),
    "spark stream": ("spark.stream", "run"),
    "spark profile": ("spark.profile", "run"),
    "spark compact": ("spark.compact", "run"),
    "lab list": ("lab", "show"),
    "lab run": ("lab", "run"),
    "lab report": ("lab", "report"),
    "broker": ("broker.server", "run"),
    "pub": ("broker.pub", "run"),
    "sub": ("broker.sub", "run"),
    "advertise": ("broker.advertise", "run"),
    "status": ("broker.status", "status"),
    "routes": ("broker.status", "routes"),
    "hits": ("broker.hits", "run"),
    "trace": ("broker.status", "trace"),
    "load subscriptions": ("broker.load", "subscriptions"),
    "load profile": ("broker.load", "profile"),
    "load list": ("broker.load", "show"),
    "load drop": ("broker.load", "drop"),
    "peer list": ("broker.peers", "show"),
    "peer add": ("broker.peers", "add"),
    "peer remove": ("broker.peers", "remove"),
    "token": ("broker.tokens", "run"),
}
"""The module in this room and the function in it; imported when it is asked for."""

INTERRUPTED: Final = 130

_PLAIN_ERRORS: Final = "NUMBA_DISABLE_ERROR_MESSAGE_HIGHLIGHTING"
"""Numba makes words in its errors bold by exchanging `sys.stdout` and `sys.stderr` for a moment, where colorama is
installed; it makes such errors while it compiles, in whatever thread, and drops most of them. Plain ones will do."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; the result is the exit code."""
    os.environ.setdefault(_PLAIN_ERRORS, "1")
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
        atexit.register(_let_go, sys.__stdout__.fileno())


def _let_go(stream: int) -> None:
    """Only at exit, when all other threads have ended: until then the stream is theirs too."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), stream)
