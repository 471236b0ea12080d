"""Every error that covey raises on purpose. Each says in one line what is wrong, where, and what to do."""

from __future__ import annotations

from typing import Literal, TypeAlias, get_args

OnError: TypeAlias = Literal["raise", "skip", "collect"]
"""What is done at rows that can't be used: all of them are an error, or they are left out and reported. "collect" is
another name of "skip"."""


class CoveyError(Exception):
    """Base of all errors that a user can cause or should see."""


class FilterError(CoveyError):
    """A filter that can't be used as it is written."""


class FilterSyntaxError(FilterError):
    """Text that isn't a filter. Carries the text and the position, and prints a caret under the bad token."""

    def __init__(self, message: str, text: str, position: int) -> None:
        self.message = message
        self.text = text
        self.position = position
        super().__init__(f"{message}\n{_caret(text, position)}")


class FilterTypeError(FilterError):
    """A filter that compares an attribute with a value of a type that the attribute can't have."""


class LimitError(FilterError):
    """A filter that is larger than a limit allows."""


class EventError(CoveyError):
    """An event that can't be read, or that breaks its schema."""


class SchemaError(CoveyError):
    """A schema that contradicts itself."""


class DuplicateIdError(CoveyError):
    """A subscription id that is already in the index."""


class UnknownIdError(CoveyError, KeyError):
    """A subscription id that isn't in the index."""

    def __str__(self) -> str:
        return str(self.args[0]) if self.args else ""


class IndexFileError(CoveyError):
    """A file that isn't a whole covey index."""


_CARET_WINDOW = 60


def _caret(text: str, position: int) -> str:
    """The line of `text` around `position`, with a caret below it; long lines are cut to a window."""
    start = text.rfind("\n", 0, position) + 1
    end = text.find("\n", position)
    line = text[start : len(text) if end < 0 else end]
    column = position - start
    if column > _CARET_WINDOW:
        cut = column - _CARET_WINDOW
        line, column = "…" + line[cut + 1 :], _CARET_WINDOW
    if len(line) > 2 * _CARET_WINDOW:
        line = line[: 2 * _CARET_WINDOW] + "…"
    return f"  {line}\n  {' ' * column}^"


def skips(on_error: str) -> bool:
    """Whether rows that can't be used are to be left out."""
    if on_error not in get_args(OnError):
        raise CoveyError(f"on_error {on_error!r} is not known; use raise or skip")
    return on_error != "raise"
