"""A snapshot takes additions, removals and replacements while matching goes on, and answers as a new one would."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.examples import examples
from tests.strategies import events, filters

from covey.diagrams import EMPTY, Domain, SharedDiagram, Snapshot
from covey.errors import CoveyError, DuplicateIdError, LimitError, UnknownIdError
from covey.filters import SEMANTICS, all_of, attr, matches
from covey.filters.values import Kind
from covey.limits import Limits

NARROW = ("i", "s", "l")
DEFAULTS = {"i": 7, "s": "ab", "b": True}
CHANGES = st.lists(st.tuples(st.sampled_from("aarc"), st.integers(0, 30), filters(NARROW, 8) | filters()), max_size=12)


@pytest.mark.parametrize("restricted", [False, True])
@pytest.mark.parametrize("semantics", SEMANTICS)
@settings(max_examples=examples(50), deadline=None)
@given(st.lists(filters(NARROW), max_size=4), CHANGES, st.lists(events(), min_size=1, max_size=3), st.data())
def test_answers_equal_the_interpreters_after_every_change(semantics, restricted, first, changes, batch, data):
    diagram = SharedDiagram(semantics)
    diagram.add_many(enumerate(first))
    snapshot = Snapshot(diagram, restricted=restricted)
    held = dict(enumerate(first))
    for at, (change, which, condition) in enumerate(changes, 100):
        chosen = list(held)[which % len(held)] if held else None
        if change == "a" or chosen is None:
            snapshot.add(at, condition)
            held[at] = condition
        elif change == "r":
            snapshot.remove(chosen)
            del held[chosen]
        else:
            snapshot.replace(chosen, condition)
            del held[chosen]
            held[chosen] = condition
        if data.draw(st.integers(0, 5)) == 0:
            snapshot.tidy()
        assert len(snapshot) == len(held)
        wanted = [
            [at for at, one in held.items() if matches(one, event, semantics=semantics, defaults=DEFAULTS)]
            for event in batch
        ]
        assert [snapshot.match(event, defaults=DEFAULTS) for event in batch] == wanted
        assert snapshot.match_many(batch, defaults=DEFAULTS) == wanted


def test_a_change_looks_at_nothing_but_its_own_subscription(monkeypatch):
    diagram = SharedDiagram()
    diagram.add_many((at, (attr("a") == at % 10) & (attr("b") < at)) for at in range(100))
    snapshot = Snapshot(diagram)

    def rebuilt(*_):
        raise AssertionError("the whole diagram was read")

    monkeypatch.setattr(SharedDiagram, "flatten", rebuilt)
    before = snapshot.flat
    snapshot.add("new", (attr("a") == 3) & (attr("b") < 1000))
    after = snapshot.flat
    assert after.node_count == before.node_count + 2
    assert np.array_equal(after.low[: len(before.low)], before.low)
    snapshot.remove(7)
    assert snapshot.flat.node_count == after.node_count
    assert snapshot.match({"a": 3, "b": 99}) == ["new"]
    assert snapshot.match({"a": 7, "b": 0}) == list(range(17, 100, 10))


def test_an_addition_shares_what_is_there():
    place = (attr("time") == "July 20, 2004") & (attr("destination") == "Ottawa")
    snapshot = Snapshot(SharedDiagram())
    snapshot.add("s1", (attr("price") == 150) & place)
    snapshot.add("s2", (attr("price") < 150) & place)
    assert snapshot.flat.node_count == 4
    snapshot.remove("s1")
    snapshot.add("s1 again", (attr("price") == 150) & place)
    assert snapshot.flat.node_count == 4
    assert snapshot.ids == [EMPTY, "s2", "s1 again"]


def test_an_addition_is_restricted_as_all_are():
    snapshot = Snapshot(SharedDiagram(), domains={"n": Domain(Kind.NUMBER, required=True)})
    snapshot.add("always", (attr("n") < 9) | (attr("n") > 5) | attr("n").is_in([float("nan")]))
    snapshot.add("one test", (attr("n") < 5) | (attr("n") < 9))
    assert snapshot.flat.node_count == 1
    plain = Snapshot(SharedDiagram(), restricted=False)
    plain.add("one test", (attr("n") < 5) | (attr("n") < 9))
    assert plain.flat.node_count == 2


def test_mv_eval_bdd_gives_star_to_what_an_added_root_misses():
    snapshot = Snapshot(SharedDiagram("strict"), restricted=False)
    snapshot.add("a", attr("x") == 1)
    snapshot.add("b", (attr("x") == 1) & (attr("y") == 1))
    assert snapshot.evaluate(snapshot.truths({"x": 1})).tolist() == [1, 2]
    snapshot.remove("a")
    assert snapshot.evaluate(snapshot.truths({"x": 1, "y": 1})).tolist() == [0, 1]
    assert snapshot.match({"x": 1}) == []


def test_sets_of_more_attributes_than_a_word_has_bits():
    snapshot = Snapshot(SharedDiagram("strict"))
    for at in range(150):
        snapshot.add(at, (attr(f"a{at}") == 1) & (attr(f"a{at + 1}") == 1))
    assert snapshot.match({"a70": 1, "a71": 1, "a149": 1, "a150": 1}) == [70, 149]


def test_tidying_leaves_what_a_new_snapshot_has():
    diagram = SharedDiagram()
    snapshot = Snapshot(diagram)
    for at in range(400):
        snapshot.add(at, (attr("a") == at) & (attr("b") < at % 7))
        if at >= 20:
            snapshot.remove(at - 20)
        # Removed ones are never more than what is there and a few.
        assert len(snapshot.ids) <= 2 * len(snapshot) + 65
    snapshot.tidy()
    assert snapshot.ids == list(range(380, 400))
    fresh = Snapshot(diagram).flat
    assert snapshot.flat.node_count == fresh.node_count
    assert np.array_equal(snapshot.flat.variable, fresh.variable)
    assert snapshot.match({"a": 390, "b": 0}) == [390]


def test_errors_leave_it_as_it_was():
    diagram = SharedDiagram(limits=Limits(diagram_nodes=4))
    snapshot = Snapshot(diagram)
    snapshot.add("a", attr("x") == 1)
    wide = all_of([attr(f"a{at}") == at for at in range(9)])
    with pytest.raises(DuplicateIdError):
        snapshot.add("a", attr("x") == 2)
    with pytest.raises(LimitError):
        snapshot.add("wide", wide)
    with pytest.raises(LimitError):
        snapshot.replace("a", wide)
    for unknown in (lambda: snapshot.remove("b"), lambda: snapshot.replace("b", attr("x") == 1)):
        with pytest.raises(UnknownIdError, match="'b'"):
            unknown()
    assert snapshot.match({"x": 1}) == ["a"]
    assert "a" in snapshot
    assert "wide" not in snapshot


def test_what_others_change_is_not_seen():
    diagram = SharedDiagram()
    one, other = Snapshot(diagram), Snapshot(diagram)
    one.add("a", attr("x") == 1)
    with pytest.raises(CoveyError, match="changed"):
        other.match({"x": 1})
    with pytest.raises(CoveyError, match="changed"):
        other.add("b", attr("x") == 1)
    assert one.match({"x": 1}) == ["a"]
