"""Who may connect, after the files that say so have changed."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from pathlib import Path

import aiohttp
import pytest

from covey.network import IdentityError, NetworkError, RefusedError, Server, connect, identity
from covey.network.configuration_file import load
from covey.network.errors import FrameError
from covey.network.tls import client_context
from covey.network.tokens import sha256
from tests.network.certificates import Authority, needs_openssl
from tests.network.running import http, in_loop, linked, until


def listed(**permissions: str) -> str:
    """A file of tokens; each is called like its principal."""
    return "".join(f'[{name}]\nsha256 = "{sha256(name)}"\n{text}\n' for name, text in permissions.items())


class Files:
    """A broker's files."""

    def __init__(self, directory: Path, tokens: str, more: str = "") -> None:
        self.tokens = directory / "tokens.toml"
        self.tokens.write_text(tokens)
        self.config = directory / "a.toml"
        self.config.write_text(f'id = "a"\nport = 0\n{more}[security]\ntokens_file = "tokens.toml"\n')

    def server(self) -> Server:
        return Server(load(self.config, {}))

    def become(self, tokens: str) -> None:
        """As editors and deployments do it."""
        new = self.tokens.with_suffix(".new")
        new.write_text(tokens)
        os.replace(new, self.tokens)


@in_loop
async def test_a_token_that_was_removed_ends_its_sessions_and_streams(tmp_path: Path) -> None:
    files = Files(tmp_path, listed(ann="", bob=""))
    headers = {"Authorization": "Bearer ann"}
    async with (
        files.server() as server,
        connect(server.url, token="bob") as bob,
        connect(server.url, token="ann") as ann,
        aiohttp.ClientSession(headers=headers) as session,
        session.get(f"{http(server)}/v1/events?filter=x=1") as stream,
    ):
        subscription = await ann.subscribe("x = 1")
        kept = await bob.subscribe("x = 1")
        files.become(listed(bob=""))
        with pytest.raises(FrameError, match="isn't a token that this broker knows"):
            await subscription.get()
        assert b"event: closed" in await stream.content.read()
        await bob.publish({"x": 1})
        assert (await kept.get())["x"] == 1
        with pytest.raises(IdentityError):
            await connect(server.url, token="ann")
        files.become("")
        with pytest.raises(FrameError):
            await kept.get()


@in_loop
async def test_permissions_that_were_narrowed_hold_at_once_for_what_stands(tmp_path: Path) -> None:
    files = Files(tmp_path, listed(ann="", bob=""))
    async with (
        files.server() as server,
        connect(server.url, token="ann", name="desk") as ann,
        connect(server.url, token="bob") as bob,
    ):
        lasting = await ann.subscribe("x > 0", id="lasting", durable=True)
        fleeting = await ann.subscribe("x > 0", id="fleeting")
        await bob.publish({"x": 90}, durable=True)
        assert (await lasting.get())["x"] == 90
        assert (await fleeting.get())["x"] == 90
        files.become(listed(ann='subscribe = "x < 10"\npublish = "FALSE"', bob=""))
        assert await server.reload()
        await bob.publish([{"x": 91}, {"x": 2}], durable=True)
        await bob.publish([{"x": 92}, {"x": 3}])
        assert [(await lasting.get())["x"] for _ in range(2)] == [2, 3]
        assert [(await fleeting.get())["x"] for _ in range(2)] == [2, 3]
        with pytest.raises(RefusedError, match="asks for more than is allowed"):
            await ann.subscribe("x < 11")
        with pytest.raises(RefusedError, match="isn't among what may be published"):
            await ann.publish({"x": 1})
        files.become(listed(ann="", bob=""))
        assert await server.reload()
        await bob.publish({"x": 93}, durable=True)
        assert (await lasting.get())["x"] == 93


@in_loop
async def test_a_file_with_a_mistake_changes_nothing(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    files = Files(tmp_path, listed(ann=""))
    async with files.server() as server, connect(server.url, token="ann") as ann:
        for text in ("[ann", "[ann]\nsha256 = 1\n", listed(ann='subscribe = "x <"')):
            files.become(text)
            assert not await server.reload()
        files.config.write_text('id = "a"\n')
        assert not await server.reload()
        await ann.publish({"x": 1})
        async with connect(server.url, token="ann"):
            pass
    assert "stays as it was" in caplog.text
    assert "can't change" in caplog.text


@in_loop
async def test_who_was_known_and_is_not_when_the_session_opens_gets_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = Files(tmp_path, listed(ann="", bob=""))
    caller = identity.Identity.caller
    async with files.server() as server:

        def and_then_removed(self: identity.Identity, request: object) -> identity.Caller:
            found = caller(self, request)  # type: ignore[arg-type]
            self.reload(load(files.config, {}).security)
            return found

        files.become(listed(bob=""))
        monkeypatch.setattr(identity.Identity, "caller", and_then_removed)
        with pytest.raises(NetworkError):
            async with connect(server.url, token="ann") as ann:
                await ann.publish({"x": 1})
        assert server.engine.sessions == 0


@in_loop
async def test_a_token_ends_by_the_wall_clock_as_it_is_now(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    files = Files(tmp_path, listed(ann="expires = 2100-01-01"))
    headers = {"Authorization": "Bearer ann"}
    async with files.server() as server, aiohttp.ClientSession(headers=headers) as session:
        assert server.standing is not None
        async with (
            session.get(f"{http(server)}/v1/events?filter=x=1") as stream,
            connect(server.url, token="ann") as ann,
        ):
            subscription = await ann.subscribe("x = 1")
            # The clock is set right, a hundred years later.
            late: Callable[[], float] = lambda: 5e9  # noqa: E731
            monkeypatch.setattr(server.standing, "_wall", late)
            monkeypatch.setattr(server.standing._identity, "_wall", late)
            with pytest.raises(FrameError, match="has expired"):
                await subscription.get()
            assert b"has expired" in await stream.content.read()
        async with session.get(f"{http(server)}/v1/events?filter=x=1") as response:
            assert response.status == 401


@in_loop
async def test_files_are_looked_at_and_half_written_ones_left_alone(tmp_path: Path) -> None:
    files = Files(tmp_path, listed(ann=""))
    async with files.server() as server:
        with files.tokens.open("a") as growing:
            for part in listed(bob="").partition("sha256"):
                growing.write(part)
                growing.flush()
                await asyncio.sleep(0)
        security = server.standing._identity  # type: ignore[union-attr]
        await until(lambda: len(security.security.listed or {}) == 2)


@in_loop
async def test_links_that_were_opened_with_another_secret_end(tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("0123456789abcdef0123456789abcdef")

    def server(name: str, peers: str) -> Server:
        path = tmp_path / f"{name}.toml"
        path.write_text(f'id = "{name}"\nport = 0\n[peers]\n{peers}\n[security]\nsecret_file = "secret"\n')
        return Server(load(path, {}))

    async with server("a", 'b = ""') as a, server("b", f'a = "{a.url}"') as b:
        await until(lambda: linked(a, b))
        (tmp_path / "secret").write_text("fedcba9876543210fedcba9876543210")
        assert await a.reload()
        # The other one has the old secret still, and isn't let in.
        await until(lambda: not a.engine.broker.links["b"].up)
        assert await b.reload()
        await until(lambda: linked(a, b))


@needs_openssl
@in_loop
async def test_files_of_tls_count_for_connections_from_then_on(tmp_path: Path) -> None:
    first, second = Authority(tmp_path / "first"), Authority(tmp_path / "second")
    pem = [tmp_path / name for name in ("a.pem", "a.key", "authority.pem")]

    def become(authority: Authority, name: str = "a") -> None:
        files = authority.sign(name)
        assert files.authority is not None
        for path, new in zip(pem, (files.certificate, files.key, files.authority), strict=True):
            path.write_bytes(new.read_bytes())

    become(first)
    config = tmp_path / "a.toml"
    config.write_text(
        'id = "a"\nport = 0\n[tls]\ncertificate = "a.pem"\nkey = "a.key"\nauthority = "authority.pem"\n[clients.ann]\n'
    )
    trusts_first, trusts_second = client_context(first.certificate), client_context(second.certificate)
    for context, authority in ((trusts_first, first), (trusts_second, second)):
        ann = authority.sign("ann")
        context.load_cert_chain(ann.certificate, ann.key)
    # A certificate of the authority before, and trust in the present one.
    outdated, files = client_context(second.certificate), first.sign("ann")
    outdated.load_cert_chain(files.certificate, files.key)
    async with Server(load(config, {})) as server, connect(server.url, tls=trusts_first, name="ann") as before:
        become(second)
        await until(lambda: server.engine.counts.reloads == 1)
        async with connect(server.url, tls=trusts_second, name="ann2"):
            pass
        for refused in (trusts_first, outdated):
            with pytest.raises(NetworkError):
                await connect(server.url, tls=refused, name="ann3", reconnect=False)
        # A key that isn't the certificate's: the broker goes on with what it has.
        pem[1].write_bytes((tmp_path / "first" / "a.key").read_bytes())
        await until(lambda: server.engine.counts.failed_reloads == 1)
        async with connect(server.url, tls=trusts_second, name="ann4"):
            await before.publish({"x": 1})
