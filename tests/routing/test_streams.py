from __future__ import annotations

import random

import pytest

from covey.routing.journal import Turn, read, replay
from covey.routing.settling import Settling, Waits
from covey.routing.streams import Inbox, Outbox, OutboxRow


def agreed() -> Outbox:
    """An outbox for a neighbour that has said Hello."""
    outbox = Outbox("p", Turn())
    outbox.start(0, 0)
    return outbox


def items(*names: str) -> list[OutboxRow]:
    return [OutboxRow(name) for name in names]


@pytest.mark.parametrize("seed", range(40))
def test_everything_arrives_once_and_in_order_over_a_link_that_loses_and_both_ends_crashing(seed: int) -> None:
    rng = random.Random(seed)
    inbox, outbox, got = Inbox(), agreed(), []
    turn = outbox.turn
    rows: dict[tuple[str, str], bytes] = {}
    sent, sizes = 0, dict[str, int]()
    for _ in range(300):
        match rng.randrange(6):
            case 0 if sent < 60:
                sent += 1
                outbox.push(OutboxRow(str(sent)), rng.randrange(1, 60))
                sizes[str(sent)] = outbox._sizes[-1]
            case 1 | 2:
                for first, rows_sent in outbox.unsent(8, 100, 3):
                    if rng.random() < 0.6:
                        places = inbox.take(outbox.epoch, first, len(rows_sent))
                        got += [rows_sent[at].event for at in places]
            case 3 if rng.random() < 0.5:
                outbox.acknowledge(inbox.epoch, inbox.received)
            case 4:
                outbox.start(inbox.epoch, inbox.received)
            case 5:
                outbox.sent = outbox.acked
        replay(rows, turn.out.records)
        turn.begin(0.0)
        restored = Outbox("p", turn, outbox.epoch, outbox.acked, outbox.acked)
        restored.restore([(key, read(value, OutboxRow)) for (_, key), value in rows.items()], sizes.__getitem__)
        assert (restored.items, restored.bytes) == (outbox.items, outbox.bytes)
    outbox.start(inbox.epoch, inbox.received)
    while len(outbox):
        for first, rows_sent in outbox.unsent(8, 100, 3):
            got += [rows_sent[at].event for at in inbox.take(outbox.epoch, first, len(rows_sent))]
        outbox.acknowledge(inbox.epoch, inbox.received)
    assert got == [str(number) for number in range(1, sent + 1)]


def test_a_receiver_that_lost_its_disk_gets_the_rest_under_a_new_epoch() -> None:
    outbox = agreed()
    for item in items("1", "2", "3"):
        outbox.push(item, 1)
    outbox.acknowledge(1, 2)
    outbox.start(0, 0)
    assert outbox.epoch == 2
    assert [(first, [row.event for row in rows]) for first, rows in outbox.unsent(10, 100, 10)] == [(1, ["3"])]


@pytest.mark.parametrize("cut", [False, True])
def test_what_a_neighbour_has_of_a_former_life_acknowledges_nothing_of_this_one(cut: bool) -> None:
    outbox = Outbox("p", Turn())
    for item in items("1", "2", "3"):
        outbox.push(item, 1)
    if cut:
        outbox.cut(2, 10)
    left = [item.event for item in outbox.items]
    assert outbox.start(1, 2) == []
    inbox = Inbox(1, 2)
    sent = [(first, rows) for first, rows in outbox.unsent(10, 100, 10)]
    got = [rows[at].event for first, rows in sent for at in inbox.take(outbox.epoch, first, len(rows))]
    assert got == left


def test_what_flies_is_bounded_in_bytes_and_one_item_flies_whatever_its_size() -> None:
    outbox = agreed()
    for name, size in (("1", 500), ("2", 30), ("3", 40), ("4", 40)):
        outbox.push(OutboxRow(name), size)

    def flying() -> list[str]:
        return [row.event for _, rows in outbox.unsent(10, 100, 10) for row in rows]

    assert flying() == ["1"]
    assert flying() == []
    outbox.acknowledge(1, 1)
    assert flying() == ["2", "3"]
    outbox.acknowledge(1, 2)
    assert flying() == ["4"]


def test_an_outbox_is_cut_to_a_number_and_to_bytes() -> None:
    outbox = agreed()
    for number in range(1, 6):
        outbox.push(OutboxRow(str(number)), 10 * number)
    assert [row.event for row in outbox.cut(4, 95)] == ["1", "2", "3"]
    assert (outbox.bytes, len(outbox)) == (90, 2)


def test_a_gap_is_not_taken() -> None:
    inbox = Inbox()
    assert list(inbox.take(1, 1, 2)) == [0, 1]
    assert list(inbox.take(1, 4, 2)) == []
    assert list(inbox.take(1, 2, 3)) == [1, 2]
    assert inbox.received == 4


def test_something_settles_after_all_that_it_waits_for() -> None:
    done: list[str] = []
    one, other = Waits(), Waits()
    settling = Settling(lambda: done.append("x"))
    one.add(3, settling)
    other.add(1, settling)
    settling.ready()
    one.settle(2)
    other.settle(5)
    assert done == []
    one.settle(3)
    assert done == ["x"]


def test_a_new_session_waits_for_its_first_delta_and_a_failed_link_for_nothing() -> None:
    done: list[str] = []
    waits = Waits()
    for name in "xy":
        settling = Settling(lambda name=name: done.append(name))  # type: ignore[misc]
        waits.add(7, settling)
        settling.ready()
    waits.restart()
    waits.settle(1)
    assert done == ["x", "y"]
    settling = Settling(lambda: done.append("z"))
    waits.add(2, settling)
    settling.ready()
    waits.release()
    assert done == ["x", "y", "z"]
