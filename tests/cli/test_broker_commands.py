"""`covey pub`, `sub`, `advertise`, `status`, `routes`, `trace` and `token` against a broker of this process."""

from __future__ import annotations

import asyncio
import json
import re
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from covey.cli.broker import pub
from covey.network import Security, Server, ServerConfig
from covey.network.sync import connect
from covey.network.tokens import verify
from covey.routing.config import BrokerConfig, BrokerLimits
from tests.cli.conftest import Outcome

SECRET = "0123456789abcdef0123456789abcdef"


class Running:
    """Brokers in a thread of their own."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()
        self._servers: list[Server] = []

    def start(self, config: ServerConfig) -> Server:
        async def start() -> Server:
            server = Server(config)
            await server.start()
            return server

        server = asyncio.run_coroutine_threadsafe(start(), self._loop).result(20)
        self._servers.append(server)
        return server

    def stop(self) -> None:
        for server in self._servers:
            asyncio.run_coroutine_threadsafe(server.stop(), self._loop).result(20)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(20)
        self._loop.close()


@pytest.fixture
def brokers() -> Iterator[Running]:
    running = Running()
    yield running
    running.stop()


@pytest.fixture
def url(brokers: Running, monkeypatch: pytest.MonkeyPatch) -> str:
    server = brokers.start(ServerConfig(BrokerConfig("a"), port=0))
    monkeypatch.setenv("COVEY_BROKER", server.url)
    return server.url


def test_sub_prints_what_pub_publishes(covey: Callable[..., Outcome], url: str) -> None:
    assert covey("sub", "price < 10", "--durable", "--name", "ann", "--id", "cheap", "-w", "0.05s").out == ""
    published = covey("pub", '{"price": 5}', '{"price": 50}', '{"price": 7}', "--durable", "-v")
    assert (published.code, published.err) == (0, "covey: 3 published\n")
    found = covey("sub", "price < 10", "--durable", "--name", "ann", "--id", "cheap", "-n", "2")
    assert found.rows == [{"price": 5}, {"price": 7}]


def test_what_sub_has_printed_does_not_come_again(covey: Callable[..., Outcome], url: str) -> None:
    durable = ("--durable", "--name", "ann", "--id", "cheap")
    covey("sub", "price < 10", *durable, "-w", "0.05s")
    covey("pub", '{"price": 5}', "--durable")
    assert covey("sub", "price < 10", *durable, "-n", "1", "-v").rows[0]["attributes"] == {"price": 5}
    assert covey("sub", "price < 10", *durable, "-w", "0.2s").out == ""


def test_sub_removes_a_durable_subscription(covey: Callable[..., Outcome], url: str) -> None:
    covey("sub", "price < 10", "--durable", "--name", "ann", "--id", "cheap", "-w", "0.05s")
    assert covey("status", "--json").rows[0]["subscriptions"] == 1
    assert covey("sub", "--remove", "--name", "ann", "--id", "cheap").code == 0
    assert covey("status", "--json").rows[0]["subscriptions"] == 0


def test_pub_reads_standard_input(
    covey: Callable[..., Outcome], url: str, stdin: Callable[[bytes], None]
) -> None:  # fmt: skip
    with connect(url) as ann:
        subscription = ann.subscribe("x >= 0")
        stdin(b"".join(b'{"x": %d}\n\n' % number for number in range(1_200)))
        assert covey("pub").code == 0
        assert [subscription.get(5)["x"] for _ in range(1_200)] == list(range(1_200))


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (("pub", "{"), "event 1 isn't JSON"),
        (("pub", "3"), "event 1 isn't a JSON object"),
        (("sub",), "needs a filter"),
        (("sub", "price <"), "price <"),
        (("sub", "x = 1", "--durable"), "needs an id, and a client with a name"),
        (("sub", "--remove"), "--remove needs --name and --id"),
        (("sub", "x = 1", "-w", "soon"), "is not a time"),
        (("advertise",), "needs a filter"),
        (("advertise", "x = 1", "--durable"), "needs --name and --id"),
        (("trace", "[]"), "isn't a JSON object"),
        (("broker",), "needs a name"),
        (("broker", "--id", "a", "--host", "0.0.0.0"), "listens on this machine only"),
        (("broker", "--id", "a", "--peer", "=x"), "write NAME=ws://HOST:PORT"),
        (("broker", "--id", "a", "--config", "/nowhere.toml"), "/nowhere.toml"),
    ],
)
def test_a_mistake_is_one_line_and_exit_code_1(
    covey: Callable[..., Outcome], url: str, arguments: tuple[str, ...], problem: str
) -> None:
    outcome = covey(*arguments)
    assert outcome.code == 1
    assert problem in outcome.err


def test_check_says_all_that_is_wrong_and_starts_nothing(covey: Callable[..., Outcome], tmp_path: Path) -> None:
    path = tmp_path / "a.toml"
    path.write_text('id = "a"\nport = 70000\n[limits]\nqueue = inf\n')
    outcome = covey("broker", "--config", str(path), "--check")
    assert outcome.code == 1
    assert outcome.err.count("\n") == 2
    path.write_text('id = "a"\n')
    outcome = covey("broker", "--config", str(path), "--check")
    assert (outcome.code, outcome.err) == (0, "")
    assert "nothing is wrong" in outcome.out


@pytest.mark.parametrize("command", [("pub", "{}"), ("status",), ("sub", "x = 1")])
def test_a_broker_that_is_not_there_is_said_in_one_line(
    covey: Callable[..., Outcome], command: tuple[str, ...]
) -> None:
    outcome = covey(*command, "--broker", "ws://127.0.0.1:1")
    assert outcome.code == 1
    assert outcome.err.count("\n") == 1
    assert "127.0.0.1:1" in outcome.err


def test_operators_see_figures_and_tables_in_words(covey: Callable[..., Outcome], url: str) -> None:
    with connect(url, name="ann") as ann:
        ann.subscribe("price < 10", id="cheap")
        assert "subscriptions 1, advertisements 0" in covey("status").out
        assert "subscription cheap: price < 10" in covey("routes").out


def test_a_trace_goes_from_broker_to_broker(covey: Callable[..., Outcome], brokers: Running) -> None:
    a = brokers.start(ServerConfig(BrokerConfig("a"), port=0, peers={"b": ""}))
    b = brokers.start(ServerConfig(BrokerConfig("b"), port=0, peers={"a": a.url}))
    with connect(a.url, name="ann") as ann, connect(b.url) as bob:
        subscription = ann.subscribe("price < 10", id="cheap")
        found = ""
        while "client ann" not in found:
            # The links may still be opening.
            found = covey("trace", '{"price": 5}', "--broker", b.url).out
        assert "→ broker a: entries match" in found
        assert "→ client ann: subscription cheap, price < 10" in found
        assert "× broker a: none of its entries matches" in covey("trace", '{"price": 50}', "--broker", b.url).out
        # Nothing of this was published.
        bob.publish({"price": 1})
        assert subscription.get(5)["price"] == 1


def test_a_token_opens_a_broker_and_its_permissions_hold(
    covey: Callable[..., Outcome], brokers: Running, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "secret").write_text(SECRET)
    server = brokers.start(ServerConfig(BrokerConfig("a"), port=0, security=Security(secret=SECRET.encode())))
    monkeypatch.setenv("COVEY_BROKER", server.url)
    assert "doesn't know this token" in covey("pub", "{}").err
    made = covey("token", "ann", "--secret-file", tmp_path / "secret", "--publish", "price < 10", "--expires", "1h")
    assert verify(made.out.strip(), SECRET.encode(), 0.0).publish == "price < 10"
    (tmp_path / "token").write_text(made.out)
    assert covey("pub", '{"price": 5}', "--token-file", tmp_path / "token").code == 0
    monkeypatch.setenv("COVEY_TOKEN", made.out.strip())
    refused = covey("pub", json.dumps({"price": 50})).err
    assert "isn't among what may be published" in refused
    assert refused.endswith("; no event went out\n")
    assert "HTTP 403" in covey("status").err


@pytest.mark.parametrize("kind", ["csv", "jsonl"])
def test_load_takes_files_as_other_commands_do(
    covey: Callable[..., Outcome], url: str, tmp_path: Path, kind: str
) -> None:
    rules = tmp_path / f"rules.{kind}"
    rows = [("a", "price < 10"), ("b", "price =>"), ("a", "price < 1"), ("c", "price > 5")]
    if kind == "csv":
        rules.write_text("rule,where\n" + "".join(f"{id},{text}\n" for id, text in rows))
    else:
        rules.write_text("".join(json.dumps({"rule": id, "where": text}) + "\n" for id, text in rows))
    command = ("load", "subscriptions", rules, "--name", "night", "--id", "rule", "--filter", "where")
    refused = covey(*command)
    assert refused.code == 1
    assert "subscription 'b': => is not an operator" in refused.err
    assert "subscription 'a' stands in an earlier row too" in refused.err
    assert "2 subscriptions can't be used, so nothing was done" in refused.err
    done = covey(*command, "--on-error", "skip", "--json")
    assert done.code == 0
    assert json.loads(done.out)["subscriptions"] == 2


def test_pub_says_which_lines_went_out(covey: Callable[..., Outcome], url: str, stdin: Callable[[bytes], None]) -> None:
    with connect(url) as ann:
        subscription = ann.subscribe("price >= 0")
        stdin(b'{"price": 1}\n\n' * 300 + b"oops\n" + b'{"price": 2}\n')
        done = covey("pub")
        assert done.code == 1
        assert re.search(r"line 601 isn't JSON: .*; lines 1 to 599 went out$", done.err.strip())
        assert [subscription.get(5)["price"] for _ in range(300)] == [1] * 300
        with pytest.raises(TimeoutError):
            subscription.get(0.1)
    stdin(b"oops\n")
    assert covey("pub").err.endswith("; no line went out\n")


def test_pub_sends_lines_again_that_count_once(
    covey: Callable[..., Outcome], url: str, stdin: Callable[[bytes], None]
) -> None:
    lines = [b'{"x": %d}\n' % number for number in range(5)]
    with connect(url) as ann:
        subscription = ann.subscribe("x >= 0")
        for given in (lines[:3], lines):
            stdin(b"".join(given))
            assert covey("pub", "--name", "loader", "--id", "x").code == 0
        assert [subscription.get(5)["x"] for _ in range(5)] == [0, 1, 2, 3, 4]
        with pytest.raises(TimeoutError):
            subscription.get(0.1)
    stdin(b'{"y": 1}\n')
    assert "line 1 has no 'x' to be known by; no line went out" in covey("pub", "--id", "x").err


def test_neighbours_are_added_listed_and_removed(covey: Callable[..., Outcome], url: str) -> None:
    assert covey("peer", "list").out == ""
    assert covey("peer", "add", "b", "ws://127.0.0.1:9").code == 0
    assert covey("peer", "add", "c").code == 0
    assert json.loads(covey("peer", "list", "--json").out) == [
        {"peer": "b", "url": "ws://127.0.0.1:9", "connected": False},
        {"peer": "c", "url": "", "connected": False},
    ]
    assert covey("peer", "remove", "b").code == 0
    assert re.fullmatch(r"peer +url +connected\nc +- +no\n", covey("peer", "list").out)
    refused = covey("peer", "remove", "b")
    assert (refused.code, refused.err) == (1, f"covey: {url}: 'b' is no neighbour of a (HTTP 404)\n")
    assert "must start with ws://" in covey("peer", "add", "b", "http://x").err


def test_hits_lists_what_subscriptions_matched(covey: Callable[..., Outcome], url: str) -> None:
    with connect(url, name="ann") as ann:
        ann.subscribe("price < 10", id="cheap")
        ann.subscribe("price > 1000", id="dear")
        covey("pub", '{"price": 5}', '{"price": 50}', '{"price": 7}')
        assert covey("hits").out.splitlines() == [
            "hits  client  id     filter",
            "   2  ann     cheap  price < 10",
            "   0  ann     dear   price > 1000",
            "2 subscriptions of clients of a, 2 hits; 1 without any",
        ]
        assert [row["id"] for row in covey("hits", "--fewest", "-n", "1", "--json").rows[0]["rows"]] == ["dear"]
        assert "there is no client 'bob'" in covey("hits", "--client", "bob").err
    assert covey("hits").out == "0 subscriptions of clients of a, 0 hits\n"


@pytest.mark.parametrize("piece", [1, 7, 64, 1 << 16])
def test_pub_puts_lines_together_however_they_come(
    covey: Callable[..., Outcome],
    url: str,
    stdin: Callable[[bytes], None],
    monkeypatch: pytest.MonkeyPatch,
    piece: int,
) -> None:
    monkeypatch.setattr(pub, "PIECE", piece)
    monkeypatch.setattr(pub, "BATCH", 3)
    with connect(url) as ann:
        subscription = ann.subscribe("x >= 0")
        stdin(b"\n".join(b'{"x": %d, "t": "\xc3\xa4"}' % number for number in range(20)))  # the last without its end
        assert covey("pub", "-v").err == "covey: 20 published\n"
        assert [subscription.get(5)["x"] for _ in range(20)] == list(range(20))
        stdin(b'{"x": 1}\n' * 10 + b'{"x": "\xff"}\n' + b'{"x": 2}\n')
        failed = covey("pub").err
        assert re.search(r"line 11 isn't UTF-8: .*; lines 1 to 10 went out$", failed.strip())


def test_pub_says_of_which_lines_nobody_knows(
    covey: Callable[..., Outcome], brokers: Running, stdin: Callable[[bytes], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pub, "BATCH", 5)
    limits = BrokerLimits(publications=4)
    monkeypatch.setenv("COVEY_BROKER", brokers.start(ServerConfig(BrokerConfig("a", limits=limits), port=0)).url)
    stdin(b'{"x": 1}\n' * 4 + b"\n" + b'{"x": 1}\n' * 6)
    assert covey("pub").err.strip().endswith("; lines 1 to 4 went out, and whether lines 6 to 11 did isn't known")
