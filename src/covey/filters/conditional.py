"""Terms with conditions inside: CASE, and the truth of a condition as a value. Conditions in terms are always SQL's,
three-valued, whatever the semantics of the filter around them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from covey.filters.algebra import Constant, Filter, leaves
from covey.filters.predicates import Predicate
from covey.filters.printing import to_sql
from covey.filters.semantics import truth
from covey.filters.terms import MARK, Fixed, Lookup, Raw, Term, fixed, refuse_presence
from covey.filters.values import Kind


@dataclass(frozen=True, slots=True, eq=False)
class Truth(Term):
    """TRUE, FALSE or missing, as a condition is."""

    condition: Filter

    @property
    def binding(self) -> int:  # noqa: D102
        return 0

    @property
    def kind(self) -> Kind | None:  # noqa: D102
        return Kind.BOOLEAN

    def depth(self) -> int:  # noqa: D102
        return 1 + _depth(self.condition)

    def attributes(self) -> tuple[str, ...]:  # noqa: D102
        return tuple(sorted(self.condition.attributes()))

    def raw(self, lookup: Lookup) -> Raw:  # noqa: D102
        return truth(self.condition, lookup, three_valued=True)


@dataclass(frozen=True, slots=True, eq=False)
class Case(Term):
    """`CASE WHEN condition THEN term … ELSE term END`: the term of the first condition that is true."""

    branches: tuple[tuple[Filter, Term], ...]
    otherwise: Term

    @property
    def kind(self) -> Kind | None:  # noqa: D102
        kinds = {term.kind for term in self.parts() if not (isinstance(term, Fixed) and term.constant is None)}
        return kinds.pop() if len(kinds) == 1 else None

    def depth(self) -> int:  # noqa: D102
        inner = max(part.depth() for part in self.parts())
        return 1 + max(inner, *(_depth(condition) for condition, _ in self.branches))

    def parts(self) -> tuple[Term, ...]:  # noqa: D102
        return (*(term for _, term in self.branches), self.otherwise)

    def attributes(self) -> tuple[str, ...]:  # noqa: D102
        named = {name for condition, _ in self.branches for name in condition.attributes()}
        return tuple(sorted(named.union(*(part.attributes() for part in self.parts()))))

    def raw(self, lookup: Lookup) -> Raw:  # noqa: D102
        for condition, term in self.branches:
            if truth(condition, lookup, three_valued=True):
                return term.raw(lookup)
        return self.otherwise.raw(lookup)


def _refuse_presence(condition: Filter) -> None:
    refuse_presence(leaf.term for leaf in leaves(condition) if isinstance(leaf, Predicate))


def _depth(condition: Filter) -> int:
    return max((leaf.term.depth() for leaf in leaves(condition) if isinstance(leaf, Predicate)), default=0)


def truth_term(condition: Filter) -> Term:
    """A condition as a value."""
    if isinstance(condition, Constant):
        return fixed(condition.value)
    _refuse_presence(condition)
    return Truth(MARK + to_sql(condition), condition)


def case(branches: Sequence[tuple[Filter, Term]], otherwise: Term | None = None) -> Term:
    """`CASE`; without ELSE it is missing where no condition is true."""
    last = fixed(None) if otherwise is None else otherwise
    refuse_presence((*(term for _, term in branches), last))
    for condition, _ in branches:
        _refuse_presence(condition)
    whens = " ".join(f"WHEN {to_sql(condition)} THEN {_text(term)}" for condition, term in branches)
    return Case(f"{MARK}CASE {whens} ELSE {_text(last)} END", tuple(branches), last)


def _text(term: Term) -> str:
    return f"({term.sql})" if term.binding == 0 else term.sql
