"""The arguments of `covey lab …`, and for each command a class of what it is given."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import Any, Final

from covey.cli.spark.arguments import SessionOptions, add_session

WORK: Final = ".covey-lab"
REPORT: Final = "lab-report"


class LabListOptions:
    """Of `covey lab list`."""

    json: bool


class LabReportOptions:
    """Of `covey lab report`."""

    scale: float
    seed: int
    work: str
    report: str


class LabRunOptions(LabReportOptions, SessionOptions):
    """Of `covey lab run`."""

    names: list[str]
    fresh: bool


def add(commands: Any, positive: Callable[[str], int]) -> None:
    """Add `lab` and its actions."""
    parser: argparse.ArgumentParser = commands.add_parser(
        "lab",
        help="run the papers' experiments again",
        description="The tables and figures of the papers that covey is built on, run again as Spark jobs.",
    )
    actions = parser.add_subparsers(dest="action", required=True, metavar="ACTION", parser_class=type(parser))
    listing = actions.add_parser("list", help="all experiments, by name")
    listing.add_argument("--json", action="store_true", help="print them as JSON, with what the papers find")
    run = actions.add_parser(
        "run",
        help="run experiments and write the report",
        description="Run experiments and write the report. What is finished is kept in the work directory: a run that "
        "was interrupted goes on where it was.",
    )
    run.add_argument("names", nargs="*", metavar="NAME", help="experiments or papers, as covey lab list has them; all")
    _kept(run)
    run.add_argument("--fresh", action="store_true", help="measure again what is kept already")
    add_session(run, positive)
    page = actions.add_parser(
        "report",
        help="write the report of what was run before",
        description="Write the report of the outcomes that the work directory has, without running anything.",
    )
    _kept(page)


def _kept(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--scale", type=_scale, default=1.0, metavar="X", help="of the papers' full size (%(default)s)")
    parser.add_argument("--seed", type=_seed, default=1, metavar="N", help="of everything random (%(default)s)")
    parser.add_argument("--work", default=WORK, metavar="DIR", help="where finished points are kept (%(default)s)")
    parser.add_argument("--report", default=REPORT, metavar="DIR", help="where the page goes (%(default)s)")


def _seed(text: str) -> int:
    if not text.isdecimal() or int(text) >= 2**32:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number from 0 to {2**32 - 1}")
    return int(text)


def _scale(text: str) -> float:
    try:
        scale = float(text)
    except ValueError:
        scale = 0.0
    if not 0 < scale <= 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a share above 0 and up to 1")
    return scale
