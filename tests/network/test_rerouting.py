"""Another strategy while servers run: by their files, and by programs."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from covey.network import Server, connect
from covey.network.configuration_file import load
from covey.routing.config import ConfigError, MergingOptions, PruningOptions
from tests.network.running import broker, in_loop, linked, until
from tests.network.test_crashes import running

SPACE = '[subsumption.space]\nn = {kind = "number"}\n'


async def status(address: str) -> Any:
    async with (
        aiohttp.ClientSession() as session,
        session.get(f"{address.replace('ws', 'http', 1)}/v1/status") as response,
    ):
        return await response.json()


@in_loop
async def test_what_neighbours_are_told_follows_the_strategy() -> None:
    async with broker("a", {"b": ""}, strategy="simple") as a, broker("b", {"a": a.url}) as b, connect(a.url) as ann:
        await until(lambda: linked(a, b))
        await ann.subscribe_many({f"s{number}": f"p < {number}" for number in range(50)})

        def held() -> int:
            return len(b.engine.broker.links["a"].inward.subscriptions.holding)

        assert held() == 50
        await a.reroute(strategy="covering")
        await until(lambda: held() == 1)
        assert (await status(a.url))["strategy"] == "covering"
        await a.reroute(strategy="simple")
        await until(lambda: held() == 50)
        await a.reroute(strategy="merging", merging=MergingOptions(0.1))
        await until(lambda: held() == 1)
        for options, problem in (
            ({"strategy": "flooding"}, "flood all together or not at all"),
            ({"strategy": "psychic"}, "is not known"),
            ({"strategy": "subsumption"}, "needs a space"),
            ({"pruning": PruningOptions()}, "pruning needs to know"),
            ({"semantics": "strict"}, "semantics can't change while a broker runs"),
        ):
            with pytest.raises(ConfigError, match=problem):
                await a.reroute(**options)
        assert (await status(a.url))["strategy"] == "merging"


@in_loop
async def test_the_strategy_of_the_file_counts_when_it_is_read_again(tmp_path: Path) -> None:
    file = tmp_path / "a.toml"

    def write(text: str) -> None:
        file.write_text(f'id = "a"\nport = 0\n{text}')

    write("")
    async with Server(load(file, {})) as server:
        write('strategy = "merging"\n[merging]\nimt = 0.2\n[adaptive]\n')
        assert await server.reload()
        await until(lambda: server.engine.broker.config.strategy == "merging")
        assert server.engine.broker.config.merging.imt == 0.2
        assert server.engine.broker.config.adaptive is not None
        for wrong in (
            'strategy = "psychic"\n',
            'strategy = "flooding"\n',
            'strategy = "subsumption"\n',
            "[merging]\nx=1\n",
        ):
            write(f'{wrong}[peers]\nb = ""\n')
            assert not await server.reload()
            assert not server.engine.broker.links
        write("")
        assert await server.reload()
        await until(lambda: server.engine.broker.config.strategy == "covering")
        assert server.engine.broker.config.adaptive is None
        assert server.engine.broker.config.merging.imt == 0.0
    write('strategy = "simple"\n')
    async with Server(load(file, {"strategy": "identity"})) as server:
        write('strategy = "covering"\n')
        assert await server.reload()
        assert server.engine.broker.config.strategy == "identity"


@in_loop
async def test_the_load_is_measured_from_when_it_is_asked_for() -> None:
    from covey.simulation.uniform_chances import UniformChances

    async with broker(chances=UniformChances()) as server:
        await server.reroute(pruning=PruningOptions("auto", measure_every=0.01))
        pruning = lambda: server.engine.broker.pruning  # noqa: E731
        await until(lambda: pruning() is not None and pruning().load is not None)
        await server.reroute(pruning=None)
        await until(lambda: pruning() is None)


@in_loop
async def test_nothing_confirmed_is_lost_while_processes_change_their_strategies(tmp_path: Path) -> None:
    """Each by its file, while events are published at one and subscriptions come at the other."""
    files = {name: tmp_path / f"{name}.toml" for name in "ab"}
    peers: dict[str, dict[str, str]] = {"a": {"b": ""}, "b": {}}
    async with AsyncExitStack() as stack:
        brokers: dict[str, Any] = {}

        def write(name: str, strategy: str) -> None:
            listed = "".join(f'{peer} = "{url}"\n' for peer, url in peers[name].items())
            files[name].write_text(f'port = 0\nstrategy = "{strategy}"\n{SPACE}[peers]\n{listed}')

        for name in "ab":
            if name == "b":
                peers["b"]["a"] = brokers["a"].url
            write(name, "simple")
            brokers[name] = await stack.enter_async_context(
                running(name, tmp_path, "--config", str(files[name]), "--port", "0")
            )
        ann = await stack.enter_async_context(connect(brokers["a"].url, name="ann"))
        bob = await stack.enter_async_context(connect(brokers["b"].url, name="bob"))
        wanted = await ann.subscribe_many({f"s{at}": f"n % 2 = 0 AND n >= {at}" for at in range(20)}, durable=True)
        over = asyncio.Event()
        confirmed = 0

        async def publish() -> None:
            nonlocal confirmed
            while not over.is_set():
                await bob.publish([{"n": confirmed + at} for at in range(10)], durable=True)
                confirmed += 10
                await asyncio.sleep(0.005)

        publishing = asyncio.create_task(publish())
        others = 0
        for strategy in ("covering", "merging", "subsumption", "identity"):
            for name in "ba":
                write(name, strategy)
                brokers[name].reload()
                await ann.subscribe(f"m = {others}", id=f"m{others}")
                others += 1
            for name in "ab":
                while (await status(brokers[name].url))["strategy"] != strategy:
                    await asyncio.sleep(0.02)
        over.set()
        await publishing
        got = [(await wanted.get())["n"] for _ in range(confirmed // 2)]
        assert got == list(range(0, confirmed, 2))
        with pytest.raises(TimeoutError):
            await wanted.get(0.1)
