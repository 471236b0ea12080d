"""docs/cli.md, made from the command line's own parser."""

from __future__ import annotations

import argparse
import inspect
from collections.abc import Iterator
from typing import Final

from covey.cli.arguments import parser
from tools.docs import ROOT

PAGE: Final = ROOT / "docs" / "cli.md"
_HEAD: Final = """\
# The command line

Made by `make docs` from what `covey COMMAND --help` says. Exit codes: 0 all went well, 1 something to mend, said in
one line, 130 interrupted. Files are JSON lines, CSV or Parquet by their names, `.gz` too, and `-` is standard input.
Events and results go to standard output, all else to standard error.
"""


def page() -> str:
    """The page's text."""
    return "\n".join([_HEAD, *_commands(parser(), level=2)])


def _commands(of: argparse.ArgumentParser, level: int) -> Iterator[str]:
    for action in of._actions:
        if not isinstance(action, argparse._SubParsersAction):
            continue
        summaries = {choice.dest: choice.help or "" for choice in action._choices_actions}
        for name, command in action.choices.items():
            yield f"{'#' * level} {command.prog}\n"
            yield _sentence(command.description or summaries.get(name, ""))
            yield from _table(command)
            yield from _commands(command, level + 1)


def _table(command: argparse.ArgumentParser) -> Iterator[str]:
    rows = [row for action in command._actions if (row := _row(action, command.prog)) is not None]
    if rows:
        yield "\n".join(["| argument | |", "|---|---|", *rows, ""])


def _row(action: argparse.Action, program: str) -> str | None:
    if isinstance(action, argparse._HelpAction | argparse._SubParsersAction):
        return None
    values = {**vars(action), "prog": program}
    help = _cell((action.help or "") % values if action.help else "")
    if action.option_strings:
        value = "" if action.nargs == 0 else f" {_value(action)}"
        return f"| `{', '.join(action.option_strings)}{value}` | {help} |"
    many = {"*": "...", "?": "?"}.get(str(action.nargs), "")
    return f"| `{action.metavar or action.dest}{many}` | {help} |"


def _value(action: argparse.Action) -> str:
    if action.metavar is not None:
        return str(action.metavar)
    if action.choices is not None:
        return "{" + ",".join(map(str, action.choices)) + "}"
    return action.dest.upper()


def _sentence(text: str) -> str:
    text = inspect.cleandoc(text)
    return f"{_escaped(text[:1].upper() + text[1:])}{'' if text.endswith('.') else '.'}\n"


def _cell(text: str) -> str:
    return _escaped(text).replace("|", "\\|")


def _escaped(text: str) -> str:
    """Help is plain text: what Markdown would read as its own is put between backquotes or escaped."""
    return text.replace("<", "&lt;").replace("*", "\\*").replace("[", "\\[").replace("_", "\\_")
