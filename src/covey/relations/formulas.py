"""Boolean formulas over attributes that each take one of finitely many cells, and whether one can be met.

A literal says that an attribute's cell is among a set of cells (a bit mask). Negation goes away while a formula is
built, since the complement of a literal is a literal, so formulas are conjunctions and disjunctions of literals only,
and they are monotone: a cell that meets more literals is never worse. Formulas are shared nodes in a table, equal ones
being one node, so that the two questions that `IS UNKNOWN` asks of its part don't double it.

Whether a formula can be met (`solve`) is a search in the manner of Davis, Putnam, Logemann and Loveland:

- a disjunction can be met if one of its parts can;
- the literals of a conjunction narrow what the other parts may still use (unit propagation), until nothing changes;
- parts that share no attribute are met one by one;
- else the attribute that most literals name takes its cells in turn. Cells that meet the same literals are one case,
  and a case whose literals are among those of another is left out, since formulas are monotone. An attribute whose
  literals have a cell in common therefore needs no branching.

The answer for a node is kept; nodes say all that matters, so it holds wherever the node turns up. Attributes are
independent and cells are all there is, so the search is exact. Its cost is exponential in the worst case (covering by a
disjunction is coNP-complete); the number of nodes looked at is bounded (`steps.py`), beyond it
`TooMuchWork` is raised.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Final, TypeAlias

from covey.relations.steps import Steps

Node: TypeAlias = int
Cases: TypeAlias = dict[int, int]
"""For each attribute that matters a set of cells, each of which will do."""

NEVER: Final = 0
ALWAYS: Final = 1

_LITERAL, _AND, _OR = 0, 1, 2

_PER_STEP: Final = 16
"""Looks at a list's items that count as one step."""


class Formulas:
    """A table of formulas over attributes 0, 1, ..., each with its own cells."""

    def __init__(self, cells: list[int], steps: Steps | None = None) -> None:
        """`cells[a]` has a bit for each cell of attribute a that exists."""
        self._cells = cells
        self.steps = steps or Steps(0)
        """Nodes that may still be looked at."""
        self._nodes: list[tuple[int, tuple[int, ...]]] = [(_OR, ()), (_AND, ())]
        self._ids: dict[tuple[int, tuple[int, ...]], Node] = {node: at for at, node in enumerate(self._nodes)}
        self._complements: dict[Node, Node] = {NEVER: ALWAYS, ALWAYS: NEVER}
        self._attributes: dict[Node, frozenset[int]] = {NEVER: frozenset(), ALWAYS: frozenset()}
        self._solved: dict[Node, Cases | None] = {NEVER: None, ALWAYS: {}}

    def literal(self, attribute: int, cells: int) -> Node:
        """The attribute's cell is one of these."""
        cells &= self._cells[attribute]
        if not cells:
            return NEVER
        if cells == self._cells[attribute]:
            return ALWAYS
        return self._node(_LITERAL, (attribute, cells))

    def all_of(self, parts: Iterable[Node]) -> Node:
        """The conjunction of formulas."""
        return self._combined(_AND, parts, ALWAYS, NEVER)

    def any_of(self, parts: Iterable[Node]) -> Node:
        """The disjunction of formulas."""
        return self._combined(_OR, parts, NEVER, ALWAYS)

    def complement(self, node: Node) -> Node:
        """The negation of a formula."""
        known = self._complements.get(node)
        if known is not None:
            return known
        self._work()
        kind, content = self._nodes[node]
        if kind == _LITERAL:
            result = self.literal(content[0], self._cells[content[0]] & ~content[1])
        else:
            parts = [self.complement(part) for part in content]
            result = self.any_of(parts) if kind == _AND else self.all_of(parts)
        self._complements[node] = result
        self._complements[result] = node
        return result

    def solve(self, node: Node) -> Cases | None:
        """Cells for the attributes that matter, under which the formula holds; None where there are none."""
        if node in self._solved:
            return self._solved[node]
        self._work()
        kind, content = self._nodes[node]
        found: Cases | None
        if kind == _LITERAL:
            found = {content[0]: content[1]}
        elif kind == _OR:
            found = next((cases for part in content if (cases := self.solve(part)) is not None), None)
        else:
            found = self._solve_all(node)
        self._solved[node] = found
        return found

    def _solve_all(self, node: Node) -> Cases | None:
        narrowed = self._propagated(node)
        if narrowed != node:
            return self.solve(narrowed)
        found: Cases = {}
        for component in self._components(self._nodes[node][1]):
            cases = self._solve_component(component)
            if cases is None:
                return None
            found |= cases
        return found

    def _solve_component(self, parts: list[Node]) -> Cases | None:
        """A conjunction whose parts hang together by their attributes."""
        if len(parts) == 1:
            return self.solve(parts[0])
        whole = self.all_of(parts)
        attribute, literals = self._most_named(parts)
        for case in self._best_cases(attribute, literals):
            cases = self.solve(self._restricted(whole, attribute, case, {}))
            if cases is not None:
                return cases | {attribute: case}
        return None

    def _propagated(self, node: Node) -> Node:
        """A conjunction with its literals taken into account by the other parts."""
        literals: dict[int, int] = {}
        while self._nodes[node][0] == _AND:
            content = self._nodes[node][1]
            found = (self._nodes[part][1] for part in content if self._nodes[part][0] == _LITERAL)
            units = {attribute: cells for attribute, cells in found if literals.get(attribute) != cells}
            if not units:
                break
            literals |= units
            parts: list[Node] = []
            self._work(len(content) * len(units) // _PER_STEP)
            for part in content:
                narrowed = part
                if self._nodes[part][0] != _LITERAL:
                    for attribute, cells in units.items():
                        if attribute in self._names(narrowed):
                            narrowed = self._restricted(narrowed, attribute, cells, {})
                parts.append(narrowed)
            node = self.all_of(parts)
        return node

    def _restricted(self, node: Node, attribute: int, cells: int, known: dict[Node, Node]) -> Node:
        """The formula where the attribute's cell is known to be one of these."""
        if attribute not in self._names(node):
            return node
        if node in known:
            return known[node]
        self._work()
        kind, content = self._nodes[node]
        if kind == _LITERAL:
            both = content[1] & cells
            result = ALWAYS if both == cells else self.literal(attribute, both)
        else:
            parts = [self._restricted(part, attribute, cells, known) for part in content]
            result = self.all_of(parts) if kind == _AND else self.any_of(parts)
        known[node] = result
        return result

    def _components(self, parts: tuple[Node, ...]) -> list[list[Node]]:
        """The parts, grouped so that no two groups share an attribute; small groups first."""
        leaders: dict[int, int] = {}
        for part in parts:
            names = self._names(part)
            self._work(1 + len(names) // _PER_STEP)
            first = _leader(leaders, next(iter(names)))
            for name in names:
                leaders[_leader(leaders, name)] = first
        groups: dict[int, list[Node]] = {}
        for part in parts:
            groups.setdefault(_leader(leaders, next(iter(self._names(part)))), []).append(part)
        return sorted(groups.values(), key=len)

    def _most_named(self, parts: list[Node]) -> tuple[int, set[int]]:
        """The attribute that most literals name, and the cells that those ask for."""
        counts: Counter[int] = Counter()
        literals: dict[int, set[int]] = {}
        seen: set[Node] = set()
        stack = list(parts)
        while stack:
            node = stack.pop()
            if node in seen:
                continue
            seen.add(node)
            kind, content = self._nodes[node]
            if kind == _LITERAL:
                counts[content[0]] += 1
                literals.setdefault(content[0], set()).add(content[1])
            else:
                stack.extend(content)
        self._work(len(seen))
        attribute = max(counts, key=lambda one: (counts[one], -one))
        return attribute, literals[attribute]

    def _best_cases(self, attribute: int, literals: set[int]) -> list[int]:
        """Sets of cells that meet the same literals; none whose literals are among another's. Most literals first."""
        groups = {frozenset[int](): self._cells[attribute]}
        for literal in sorted(literals):
            split: dict[frozenset[int], int] = {}
            for met, cells in groups.items():
                if cells & literal:
                    split[met | {literal}] = cells & literal
                if cells & ~literal:
                    split[met] = cells & ~literal
            groups = split
            self._work(len(groups) + sum(map(len, groups)) // _PER_STEP)
        ordered = sorted(groups, key=len, reverse=True)
        best: list[frozenset[int]] = []
        for met in ordered:
            self._work(len(best) * (1 + len(met) // _PER_STEP))
            if not any(met <= other for other in best):
                best.append(met)
        return [groups[met] for met in best]

    def _combined(self, kind: int, parts: Iterable[Node], neutral: Node, absorbing: Node) -> Node:
        literals: dict[int, int] = {}
        others: set[Node] = set()
        flat = self._flat(kind, parts)
        self._work(len(flat) // _PER_STEP)
        for part in flat:
            if part == absorbing:
                return absorbing
            if part == neutral:
                continue
            its_kind, content = self._nodes[part]
            if its_kind != _LITERAL:
                others.add(part)
                continue
            attribute, cells = content
            known = literals.get(attribute)
            if known is not None:
                cells = known & cells if kind == _AND else known | cells
            literals[attribute] = cells
        for attribute, cells in literals.items():
            literal = self.literal(attribute, cells)
            if literal == absorbing:
                return absorbing
            if literal != neutral:
                others.add(literal)
        if len(others) < 2:
            return others.pop() if others else neutral
        return self._node(kind, tuple(sorted(others)))

    def _flat(self, kind: int, parts: Iterable[Node]) -> list[Node]:
        flat: list[Node] = []
        for part in parts:
            its_kind, content = self._nodes[part]
            if its_kind == kind and content:
                flat += content
            else:
                flat.append(part)
        return flat

    def _names(self, node: Node) -> frozenset[int]:
        known = self._attributes.get(node)
        if known is None:
            kind, content = self._nodes[node]
            if kind == _LITERAL:
                known = frozenset(content[:1])
            else:
                names = [self._names(part) for part in content]
                self._work(sum(map(len, names)) // _PER_STEP)
                known = frozenset[int]().union(*names)
            self._attributes[node] = known
        return known

    def _node(self, kind: int, content: tuple[int, ...]) -> Node:
        key = (kind, content)
        known = self._ids.get(key)
        if known is None:
            known = self._ids[key] = len(self._nodes)
            self._nodes.append(key)
        return known

    def _work(self, steps: int = 1) -> None:
        self.steps.spend(steps)


def _leader(leaders: dict[int, int], name: int) -> int:
    """The attribute that stands for all of its group."""
    while (above := leaders.setdefault(name, name)) != name:
        leaders[name] = leaders[above]
        name = above
    return name
