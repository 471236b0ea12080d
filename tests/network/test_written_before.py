"""What covey wrote once, it still reads: a journal and an index file of version 0.1."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import covey
from covey.network import connect
from covey.network.storage import SqliteJournal
from covey.routing import Broker, BrokerConfig
from tests.network.running import broker, in_loop, linked, until

WRITTEN = Path(__file__).parents[1] / "fixtures" / "written_0_1"


def journal_folder(tmp_path: Path) -> Path:
    (tmp_path / "a").mkdir()
    shutil.copy(WRITTEN / "journal.sqlite", tmp_path / "a" / "broker.sqlite")
    return tmp_path / "a"


def test_a_journal_of_version_0_1_gives_a_whole_broker(tmp_path: Path) -> None:
    journal = SqliteJournal(journal_folder(tmp_path), "a")
    try:
        rows = list(journal.rows())
    finally:
        journal.close()
    restored, _ = Broker.restore(BrokerConfig("a", ("b",)), rows, 1_795_000_000.0)
    ann, shop, link = restored.clients.get("ann"), restored.clients.get("shop"), restored.links["b"]
    assert ann is not None
    assert shop is not None
    assert sorted(ann.claims.subscriptions) == ["either", "orders"]
    assert [row.number for row in ann.queue] == list(range(1, 11))
    assert shop.published == 10
    assert list(shop.claims.advertisements) == ["prices"]
    assert len(link.outbox) == 7
    assert len(link.inward.subscriptions.holding.entries) == 2


def test_a_journal_that_was_opened_is_opened_again(tmp_path: Path) -> None:
    folder = journal_folder(tmp_path)
    for _ in range(2):
        journal = SqliteJournal(folder, "a")
        rows = {(row.space, row.key): row.value for row in journal.rows()}
        journal.close()
        assert len(rows) == 48


@in_loop
async def test_deliveries_that_version_0_1_queued_come_to_clients_and_neighbours(tmp_path: Path) -> None:
    async with broker("a", {"b": ""}, data=journal_folder(tmp_path)) as a, broker("b", {"a": a.url}) as b:
        await until(lambda: linked(a, b))
        async with connect(a.url, name="ann") as ann:
            inbox = await ann.subscribe("price BETWEEN 1 AND 100", id="orders", durable=True)
            other = await ann.subscribe("company IN ('IBM', 'ACM') OR volume > 5", id="either", durable=True)
            assert [(await inbox.get())["at"] for _ in range(7)] == list(range(7))
            assert [(await other.get())["at"] for _ in range(10)] == list(range(10))
        await until(lambda: not a.engine.broker.links["b"].outbox)


def test_an_index_file_of_version_0_1_answers_as_it_did() -> None:
    index = covey.Index.open(WRITTEN / "index.covey")
    assert len(index) == 59
    for row in json.loads((WRITTEN / "index_answers.json").read_text()):
        assert sorted(index.match(row["event"])) == row["matches"]
