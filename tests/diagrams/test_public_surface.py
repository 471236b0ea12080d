"""Everything that `covey.diagrams` exports says what it does and what each parameter is for."""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Iterator
from typing import Any

import pytest

from covey import diagrams


def documented() -> Iterator[tuple[str, Any, str]]:
    """What can be called, by name, with its text."""
    for name in diagrams.__all__:
        found = getattr(diagrams, name)
        if inspect.isfunction(found):
            yield name, found, found.__doc__ or ""
        elif inspect.isclass(found):
            for member, called in vars(found).items():
                function = called.__func__ if isinstance(called, classmethod) else called
                if not inspect.isfunction(function) or (member.startswith("_") and member != "__init__"):
                    continue
                if member == "__init__":
                    if not dataclasses.is_dataclass(found):  # the fields of those have texts of their own
                        yield name, function, f"{found.__doc__}\n{function.__doc__}"
                else:
                    yield f"{name}.{member}", function, function.__doc__ or ""


@pytest.mark.parametrize(
    ("called", "text"), [pytest.param(called, text, id=name) for name, called, text in documented()]
)
def test_every_parameter_is_explained(called: Any, text: str) -> None:
    parameters = [name for name in inspect.signature(called).parameters if name not in ("self", "cls")]
    assert text.strip()
    assert [name for name in parameters if f"`{name}`" not in text] == []


def test_what_the_papers_describe_is_there() -> None:
    wanted = {"SharedDiagram", "Snapshot", "PredicateIndex", "Dependencies", "restrict", "Domain", "ORDERS", "arrange"}
    assert wanted <= set(diagrams.__all__)
    assert sorted(set(diagrams.__all__)) == sorted(diagrams.__all__)
