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
from covey.network.limits import NetworkLimits
from covey.network.tokens import sha256
from covey.routing.config import BrokerLimits, ConfigError
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
        with pytest.raises(FrameError, match="has expired"):
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


@pytest.mark.parametrize("security", [Security(listed={}), Security(certified={"ann": Principal("ann")})])
def test_security_with_nobody_in_it_lets_nobody_in(security: Security) -> None:
    @in_loop
    async def check() -> None:
        async with broker(security=security) as server, aiohttp.ClientSession() as session:
            for path in ("/v1/events?filter=x=1", "/v1/status", "/v1/loads"):
                async with session.get(f"{http(server)}{path}") as response:
                    assert response.status == 401, path
            with pytest.raises(IdentityError):
                await connect(server.url)

    check()


@in_loop
async def test_each_right_opens_its_own_doors_and_admin_all() -> None:
    doors = {
        ("GET", "/v1/status"): {"monitor", "admin"},
        ("GET", "/v1/routes"): {"monitor", "admin"},
        ("GET", "/metrics"): {"monitor", "admin"},
        ("GET", "/v1/loads"): {"monitor", "load", "admin"},
        ("DELETE", "/v1/loads/none"): {"load", "admin"},
        ("PUT", "/v1/loads/mine?client=x"): {"load", "admin"},
        ("PUT", "/v1/profile"): {"admin"},
    }
    async with broker(security=SIGNED) as server, aiohttp.ClientSession() as session:
        for right in ("monitor", "load", "admin", "none"):
            headers = {"Authorization": f"Bearer {token('op', **({} if right == 'none' else {right: True}))}"}
            for (method, path), needed in doors.items():
                async with session.request(method, f"{http(server)}{path}", headers=headers) as response:
                    assert (response.status != 403) == (right in needed), (right, path)


@in_loop
async def test_a_load_is_checked_like_subscriptions() -> None:
    line = b'{"id": "all", "filter": "TRUE"}\n'
    async with broker(security=SIGNED) as server, aiohttp.ClientSession() as session:
        for rights in ({"admin": True, "subscribe": "FALSE"}, {"load": True, "subscribe": "price < 10"}):
            headers = {"Authorization": f"Bearer {token('eve', **rights)}"}
            url = f"{http(server)}/v1/loads/mine?client=eve/desk"
            async with session.put(url, data=line, headers=headers) as response:
                assert response.status == 422
                assert "asks for more than is allowed" in await response.text()
        headers = {"Authorization": f"Bearer {token('op', load=True)}"}
        async with session.put(url, data=line, headers=headers) as response:
            assert response.status == 200
        # Whoever loads more than its client may have doesn't give it more.
        async with (
            connect(server.url, token=token("bob")) as bob,
            connect(server.url, name="desk", token=token("eve", subscribe="price < 10")),
        ):
            await bob.publish([{"price": 50}, {"price": 5}], durable=True)
            assert server.engine.broker.clients.delivered == 1


@in_loop
async def test_a_subscription_made_under_a_wider_permission_delivers_no_more_than_the_narrowed_one_allows() -> None:
    async with broker(security=SIGNED) as server, connect(server.url, token=token("bob")) as bob:
        async with connect(server.url, name="desk", token=token("ann")) as ann:
            await ann.subscribe("price IS NOT NULL", id="all", durable=True)
        await bob.publish([{"price": 50}, {"price": 5}], durable=True)
        async with connect(server.url, name="desk", token=token("ann", subscribe="price < 10")) as ann:
            subscription = await ann.subscribe("price < 10", id="other")
            await bob.publish([{"price": 60}, {"price": 6}])
            assert (await subscription.get())["price"] == 6
            assert server.engine.broker.clients.delivered == 2


@pytest.mark.parametrize("how", ["header", "none"])
def test_a_web_page_cannot_take_a_queue_by_a_picture(how: str) -> None:
    @in_loop
    async def check() -> None:
        async with broker() as server, aiohttp.ClientSession() as session:
            async with connect(server.url, name="ann") as ann:
                await ann.subscribe("x > 0", id="orders", durable=True)
            async with connect(server.url) as bob:
                await bob.publish([{"x": number} for number in range(1, 101)], durable=True)
            headers = {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Dest": "image"} if how == "header" else {}
            for query in (
                "filter=FALSE&client=ann&id=orders&durable=true", "filter=FALSE&client=ann&id=orders",
                "filter=FALSE&client=ann", "filter=FALSE&client=ann&id=new&durable=true",
            ):  # fmt: skip
                async with session.get(f"{http(server)}/v1/events?{query}", headers=headers) as response:
                    assert response.status in ((403,) if headers else (404, 409)), query
            client = server.engine.broker.clients.get("ann")
            assert client is not None
            assert len(client.queue) == 100
            assert client.claims.subscriptions["orders"].text == "x > 0"

    check()


@in_loop
async def test_a_page_of_another_site_is_told_apart_without_an_origin() -> None:
    async with (
        broker(security=Security(origins=("https://desk.example",))) as server,
        aiohttp.ClientSession() as session,
    ):
        for headers, path, status in (
            ({"Sec-Fetch-Site": "cross-site"}, "/v1/status", 403),
            ({"Sec-Fetch-Site": "same-site"}, "/v1/status", 403),
            ({"Sec-Fetch-Site": "same-origin"}, "/v1/status", 200),
            ({"Sec-Fetch-Site": "none"}, "/v1/status", 200),
            ({"Sec-Fetch-Site": "cross-site", "Origin": "https://desk.example"}, "/v1/status", 200),
            ({"Sec-Fetch-Site": "cross-site", "Origin": "https://evil.example"}, "/v1/status", 403),
            ({"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate"}, "/v1/status", 403),
        ):
            async with session.get(f"{http(server)}{path}", headers=headers) as response:
                assert response.status == status, headers


@in_loop
async def test_what_is_there_is_replaced_only_when_asked() -> None:
    async with broker() as server, aiohttp.ClientSession() as session:
        url = f"{http(server)}/v1/clients/ann/subscriptions/s"
        for text, query, status in (
            ("x > 1", "", 200), ("x > 1", "", 200), ("x > 2", "", 409), ("x > 2", "?replace=true", 200),
        ):  # fmt: skip
            async with session.put(url + query, json={"filter": text, "durable": True}) as response:
                assert response.status == status, (text, query)
        async with connect(server.url, name="ann"), session.put(url, json={"filter": "x > 2"}) as response:
            assert response.status == 409


@in_loop
async def test_a_probe_may_ask_for_health_by_any_name() -> None:
    async with broker() as server, aiohttp.ClientSession() as session:
        for path in ("/healthz", "/readyz"):
            async with session.get(f"{http(server)}{path}", headers={"Host": "10.1.2.3:7400"}) as response:
                assert response.status == 200
        async with session.get(f"{http(server)}/v1/status", headers={"Host": "10.1.2.3:7400"}) as response:
            assert response.status == 403


@needs_openssl
def test_a_common_name_does_not_count_beside_other_names(tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    server_files, files = authority.sign("a"), authority.sign("ann", names="DNS:mallory")
    security = Security(certified={"ann": Principal("ann")})

    @in_loop
    async def check() -> None:
        async with broker(tls=server_files, security=security) as server:
            with pytest.raises(IdentityError):
                await connect(server.url, tls=client_context(authority.certificate, files.certificate, files.key))

    check()


@in_loop
async def test_rates_are_of_a_principal_over_all_of_its_connections() -> None:
    limits = NetworkLimits(event_rate=50.0)
    async with broker(security=SIGNED, limits=limits) as server:
        clients = [await connect(server.url, token=token("ann")) for _ in range(5)]
        started = time.monotonic()
        for _ in range(2):
            await asyncio.gather(*(client.publish([{"x": 1}] * 20) for client in clients))
        # 200 events at 50 a second, of which one second's worth is there at first.
        assert time.monotonic() - started > 1.0
        for client in clients:
            await client.close()


@in_loop
async def test_quotas_are_of_a_principal_over_all_of_its_names() -> None:
    quotas = BrokerLimits(principal_subscriptions=3, principal_clients=2)
    async with broker(security=SIGNED, broker_limits=quotas) as server:
        for name in ("one", "two"):
            async with connect(server.url, name=name, token=token("ann")) as ann:
                await ann.subscribe("x = 1", id="s", durable=True)
        async with connect(server.url, name="three", token=token("ann")) as ann:
            with pytest.raises(RefusedError, match="principal_clients"):
                await ann.subscribe("x = 1", id="s", durable=True)
            await ann.subscribe("x = 1")
            with pytest.raises(RefusedError, match="principal_subscriptions"):
                await ann.subscribe("x = 2")
        async with connect(server.url, name="one", token=token("bob")) as bob:
            await bob.subscribe("x = 1", id="s", durable=True)


@in_loop
async def test_nobody_publishes_in_a_session_that_may_more() -> None:
    async with (
        broker(security=SIGNED) as server,
        aiohttp.ClientSession() as session,
        connect(server.url, name="desk", token=token("ann")),
    ):
        url = f"{http(server)}/v1/events?client=desk"
        headers = {"Authorization": f"Bearer {token('ann', publish='FALSE')}"}
        async with session.post(url, json={"x": 1}, headers=headers) as response:
            assert response.status == 422
            assert "other permissions" in await response.text()
        headers = {"Authorization": f"Bearer {token('ann')}"}
        async with session.post(url, json={"x": 1}, headers=headers) as response:
            assert response.status == 202
