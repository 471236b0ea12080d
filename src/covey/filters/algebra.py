"""Filters as values: constants, And, Or, Not and `IS TRUE`, over predicates.

Filters are immutable, hashable and compare by structure. And and Or are flat (an And has no And among its parts)
and have at least two parts, so that text and structure correspond one to one. `f & g`, `f | g`, `~f` build them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from html import escape
from importlib import import_module
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from covey.filters.semantics import Defaults, Semantics


class Relations(Protocol):
    """Decides how filters relate; `covey.relations`, which knows filters and isn't known here, puts itself in place."""

    def covers(self, f: Filter, g: Filter, *, semantics: Semantics, defaults: Defaults | None) -> bool:
        """Whether every event that matches g matches f."""

    def equivalent(self, f: Filter, g: Filter, *, semantics: Semantics, defaults: Defaults | None) -> bool:
        """Whether the same events match both."""

    def overlaps(self, f: Filter, g: Filter, *, semantics: Semantics, defaults: Defaults | None) -> bool:
        """Whether some event matches both."""


_relations: list[Relations] = []
_home: list[str] = []


def use_relations(relations: Relations) -> None:
    """Have filters answer `covers`, `equivalent` and `overlaps` by these."""
    _relations[:] = [relations]


def relations_in(module: str) -> None:
    """Import this module, which puts itself in place, once a filter is asked how it relates."""
    _home[:] = [module]


def _known_relations() -> Relations:
    if not _relations and _home:
        import_module(_home[0])
    if not _relations:
        raise RuntimeError("nothing decides how filters relate yet; import covey.relations first")
    return _relations[0]


class Filter:
    """A Boolean condition on the attributes of an event."""

    __slots__ = ()

    def __and__(self, other: Filter) -> Filter:
        return all_of((self, other))

    def __or__(self, other: Filter) -> Filter:
        return any_of((self, other))

    def __invert__(self) -> Filter:
        return Not(self)

    def __bool__(self) -> bool:
        raise TypeError("a filter has no truth value of its own; combine filters with & | ~ instead of and, or, not")

    def __str__(self) -> str:
        from covey.filters.printing import to_sql

        return to_sql(self)

    def __repr__(self) -> str:
        return f"covey.parse({str(self)!r})"

    def children(self) -> tuple[Filter, ...]:
        """The filters directly below this one."""
        return ()

    def attributes(self) -> frozenset[str]:
        """Every attribute that the filter names."""
        return frozenset(name for leaf in leaves(self) for name in leaf._named())

    def _named(self) -> tuple[str, ...]:
        return ()

    def matches(
        self, event: Mapping[str, Any], *, semantics: Semantics = "sql", defaults: Defaults | None = None
    ) -> bool:
        """Whether the event meets this filter under the given semantics."""
        from covey.filters.semantics import matches

        return matches(self, event, semantics=semantics, defaults=defaults)

    def covers(self, other: Filter, *, semantics: Semantics = "sql", defaults: Defaults | None = None) -> bool:
        """Whether every event that matches the other filter certainly matches this one."""
        return _known_relations().covers(self, other, semantics=semantics, defaults=defaults)

    def equivalent(self, other: Filter, *, semantics: Semantics = "sql", defaults: Defaults | None = None) -> bool:
        """Whether certainly the same events match both filters."""
        return _known_relations().equivalent(self, other, semantics=semantics, defaults=defaults)

    def _repr_html_(self) -> str:
        """For notebooks."""
        return f"<code>{escape(str(self))}</code>"

    def overlaps(self, other: Filter, *, semantics: Semantics = "sql", defaults: Defaults | None = None) -> bool:
        """Whether some event matches both filters, or it isn't known that none does."""
        return _known_relations().overlaps(self, other, semantics=semantics, defaults=defaults)


@dataclass(frozen=True, slots=True, repr=False)
class Constant(Filter):
    """TRUE, FALSE or, with None, SQL's unknown."""

    value: bool | None


TRUE = Constant(True)
FALSE = Constant(False)
UNKNOWN = Constant(None)


@dataclass(frozen=True, slots=True, repr=False)
class And(Filter):
    """All of two or more parts."""

    parts: tuple[Filter, ...]

    def __post_init__(self) -> None:
        object.__setattr__(self, "parts", _flat(And, self.parts))

    def children(self) -> tuple[Filter, ...]:  # noqa: D102
        return self.parts


@dataclass(frozen=True, slots=True, repr=False)
class Or(Filter):
    """At least one of two or more parts."""

    parts: tuple[Filter, ...]

    def __post_init__(self) -> None:
        object.__setattr__(self, "parts", _flat(Or, self.parts))

    def children(self) -> tuple[Filter, ...]:  # noqa: D102
        return self.parts


@dataclass(frozen=True, slots=True, repr=False)
class Not(Filter):
    """The negation of a filter; unknown stays unknown."""

    part: Filter

    def children(self) -> tuple[Filter, ...]:  # noqa: D102
        return (self.part,)


@dataclass(frozen=True, slots=True, repr=False)
class Is(Filter):
    """`(part) IS TRUE`, `IS FALSE`, or with None `IS UNKNOWN`: always true or false, never unknown."""

    part: Filter
    truth: bool | None

    def children(self) -> tuple[Filter, ...]:  # noqa: D102
        return (self.part,)


def _flat(operator: type[And] | type[Or], parts: Iterable[Filter]) -> tuple[Filter, ...]:
    flat: list[Filter] = []
    for part in parts:
        if isinstance(part, operator):
            flat.extend(part.parts)
        elif isinstance(part, Filter):
            flat.append(part)
        else:
            raise TypeError(f"{operator.__name__} takes filters, not {type(part).__name__}")
    if len(flat) < 2:
        raise ValueError(f"{operator.__name__} takes two parts or more; all_of and any_of take any number")
    return tuple(flat)


def all_of(parts: Iterable[Filter]) -> Filter:
    """The conjunction of any number of filters; of none, TRUE."""
    listed = tuple(parts)
    return And(listed) if len(listed) > 1 else (listed[0] if listed else TRUE)


def any_of(parts: Iterable[Filter]) -> Filter:
    """The disjunction of any number of filters; of none, FALSE."""
    listed = tuple(parts)
    return Or(listed) if len(listed) > 1 else (listed[0] if listed else FALSE)


def leaves(root: Filter) -> Iterator[Filter]:
    """The predicates and constants of a filter, left to right."""
    stack = [root]
    while stack:
        node = stack.pop()
        below = node.children()
        if below:
            stack.extend(reversed(below))
        else:
            yield node


def number_of_leaves(root: Filter) -> int:
    """How many predicates and constants a filter has."""
    count = 0
    stack = [root]
    while stack:
        below = stack.pop().children()
        count += not below
        stack += below
    return count


def depth(root: Filter) -> int:
    """How deeply filters are nested in a filter; a predicate alone has depth 1."""
    deepest = 0
    stack = [(root, 1)]
    while stack:
        node, level = stack.pop()
        deepest = max(deepest, level)
        stack.extend((child, level + 1) for child in node.children())
    return deepest
