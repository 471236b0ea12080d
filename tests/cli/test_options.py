"""The options that a command's function takes are those that its arguments give."""

from __future__ import annotations

import argparse
import inspect
from importlib import import_module
from typing import Any

import pytest

from covey.cli import arguments
from covey.cli.run import COMMANDS


def parser_of(command: str) -> argparse.ArgumentParser:
    """The arguments of one command, such as `index build`."""
    found = arguments.parser()
    for word in command.split():
        (choices,) = (action for action in found._actions if isinstance(action, argparse._SubParsersAction))
        found = choices.choices[word]
    return found


def options_of(command: str) -> set[str]:
    """The names in the class that the command's function takes."""
    module, function = COMMANDS[command]
    run = getattr(import_module(f"covey.cli.{module}"), function)
    (parameter,) = inspect.signature(run).parameters.values()
    kind: type[Any] = run.__globals__[parameter.annotation]
    return {name for base in inspect.getmro(kind) for name in inspect.get_annotations(base)}


def commands_of(parser: argparse.ArgumentParser, words: tuple[str, ...] = ()) -> list[str]:
    """All commands that can be given."""
    nested = [action for action in parser._actions if isinstance(action, argparse._SubParsersAction)]
    if not nested:
        return [" ".join(words)]
    return [name for word, inner in nested[0].choices.items() for name in commands_of(inner, (*words, word))]


def test_every_command_that_can_be_given_has_a_function() -> None:
    assert sorted(commands_of(arguments.parser())) == sorted(COMMANDS)


@pytest.mark.parametrize("command", COMMANDS)
def test_a_command_takes_all_that_its_arguments_give_and_nothing_else(command: str) -> None:
    parser = parser_of(command)
    given = {action.dest for action in parser._actions if not isinstance(action, argparse._HelpAction)}
    assert options_of(command) == given | set(parser._defaults)
