"""A broker that prunes by what it is measured to use, through three loads."""

from __future__ import annotations

from covey.lab.experiments import Outcome
from covey.lab.pruning_by_load import PHASES, WINDOWS, by_load, followed
from tests.lab.in_process import GivenLab


def test_the_choice_follows_each_load_settles_and_loses_nothing() -> None:
    rows = followed({"tight": 1.0, "subscriptions": 400, "events": 3_000, "class": 0, "seed": 1})
    assert len(rows) == len(PHASES) * WINDOWS
    assert not any(row["lost"] for row in rows)
    for place, phase in enumerate(PHASES):
        own = rows[place * WINDOWS : (place + 1) * WINDOWS]
        assert {row["pruned by"] for row in own[-10:]} == {phase.dimension}
        assert len({row["share of prunings"] for row in own[-3:]}) == 1, "the search has ended"
        first, last = (max(float(str(row[other.name])) for other in PHASES) for row in (own[0], own[-1]))
        assert last <= first + 0.05
        assert last < 0.8 or phase.dimension == "network", "prunings can't make anything wanted cross a link less"


def test_the_verdict_tells_a_choice_that_does_not_follow() -> None:
    def given(dimensions: list[str]) -> Outcome:
        return by_load(
            GivenLab(
                lambda *_: [
                    {"window": at, "load": phase.name, "pruned by": dimension, "share of prunings": 0.5, "lost": 0}
                    | {other.name: 0.4 for other in PHASES}
                    for at, (phase, dimension) in enumerate(zip(PHASES, dimensions, strict=True))
                ]
            )
        )

    right = given([phase.dimension for phase in PHASES])
    assert right.verdict == "holds"
    assert "by memory to 50% under memory, where that takes 40% of what there is" in right.sentence
    wrong = given(["network"] * 3)
    assert wrong.verdict == "does not hold"
    assert "under processing it prunes by throughput" in wrong.because
