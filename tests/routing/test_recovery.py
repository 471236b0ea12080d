"""A broker starts from what is whole in its journal, and sets aside what isn't."""

from __future__ import annotations

import random
import shutil
from pathlib import Path

import pytest

from covey.network.storage import SqliteJournal
from covey.routing import Broker, BrokerConfig, Put
from covey.routing.journal import replay

WRITTEN = Path(__file__).parents[1] / "fixtures" / "written_0_1" / "journal.sqlite"


@pytest.fixture(scope="module")
def rows(tmp_path_factory: pytest.TempPathFactory) -> list[Put]:
    folder = tmp_path_factory.mktemp("journal")
    shutil.copy(WRITTEN, folder / "broker.sqlite")
    journal = SqliteJournal(folder, "a")
    found = list(journal.rows())
    journal.close()
    return found


def restored(rows: list[Put]) -> tuple[Broker, list[Put]]:
    broker, outputs = Broker.restore(BrokerConfig("a", ("b",)), rows, 1_795_000_000.0)
    kept = {(row.space, row.key): row.value for row in rows}
    replay(kept, outputs.records)
    return broker, [Put(space, key, value) for (space, key), value in kept.items()]


def test_whole_rows_are_all_taken(rows: list[Put]) -> None:
    assert restored(rows)[0].damaged == ()


@pytest.mark.parametrize("seed", range(30))
def test_a_broker_starts_whichever_rows_are_garbled_and_starts_again_without_a_word(rows: list[Put], seed: int) -> None:
    rng = random.Random(seed)
    garbled = [
        Put(row.space, row.key, rng.choice([b"", b"\xc1", row.value[:-1], rng.randbytes(9)]))
        if rng.random() < 0.15
        else row
        for row in rows
    ]
    broker, kept = restored(garbled)
    again, _ = restored(kept)
    assert again.damaged == ()
    for one, other in ((broker, again),):
        ann, before = one.clients.get("ann"), other.clients.get("ann")
        assert (ann and [row.number for row in ann.queue]) == (before and [row.number for row in before.queue])
        assert len(one.links["b"].outbox) == len(other.links["b"].outbox)


def test_a_lost_event_costs_its_places_and_no_others(rows: list[Put]) -> None:
    event = next(row.key for row in rows if row.space == "event")
    broker, _ = restored([Put("event", row.key, b"?") if row.key == event else row for row in rows])
    ann = broker.clients.get("ann")
    assert ann is not None
    assert len(ann.queue) == 9
    assert len(broker.links["b"].outbox) == 6
    assert broker.links["b"].outbox.epoch == 0
