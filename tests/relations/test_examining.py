"""Rules that never match, always match or are equal are found; brute force on a small world agrees."""

import itertools
import random
from typing import Any

import covey
from covey.events.meaning import Meaning
from covey.relations import examining
from covey.relations.examining import examine

ATOMS = ["a = 1", "a < 2", "a IS NULL", "b = 'x'", "b LIKE 'x%'", "NOT a = 1", "a >= 1"]
EVENTS = [
    {key: value for key, value in (("a", a), ("b", b)) if value is not None}
    for a, b in itertools.product([None, 0, 1, 1.5, 2, 3, "other"], [None, "x", "xy", "y", 5])
]


def rules(seed: int) -> dict[object, covey.Filter]:
    draw = random.Random(seed)

    def text(depth: int) -> str:
        if depth == 0:
            return draw.choice(ATOMS)
        return f"({text(depth - 1)} {draw.choice(['AND', 'OR'])} {text(depth - 1)})"

    return {number: covey.parse(text(draw.randrange(3))) for number in range(40)}


def test_findings_are_right_on_every_event_of_a_small_world() -> None:
    grouped = 0
    for seed in range(12):
        given = rules(seed)
        answers = {id: tuple(rule.matches(event) for event in EVENTS) for id, rule in given.items()}
        found = examine(given, Meaning("sql", None, None))
        for id in found.never:
            assert not any(answers[id]), given[id]
        for id in found.always:
            assert all(answers[id]), given[id]
        for group in found.equal:
            assert len({answers[id] for id in group}) == 1, [str(given[id]) for id in group]
            grouped += len(group)
        # The world is large enough to tell these rules apart, so that all that are equal there must be in one group.
        for id, other in itertools.combinations(given, 2):
            if given[id].attributes() == given[other].attributes() and answers[id] == answers[other]:
                together = any(id in group and other in group for group in (*found.equal, found.never, found.always))
                assert together, (str(given[id]), str(given[other]))
    assert grouped > 20


class Counted(examining._Examination):
    searches = 0

    def only(self, f: covey.Filter, g: covey.Filter) -> tuple[bool | None, Any]:
        self.searches += 1
        return super().only(f, g)


def test_many_rules_are_told_apart_without_a_search_for_each_pair() -> None:
    """Thresholds side by side, of which each other one is written in two ways."""
    many = 140
    texts = [f"(a > {n} OR c > {many - n}) AND b <> 'x'" for n in range(many)]
    texts += [f"NOT b = 'x' AND (c > {many - n} OR a > {n})" for n in range(0, many, 2)]
    examination = Counted(Meaning("sql", None, None))
    found = examination.of({number: covey.parse(text) for number, text in enumerate(texts)})
    assert found.equal == [[n, many + n // 2] for n in range(0, many, 2)]
    assert examination.searches <= len(texts) + 2 * len(found.equal)
