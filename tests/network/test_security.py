"""Who may connect, and what they may do then."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from covey.network import IdentityError, NetworkError, Principal, RefusedError, Security, client_context, connect, sign
from covey.network.errors import FrameError
from covey.network.tokens import sha256
from covey.routing.config import ConfigError
from tests.network.certificates import Authority, needs_openssl
from tests.network.running import broker, http, in_loop, linked, until

SECRET = b"0123456789abcdef0123456789abcdef"
SIGNED = Security(secret=SECRET)


def token(name: str = "ann", seconds: float = 600, **rights: Any) -> str:
    return sign(Principal(name, expires=time.time() + seconds, **rights), SECRET)


@in_loop
async def test_without_a_token_nothing_but_health_is_answered() -> None:
    async with broker(security=SIGNED) as server, aiohttp.ClientSession() as session:
        for method, path in (
            ("GET", "/v1/client"), ("GET", "/v1/events?filter=x=1"), ("POST", "/v1/events"), ("GET", "/v1/status"),
            ("GET", "/v1/routes"), ("POST", "/v1/trace"), ("GET", "/metrics"), ("GET", "/v1/clients/ann/subscriptions"),
            ("PUT", "/v1/clients/ann/subscriptions/s"), ("DELETE", "/v1/clients/ann/subscriptions/s"),
        ):  # fmt: skip
            async with session.request(method, f"{http(server)}{path}", json={}) as response:
                assert response.status == 401, path
        for path in ("/healthz", "/readyz"):
            async with session.get(f"{http(server)}{path}") as response:
                assert response.status == 200
        with pytest.raises(IdentityError):
            await connect(server.url)


@in_loop
async def test_expired_forged_and_foreign_tokens_are_refused_and_good_ones_go_on() -> None:
    async with broker(security=SIGNED) as server, connect(server.url, token=token()) as ann:
        subscription = await ann.subscribe("x = 1")
        good = token("eve")
        bad = [
            token("eve", seconds=-1),
            good[:-2] + ("AA" if not good.endswith("AA") else "BB"),
            sign(Principal("eve"), SECRET[::-1]),
            sign(Principal("b", broker=True), SECRET),
            "nonsense",
            "x" * 8_000,
        ]
        for one in bad:
            with pytest.raises(IdentityError):
                await connect(server.url, token=one)
        await ann.publish({"x": 1})
        assert (await subscription.get())["x"] == 1


@in_loop
async def test_a_session_ends_with_its_token() -> None:
    async with broker(security=SIGNED) as server, connect(server.url, token=token(seconds=0.5)) as ann:
        subscription = await ann.subscribe("x = 1")
        with pytest.raises(FrameError, match="the token has expired"):
            await subscription.get()


@in_loop
async def test_permissions_are_filters_and_covering_decides() -> None:
    rights = {"publish": "kind = 'quote'", "subscribe": "price < 100", "advertise": "kind = 'quote'"}
    async with (
        broker(security=SIGNED) as server,
        connect(server.url, token=token("ann", **rights)) as ann,
        connect(server.url, token=token("bob")) as bob,
    ):
        everything = await bob.subscribe("price IS NOT NULL")
        subscription = await ann.subscribe("price < 10")
        with pytest.raises(RefusedError, match="asks for more than is allowed"):
            await ann.subscribe("price < 101")
        with pytest.raises(RefusedError, match="isn't among what may be published"):
            await ann.publish([{"kind": "quote", "price": 1}, {"kind": "order", "price": 2}])
        with pytest.raises(RefusedError, match="asks for more than is allowed"):
            await ann.advertise("price < 10")
        await ann.advertise("kind = 'quote' AND price < 10")
        await ann.publish({"kind": "quote", "price": 3})
        assert (await subscription.get())["price"] == 3
        # Nothing of the refused publication went anywhere.
        assert (await everything.get())["price"] == 3


@in_loop
async def test_permissions_hold_over_http_and_streams_too() -> None:
    rights = {"publish": "kind = 'quote'", "subscribe": "price < 100"}
    headers = {"Authorization": f"Bearer {token('ann', **rights)}"}
    async with broker(security=SIGNED) as server, aiohttp.ClientSession(headers=headers) as session:
        async with session.post(f"{http(server)}/v1/events", json={"kind": "order"}) as response:
            assert response.status == 422
        async with session.post(f"{http(server)}/v1/events", json={"kind": "quote"}) as response:
            assert response.status == 202
        async with session.get(f"{http(server)}/v1/events", params={"filter": "price < 101"}) as response:
            assert response.status == 422
        claim = {"filter": "price < 101", "durable": True}
        async with session.put(f"{http(server)}/v1/clients/x/subscriptions/s", json=claim) as response:
            assert response.status == 422
        async with session.get(f"{http(server)}/v1/status") as response:
            assert response.status == 403


@in_loop
async def test_nobody_reaches_the_subscriptions_of_another_principal() -> None:
    async with broker(security=SIGNED) as server:
        async with connect(server.url, name="desk", token=token("ann")) as ann:
            await ann.subscribe("x = 1", id="s", durable=True)
        async with connect(server.url, name="desk", token=token("eve")) as eve:
            assert eve.kept == frozenset()
        headers = {"Authorization": f"Bearer {token('eve')}"}
        async with aiohttp.ClientSession(headers=headers) as session:
            for name in ("desk", "ann%2Fdesk", "..%2Fann%2Fdesk"):
                async with session.get(f"{http(server)}/v1/clients/{name}/subscriptions") as response:
                    assert await response.json() == []
        assert server.engine.broker.clients.get("ann/desk") is not None


@in_loop
async def test_listed_tokens_open_the_broker_and_admins_see_its_tables() -> None:
    listed = {sha256("open sesame"): Principal("ops", admin=True), sha256("old"): Principal("old", expires=1.0)}
    async with broker(security=Security(listed=listed)) as server, aiohttp.ClientSession() as session:
        for text, status in (("open sesame", 200), ("old", 401), ("sesame", 401)):
            headers = {"Authorization": f"Bearer {text}"}
            async with session.get(f"{http(server)}/v1/status", headers=headers) as response:
                assert response.status == status


@in_loop
async def test_web_pages_of_other_origins_cannot_use_a_broker_of_this_machine() -> None:
    async with (
        broker(security=Security(origins=("https://desk.example",))) as server,
        aiohttp.ClientSession() as session,
    ):
        url = f"{http(server)}/v1/events"
        for headers, status in (
            ({"Origin": "https://evil.example"}, 403),
            ({"Origin": "null"}, 403),
            ({"Host": f"evil.example:{server.port}"}, 403),
            ({"Origin": http(server)}, 202),
            ({"Origin": "https://desk.example"}, 202),
            ({"Host": f"localhost:{server.port}"}, 202),
        ):
            async with session.post(url, json={"x": 1}, headers=headers) as response:
                assert response.status == status, headers
        with pytest.raises(aiohttp.WSServerHandshakeError):
            await session.ws_connect(f"{server.url}/v1/client", headers={"Origin": "https://evil.example"})


@in_loop
async def test_a_broker_knows_its_neighbours_by_a_token_of_the_shared_secret() -> None:
    async with (
        broker("a", {"b": ""}, security=SIGNED) as a,
        broker("b", {"a": a.url}, security=SIGNED) as b,
        aiohttp.ClientSession() as session,
    ):
        await until(lambda: linked(a, b))
        for one in (None, token("b"), sign(Principal("c", broker=True), SECRET)):
            headers = {"Covey-Broker": "b"} | ({} if one is None else {"Authorization": f"Bearer {one}"})
            async with session.get(f"{http(a)}/v1/link", headers=headers) as response:
                assert response.status == 401
        assert linked(a, b)


@needs_openssl
def test_brokers_and_clients_know_each_other_by_certificates(tmp_path: Path) -> None:
    authority, other = Authority(tmp_path / "ours"), Authority(tmp_path / "theirs")
    files = {name: authority.sign(name) for name in ("a", "b", "ann", "mallory")}
    foreign = other.sign("ann")
    security = Security(certified={"ann": Principal("ann", subscribe="price < 100")})

    def context(name: str) -> Any:
        return client_context(authority.certificate, files[name].certificate, files[name].key)

    @in_loop
    async def check() -> None:
        async with (
            broker("a", {"b": "", "c": ""}, tls=files["a"], security=security) as a,
            broker("b", {"a": a.url}, tls=files["b"], security=security) as b,
        ):
            await until(lambda: a.engine.broker.links["b"].synced and b.engine.broker.links["a"].synced)
            async with connect(a.url, tls=context("ann")) as ann, connect(b.url, tls=context("ann")) as bob:
                subscription = await ann.subscribe("price < 10")
                await bob.publish({"price": 1})
                assert (await subscription.get())["price"] == 1
                with pytest.raises(RefusedError):
                    await ann.subscribe("price < 200")
            with pytest.raises(IdentityError):
                await connect(a.url, tls=context("mallory"))
            with pytest.raises(IdentityError):
                await connect(a.url, tls=client_context(authority.certificate))
            with pytest.raises(NetworkError):
                await connect(a.url, tls=client_context(authority.certificate, foreign.certificate, foreign.key))
            with pytest.raises(NetworkError):
                await connect(a.url)
            # A certificate for another name doesn't make one a neighbour.
            async with broker("c", {"a": a.url}, tls=files["mallory"], security=security):
                await asyncio.sleep(0.5)
                assert not a.engine.broker.links["c"].up

    check()


@needs_openssl
def test_a_broker_does_not_link_to_one_whose_certificate_is_for_another_name(tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    a_files, b_files, wrong = authority.sign("a"), authority.sign("b"), authority.sign("x")

    @in_loop
    async def check() -> None:
        async with broker("a", {"b": ""}, tls=wrong) as a, broker("b", {"a": a.url}, tls=b_files) as b:
            await asyncio.sleep(0.5)
            assert not b.engine.broker.links["a"].up
        async with broker("a", {"b": ""}, tls=a_files) as a, broker("b", {"a": a.url}, tls=b_files) as b:
            await until(lambda: b.engine.broker.links["a"].synced)

    check()


def test_a_name_cannot_be_a_neighbours_and_a_clients() -> None:
    with pytest.raises(ConfigError, match="neighbour and a client"):
        broker("a", {"b": ""}, security=Security(certified={"b": Principal("b")}))
