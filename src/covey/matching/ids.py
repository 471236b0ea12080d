"""Ids of subscriptions: text, or integers, which tables often have. They come back as they went in.

An index has ids of one kind, that of the first one that is added to it; inside they are text. `1` and `"1"` can't be in
one index: matches go into columns, which have one type.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np

from covey.errors import CoveyError

Id: TypeAlias = Any
"""A string that isn't empty, or an integer."""


def is_integer(id: object) -> bool:
    """Whether an id is an integer; a boolean is none."""
    return isinstance(id, (int, np.integer)) and not isinstance(id, bool)


def check_id(id: object) -> None:
    """Ids are strings that aren't empty, and integers."""
    if not is_integer(id) and (not isinstance(id, str) or not id):
        problem = "no id" if id is None or id == "" else f"the id {id!r} is neither text nor an integer"
        raise CoveyError(problem)


def key_of(id: Id, integers: bool | None) -> str:
    """An id as the index keeps it. `integers`: whether the index has integers; None where it may have either."""
    check_id(id)
    whole = is_integer(id)
    if integers is not None and whole is not integers:
        kinds = ("an integer", "text") if whole else ("text", "integers")
        raise CoveyError(f"the id {id!r} is {kinds[0]}, and other ids are {kinds[1]}; give all as one kind")
    return str(int(id)) if whole else str(id)


def kind_of_ids(ids: Sequence[Id]) -> bool | None:
    """Whether ids are integers, by the first that can be an id; None where none can."""
    for id in ids:
        if is_integer(id):
            return True
        if isinstance(id, str) and id:
            return False
    return None
