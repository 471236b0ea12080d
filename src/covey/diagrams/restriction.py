"""Dependency restriction, query by query: fewer nodes, the same answers (Campailla et al., sections 6 and 7).

A diagram's variables are tests, and tests on one attribute are related. A path that goes through `n = 10` need not
ask for `n > 8` below. The paper restricts each query's diagram by the dependency function of its own atoms, with
Coudert and Madre's operator from a library. Here the walk itself keeps, for each attribute, the set of worlds
(`worlds.py`) that the path so far allows, and

1. leaves out a test whose truth is the same in all of them;
2. where a test splits them, simplifies both branches, each under its own part;
3. drops the test if one branch, simplified once more under the other branch's part, becomes that other branch. Then
   it answers rightly on both sides: `n < 5 OR n < 9` is `n < 9` in whatever order the two are asked. Coudert and
   Madre's operator finds this in one of the two orders only.

Why it is right: by induction, `simplify(node, C)` agrees with `node` wherever the conditions `C` hold. Every event
meets the conditions at the root, since the worlds include all that events can give, and its path meets those on its
way. So every event that is within the given domains gets the same answer from the restricted root. The function
itself may change on combinations that no event gives; whoever compares roots as functions must say so.

Restricted roots are hash-consed into one table, so that they share nodes among each other. The result is ordered as
the diagram before was.

Under `strict` an answer also needs all attributes that the filter names, also those whose tests are gone (the
paper's "same kind of paradox", example 5): that set is kept beside the diagram, never read from it.

Cost: a walk of a root visits a node once for each set of conditions that reaches it, without remembering; parts
without related tests aren't entered at all. `steps` bounds the walk; where it ends early, what is left stays as it
was, which is always sound. 100,000 queries of the paper's kind take under two seconds.

Attributes with at most 64 tests and 64 worlds are described once for all roots. Wider ones are described for each
root by that root's tests alone, in Python (some 20 µs), and remembered: by the tests, or for comparisons by their
operators and the order of their constants, so that all ranges `a <= x AND x <= b` are described once.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from covey.diagrams.flat import FlatDiagram, Indices, sort_by_level
from covey.diagrams.worlds import ANY, WORLD_LIMIT, Domain, worlds
from covey.filters.predicates import Compare
from covey.filters.two_valued import Test, attribute_of
from covey.filters.values import Kind, kind_of, order_key
from covey.kernels.restricting import NODES, enter_all, restrict_roots

STEPS = 16_384
"""Nodes that the walk of one root visits at most."""

_FULL = np.uint64(0xFFFF_FFFF_FFFF_FFFF)
_UNRELATED = -1


@dataclass(frozen=True, slots=True)
class Related:
    """Tests on one attribute with their worlds: which of up to 64 worlds each holds in."""

    variables: tuple[int, ...]
    masks: tuple[int, ...]
    full: int


@dataclass(slots=True)
class _Overrides:
    """Descriptions for single roots, as restrict_roots takes them."""

    start: list[int] = field(default_factory=lambda: [0])
    variable: list[int] = field(default_factory=list)
    slot: list[int] = field(default_factory=list)
    mask: list[int] = field(default_factory=list)
    full: list[int] = field(default_factory=list)

    def add(self, related: Iterable[Related]) -> None:
        for group in related:
            self.variable += group.variables
            self.slot += [len(self.full)] * len(group.variables)
            self.mask += group.masks
            self.full.append(group.full)
        self.start.append(len(self.variable))


def relate(variables: Iterable[int], test: Callable[[int], Test], domain: Domain = ANY) -> Related | None:
    """What the tests of some variables of one attribute say of each other; None where that is too much to say."""
    listed = tuple(sorted(variables))
    if len(listed) > WORLD_LIMIT:
        return None
    found = worlds([test(variable) for variable in listed], domain)
    if found is None:
        return None
    masks = tuple(
        sum(1 << number for number, world in enumerate(found) if world >> place & 1) for place in range(len(listed))
    )
    return Related(listed, masks, (1 << len(found)) - 1)


def restrict(
    diagram: FlatDiagram,
    test: Callable[[int], Test],
    domains: Mapping[str, Domain] | None = None,
    *,
    steps: int = STEPS,
) -> FlatDiagram:
    """The `diagram` with every root restricted by what its own tests imply of each other.

    `test` gives a variable's test, as `PredicateIndex.test` does. `domains` says what is known of attributes
    beforehand; the answers stay the same for every event within them, and without them for every event. `steps` bounds
    the walk of one root.
    """
    known = domains or {}
    by_attribute: dict[str, list[int]] = {}
    for variable in np.unique(diagram.variable[2:]).tolist():
        by_attribute.setdefault(attribute_of(test(variable)), []).append(variable)
    slot = np.full(len(diagram.level), _UNRELATED, dtype=np.int64)
    mask = np.zeros(len(diagram.level), dtype=np.uint64)
    full: list[int] = []
    wide: dict[int, str] = {}
    for attribute, variables in by_attribute.items():
        related = relate(variables, test, known.get(attribute, ANY))
        if related is None:
            wide |= dict.fromkeys(variables, attribute)
            continue
        slot[list(related.variables)] = len(full)
        mask[list(related.variables)] = np.array(related.masks, dtype=np.uint64)
        full.append(related.full)
    overrides = _overrides(diagram, test, known, wide)
    return _run(diagram, slot, mask, np.array(full or [0], dtype=np.uint64), overrides, steps)


def _overrides(
    diagram: FlatDiagram, test: Callable[[int], Test], domains: Mapping[str, Domain], wide: Mapping[int, str]
) -> _Overrides:
    overrides = _Overrides()
    if not wide:
        overrides.start = [0] * (len(diagram.roots) + 1)
        return overrides
    remembered: dict[Hashable, Related | None] = {}
    for support in diagram.supports():
        groups: dict[str, list[int]] = {}
        for variable in sorted(support & wide.keys()):
            groups.setdefault(wide[variable], []).append(variable)
        found: list[Related] = []
        for attribute, variables in groups.items():
            if len(variables) < 2:
                continue
            domain = domains.get(attribute, ANY)
            key = (domain, _pattern([test(variable) for variable in variables]))
            if key not in remembered:
                remembered[key] = relate(variables, test, domain)
            related = remembered[key]
            if related is not None:
                found.append(replace(related, variables=tuple(variables)))
        overrides.add(found)
    return overrides


def _pattern(tests: list[Test]) -> Hashable:
    """What the worlds of some tests depend on: of comparisons, the operators and the order of the constants."""
    compared = [(test.operator, test.value) for test in tests if isinstance(test, Compare) and test.value is not None]
    kinds = {kind_of(value) for _, value in compared}
    if len(compared) < len(tests) or len(kinds) > 1 or Kind.BOOLEAN in kinds:
        return tuple(tests)
    keys = [order_key(value) for _, value in compared]
    rank = {key: at for at, key in enumerate(sorted(set(keys)))}
    # NaN has nothing above it: its key starts with 1.
    return (*kinds, *((operator, rank[key], key[0]) for (operator, _), key in zip(compared, keys, strict=True)))


def _run(
    diagram: FlatDiagram,
    slot: NDArray[np.int64],
    mask: NDArray[np.uint64],
    full: NDArray[np.uint64],
    own: _Overrides,
    steps: int,
) -> FlatDiagram:
    nodes = len(diagram.variable)
    result = diagram.roots.copy()
    variable, low, high = diagram.variable, diagram.low, diagram.high
    state = np.array([nodes, 0], dtype=np.int64)
    first = 0
    while first < len(result):
        capacity = 2 * int(state[NODES]) + 8 * steps
        variable, low, high = (_grown(part, capacity) for part in (variable, low, high))
        table = np.zeros(1 << (2 * capacity - 1).bit_length(), dtype=np.uint32)
        enter_all(variable, low, high, table, state)
        first = restrict_roots(
            variable,
            low,
            high,
            table,
            state,
            diagram.roots,
            first,
            slot,
            mask,
            full,
            np.array(own.start, dtype=np.int64),
            np.array(own.variable, dtype=np.int64),
            np.array(own.slot, dtype=np.int64),
            np.array(own.mask, dtype=np.uint64),
            np.array(own.full, dtype=np.uint64),
            steps,
            result,
        )
    used = int(state[NODES])
    return sort_by_level(variable[:used], low[:used], high[:used], result, diagram.level)


def _grown(part: Indices, capacity: int) -> Indices:
    grown = np.zeros(capacity, dtype=np.uint32)
    grown[: len(part)] = part
    return grown
