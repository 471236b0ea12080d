"""A line of six brokers that merge imperfectly: how much of what crosses each link nobody beyond wants."""

from __future__ import annotations

import pytest

from covey.lab.merger_chains import BROKERS, chain, chained
from tests.lab.in_process import GivenLab


def in_vain(interest: str, bounds: str, imt: float) -> list[float]:
    point = {"interest": interest, "imt": imt, "bounds": bounds, "publications": 2_000, "seed": 1}
    rows = chain(point)
    assert [row["hop"] for row in rows] == list(range(1, BROKERS))
    assert all(row["false deliveries"] == 0 for row in rows)
    return [float(str(row["in vain"])) for row in rows]


@pytest.mark.parametrize("imt", [0.1, 0.2])
def test_every_hop_stays_within_the_threshold_where_mergers_carry_what_they_have_spent(imt: float) -> None:
    carried = in_vain("stairs", "path", imt)
    assert max(carried) <= imt
    assert carried[1] > imt / 2, "and spends it"


def test_without_that_a_line_of_brokers_passes_the_threshold_at_the_third_hop() -> None:
    spent = in_vain("stairs", "hop", 0.1)
    assert spent[1] <= 0.1 < spent[2] < spent[3] < spent[4]


def test_the_verdict_is_about_the_worst_hop_with_carrying() -> None:
    def given(point: object, name: str) -> list[dict[str, object]]:
        assert isinstance(point, dict)
        assert name == "chain"
        share = 0.9 * point["imt"] if point["bounds"] == "path" else 3 * point["imt"]
        return [{"hop": hop, "in vain": share / hop, "entries": 1} for hop in (1, 2)]

    outcome = chained(GivenLab(given))  # type: ignore[arg-type]
    assert outcome.verdict == "holds"
    assert "30.0% where each of 6 brokers spends 0.1 alone, 9.0% where" in outcome.sentence
