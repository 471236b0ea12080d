"""What the console answers, over HTTP from real servers."""

from __future__ import annotations

import asyncio
import re
from pathlib import Path
from typing import Any
from urllib.parse import urljoin

import aiohttp
import pytest

import covey
from covey.console import filter_questions, history
from covey.network import Principal, Security, connect, sign
from covey.routing.config import BrokerLimits, PruningOptions
from covey.simulation.uniform_chances import UniformChances
from tests.console.running import looking, with_console
from tests.network.running import broker, http, in_loop, linked, until

PAGE = Path(covey.__file__).parent / "console" / "page"
SECRET = b"a secret of thirty-two bytes, or more"


@in_loop
async def test_the_page_may_load_nothing_from_elsewhere_and_is_asked_for_again() -> None:
    async with with_console() as server, aiohttp.ClientSession() as session:
        async with session.get(f"{http(server)}/") as response:
            policy = response.headers["Content-Security-Policy"]
            assert response.status == 200
            assert "default-src 'none'" in policy
            assert "script-src 'self';" in policy
            assert "unsafe" not in policy
            tag = response.headers["ETag"]
        async with session.get(f"{http(server)}/", headers={"If-None-Match": tag}) as response:
            assert (response.status, await response.read()) == (304, b"")
        for name, kind in (("main.js", "text/javascript"), ("style.css", "text/css"), ("icon.svg", "image/svg+xml")):
            async with session.get(f"{http(server)}/console/{name}") as response:
                assert (response.status, response.content_type) == (200, kind)
        async with session.get(f"{http(server)}/console/../pages.py") as response:
            assert response.status == 404


@in_loop
async def test_behind_a_path_the_page_asks_for_everything_under_that_path() -> None:
    """A proxy that serves a broker under a path takes the path away; so nothing may be asked for from the root."""
    behind = "https://example.org/messages/a/"
    async with with_console() as server, aiohttp.ClientSession() as session:
        asked = {""}
        for name in ("", *(f"console/{path.name}" for path in PAGE.glob("*.js"))):
            async with session.get(f"{http(server)}/{name}") as response:
                assert response.status == 200, name
                text = await response.text()
            # What a page names, and what a module imports, which is found beside the module.
            asked |= set(re.findall(r"""(?:href|src)="([^"#][^"]*)\"""", text))
            asked |= {f"console/{path}" for path in re.findall(r"""from "\./([^"]+)\"""", text)}
            asked |= set(re.findall(r"""[("`'](/?v1/[a-z/]+)""", text))
        assert {"console/main.js", "console/api.js", "v1/console/who", "v1/events"} <= asked
        for path in asked:
            assert urljoin(behind, path).startswith(behind), path
            if not path.startswith("v1"):
                async with session.get(f"{http(server)}/{path}") as response:
                    assert response.status == 200, path


@in_loop
async def test_a_server_without_the_door_serves_no_page() -> None:
    async with broker() as server, aiohttp.ClientSession() as session, session.get(f"{http(server)}/") as response:
        assert response.status == 404


PATHS = (
    "overview", "history", "routes", "routes/told?peer=b", "routes/heard?peer=b", "clients", "claims?client=x",
    "subscriptions",
)  # fmt: skip


@in_loop
async def test_where_there_is_authentication_everything_needs_an_operator() -> None:
    security = Security(secret=SECRET)
    async with with_console(security=security) as server:
        expires = server.engine.clock() + 60
        plain = sign(Principal("ann", expires=expires), SECRET)
        admin = sign(Principal("olga", expires=expires, admin=True), SECRET)
        for token, status in ((None, 401), (plain, 403), ("nonsense", 401)):
            async with looking(server, token) as look:
                for path in PATHS:
                    assert (await look.answer(path))[0] == status, (path, token)
                assert (await look.get("who"))["admin"] is False
        for path in ("playground", "route"):
            for token, status in ((None, 401), (plain, 403)):
                headers = {} if token is None else {"Authorization": f"Bearer {token}"}
                async with (
                    aiohttp.ClientSession(headers=headers) as session,
                    session.post(f"{http(server)}/v1/console/{path}", json={"event": "{}"}) as response,
                ):
                    assert response.status == status
        async with looking(server, admin) as look:
            assert await look.get("who") == {"admin": True, "name": "olga", "problem": None}
            assert (await look.get("overview"))["broker"] == "a"
            assert (await look.post("playground", {"filter": "x < 1"}))["filter"]["text"] == "x < 1"


@in_loop
async def test_the_overlay_is_known_beyond_neighbours_whichever_end_opened_the_links() -> None:
    async with with_console("a", {"b": ""}) as a, broker("b", {"a": a.url, "c": ""}) as b:
        async with broker("c", {"b": b.url}) as c:
            await until(lambda: linked(a, b, c))
            async with connect(c.url, name="carl") as carl, connect(a.url) as ann, looking(a) as look:
                wishes = await carl.subscribe("x > 0")
                await ann.publish([{"x": 1}, {"x": 2}, {"x": -1}])
                await wishes.get()
                await wishes.get()
                found = await _overview(look, lambda found: _state(found, "c") == "up")
                figures = {one["name"]: one["figures"] for one in found["brokers"]}
                assert [one["name"] for one in found["brokers"]] == ["a", "b", "c"]
                assert figures["a"]["published"] == 3
                assert (figures["c"]["subscriptions"], figures["c"]["connected"]) == (1, 1)
                found = await _overview(look, lambda found: found["links"][1]["at_b"]["received"] == 2)
                assert found["links"][0]["at_a"]["sent"] == 2
        found = await _overview_of(a, lambda found: _state(found, "c") == "down")
        assert _state(found, "b") == "up"


async def _overview_of(server: Any, fits: Any) -> Any:
    async with looking(server) as look:
        return await _overview(look, fits)


async def _overview(look: Any, fits: Any) -> Any:
    while not fits(found := await look.get("overview")):
        await asyncio.sleep(0.1)
    return found


def _state(found: Any, name: str) -> str | None:
    return next((one["state"] for one in found["brokers"] if one["name"] == name), None)


@in_loop
async def test_an_event_is_followed_over_all_brokers_that_it_would_cross() -> None:
    async with (
        with_console("a", {"b": ""}) as a,
        broker("b", {"a": a.url, "c": "", "d": ""}) as b,
        broker("c", {"b": b.url}) as c,
        broker("d", {"b": b.url}) as d,
    ):
        await until(lambda: linked(a, b, c, d))
        async with connect(c.url, name="carl") as carl, looking(a) as look:
            await carl.subscribe("x > 0", id="positive")
            found = await look.post("route", {"event": '{"x": 1}'})
            assert found["silent"] == []
            assert sorted(found["passages"]) == ["a", "b", "c"]
            assert found["passages"]["c"]["clients"] == [
                {"client": "carl", "subscriptions": {"positive": "x > 0"}, "matched": 1}
            ]
            not_taken = next(hop for hop in found["passages"]["b"]["links"] if hop["peer"] == "d")
            assert (not_taken["goes"], not_taken["why"]) == (False, "none of its entries matches")
            assert sorted((await look.post("route", {"event": '{"x": -1}'}))["passages"]) == ["a"]
            assert "not JSON" in (await look.post("route", {"event": "{"}))["error"]


@in_loop
async def test_routes_say_what_was_received_told_and_suppressed() -> None:
    async with with_console("a", {"b": ""}) as a, broker("b", {"a": a.url}) as b:
        await until(lambda: linked(a, b))
        async with connect(a.url, name="ann") as ann, connect(b.url) as bob, looking(a) as look:
            for id, text in (("wide", "x < 5"), ("narrow", "x < 1"), ("same", "x < 5")):
                await ann.subscribe(text, id=id)
            await bob.subscribe("y = 1")
            numbers = (await look.get("routes"))["links"][0]["tables"]["subscriptions"]
            assert (numbers["heard"], numbers["entries"], numbers["told"]) == (1, 3, 1)
            assert numbers["fates"] == {"forwarded": 1, "covering": 1, "identity": 1}
            covered = await look.get("routes/told", peer="b", fate="covering")
            assert covered["rows"] == [
                {"from": "c:ann", "filter": "x < 1", "fate": "covering", "by": "x < 5", "told": "x < 5"}
            ]
            assert (await look.get("routes/told", peer="b", q="X < 5"))["total"] == 2
            assert (await look.get("routes/heard", peer="b"))["rows"] == [{"filter": "y = 1", "pruned": None}]
            assert (await look.get("routes/told", peer="b", limit="1", offset="2"))["rows"][0]["filter"] == "x < 5"
            for path, query in (
                ("routes/told", {"peer": "nobody"}),
                ("routes/told", {"peer": "b", "table": "chairs"}),
                ("routes/told", {"peer": "b", "offset": "-1"}),
                ("routes/told", {"peer": "b", "q": "x" * 2_000}),
            ):
                status, problem = await look.answer(path, **query)
                assert status == 400
                assert "\n" not in problem["error"]


@in_loop
async def test_routes_show_the_smaller_filter_that_a_pruned_entry_is_matched_by() -> None:
    pruned = {"pruning": PruningOptions(share=1.0), "chances": UniformChances()}
    async with with_console("a", {"b": ""}, **pruned) as a, broker("b", {"a": a.url}) as b:
        await until(lambda: linked(a, b))
        async with connect(b.url) as bob, looking(a) as look:
            await bob.subscribe("x = 1 AND y = 2 AND z = 3")
            numbers = (await look.get("routes"))["links"][0]["tables"]["subscriptions"]
            (row,) = (await look.get("routes/heard", peer="b"))["rows"]
            assert (numbers["heard"], numbers["pruned"]) == (1, 1)
            assert row["filter"] == "x = 1 AND y = 2 AND z = 3"
            assert covey.parse(row["pruned"]).covers(covey.parse(row["filter"]))


@in_loop
async def test_a_client_that_takes_nothing_is_slow_and_one_that_left_is_away() -> None:
    limits = BrokerLimits(credit=2, buffer=100)
    async with with_console(broker_limits=limits) as server, looking(server) as look:
        async with connect(server.url, name="dora") as dora:
            await dora.subscribe("x >= 0", id="kept", durable=True, lease=900)
        async with connect(server.url, name="sam") as sam, connect(server.url, name="pat") as pat:
            await sam.subscribe("x >= 0", id="all")
            await pat.publish([{"x": number} for number in range(50)], durable=True)
            rows = {row["client"]: row for row in (await look.get("clients"))["rows"]}
            assert rows["sam"]["state"] == "slow"
            assert rows["sam"]["buffered"] > 0
            assert (rows["dora"]["state"], rows["dora"]["queued"]) == ("away", 50)
            assert 0 < rows["dora"]["lease"] <= 900
            assert rows["pat"]["state"] == "connected"
            assert [row["client"] for row in (await look.get("clients", state="slow"))["rows"]] == ["sam"]
            assert (await look.get("clients", q="DOR"))["total"] == 1
            claim = (await look.get("claims", client="dora"))["rows"][0]
            assert claim["hits"] == 50
            assert (claim["id"], claim["filter"], claim["durable"], claim["lease"]) == ("kept", "x >= 0", True, 900)
            assert (await look.answer("claims", client="nobody"))[0] == 400


@in_loop
async def test_the_last_minutes_counters_are_there_for_whoever_comes_later(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(history, "SAMPLE_SECONDS", 0.01)
    monkeypatch.setattr(history, "SAMPLES", 20)
    async with with_console(peers={"b": ""}) as a, broker("b", {"a": a.url}) as b, looking(a) as look:
        await until(lambda: linked(a, b))
        async with connect(b.url) as ann, connect(a.url) as pub:
            asked = await ann.subscribe("x >= 0")
            own = await ann.subscribe("y >= 0")
            await pub.publish([{"x": number} for number in range(7)])
            assert [(await asked.get())["x"] for _ in range(7)] == list(range(7))
            async with connect(a.url) as late:
                assert (await late.subscribe("y >= 0")).id
                await ann.publish([{"y": 1}])
                assert (await own.get())["y"] == 1
        counts: list[list[float]] = []
        while len(counts) < 20 or counts[-1][1:] != [7, 1, 1, 7]:
            found = await look.get("history")
            counts = found["samples"]
        assert found["counted"] == ["published", "delivered", "received", "sent"]
        assert len(counts) == 20
        assert counts == sorted(counts)


@in_loop
async def test_subscriptions_stand_under_those_that_cover_them() -> None:
    async with with_console() as server, connect(server.url, name="ann") as ann, looking(server) as look:
        texts = ("x < 9", "x < 5", "x < 3 AND y = 1", "y = 1", "z = 1", "x < 9")
        for at, text in enumerate(texts):
            await ann.subscribe(text, id=str(at))
        top = await look.get("subscriptions")
        rows = {row["filter"]: row for row in top["rows"]}
        assert {text: row["covers"] for text, row in rows.items()} == {"x < 9": 2, "y = 1": 1, "z = 1": 0}
        assert (rows["x < 9"]["owned"], top["filters"]) == (2, 5)
        below = await look.get("subscriptions", under=rows["x < 9"]["key"])
        assert [row["filter"] for row in below["rows"]] == ["x < 5"]
        # What two filters cover is under both.
        for parent in (below["rows"][0], rows["y = 1"]):
            found = await look.get("subscriptions", under=parent["key"])
            assert [row["filter"] for row in found["rows"]] == ["x < 3 AND y = 1"]
        assert [row["filter"] for row in (await look.get("subscriptions", q="z ="))["rows"]] == ["z = 1"]
        assert (await look.answer("subscriptions", under="gone"))[0] == 400


@in_loop
async def test_filters_that_mean_the_same_are_all_to_be_found() -> None:
    async with with_console() as server, connect(server.url) as ann, looking(server) as look:
        for text in ("x < 5", "NOT x >= 5", "5 > x"):
            await ann.subscribe(text)
        seen: set[str] = set()
        waiting = [""]
        while waiting:
            rows = [row for under in waiting for row in (await look.get("subscriptions", under=under))["rows"]]
            waiting = [row["key"] for row in rows if row["covers"]]
            seen |= {row["key"] for row in rows}
        assert len(seen) == (await look.get("subscriptions"))["filters"]


@in_loop
async def test_the_playground_explains_a_match_a_miss_and_a_relation() -> None:
    async with with_console() as server, connect(server.url, name="ann") as ann, looking(server) as look:
        await ann.subscribe("x < 100", id="wide")
        await ann.subscribe("x < 1", id="narrow")
        found = await look.post("playground", {"filter": "x < 5 AND y = 1", "event": '{"x": 3, "y": 1}'})
        assert found["explanation"]["matched"] is True
        assert [part["text"] for part in found["filter"]["parts"]] == ["all of", "x < 5", "y = 1"]
        assert [row["filter"] for row in found["others"]["covered_by"]] == ["x < 100"]
        assert found["others"]["covers"] == []
        missed = await look.post("playground", {"filter": "x < 5", "event": '{"x": 7}', "other": "x < 9"})
        assert missed["explanation"]["matched"] is False
        assert missed["explanation"]["steps"][0]["note"] == "x is 7"
        assert [row["owners"] for row in missed["others"]["covers"]] == [["client ann: narrow"]]
        assert (missed["other"]["covered"], missed["other"]["covers"]) == (True, False)
        assert 5 <= missed["other"]["only_other"]["x"] < 9


@in_loop
async def test_the_playground_reads_other_dialects() -> None:
    async with with_console() as server, looking(server) as look:
        question = {"filter": "hop < 5", "dialect": "cesql", "event": '{"hop": "3"}'}
        found = await look.post("playground", question)
        assert found["filter"]["text"] == "cesql_int(hop) < 5"
        assert found["explanation"]["matched"] is True


@pytest.mark.parametrize(
    ("question", "part", "words", "position"),
    [
        ({"filter": "x <", "dialect": "jms"}, "filter", "ends too early", 3),
        ({"filter": "x < AND y"}, "filter", "needs a condition", 4),
        ({"filter": "x < 5", "event": "{"}, "event", "not JSON", None),
        ({"filter": "x < 5", "event": "[1]"}, "event", "not an object", None),
        ({"filter": "x < 5", "other": "x =< 5"}, "other", "did you mean <=", 2),
    ],
)
@in_loop
async def test_what_can_not_be_read_is_told_in_one_line_with_its_place(
    question: dict[str, str], part: str, words: str, position: int | None
) -> None:
    async with with_console() as server, looking(server) as look:
        problem = (await look.post("playground", question))[part]["problem"]
        assert words in problem["message"]
        assert "\n" not in problem["message"]
        assert problem.get("position") == position


@in_loop
async def test_a_question_that_is_no_question_is_refused() -> None:
    async with with_console() as server, looking(server) as look:
        assert "can't be read" in (await look.post("playground", {"filter": 5}))["error"]


@in_loop
async def test_what_is_too_much_to_compare_is_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(filter_questions, "MOST_FILTERS", 3)
    monkeypatch.setattr(filter_questions, "MOST_ENTRIES", 5)
    async with with_console() as server, connect(server.url) as ann, looking(server) as look:
        for number in range(10):
            await ann.subscribe(f"x = {number}")
        found = await look.get("subscriptions")
        assert (found["filters"], found["more"]) == (3, 7)
        assert (await look.post("playground", {"filter": "x < 5"}))["left_out"] == 7
