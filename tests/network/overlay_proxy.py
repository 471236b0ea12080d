"""A proxy between two brokers, which can refuse, reset and fall silent."""

from __future__ import annotations

import asyncio
import contextlib


class Proxy:
    """Stands between two brokers, in one direction of opening."""

    def __init__(self, port: int, target: int) -> None:
        self.port = port
        self._target = target
        self._server: asyncio.Server | None = None
        self._flowing = asyncio.Event()
        self._flowing.set()
        self._writers: set[asyncio.StreamWriter] = set()
        self._tasks: set[asyncio.Task[None]] = set()

    async def open(self) -> None:
        self._flowing.set()
        if self._server is None:
            self._server = await asyncio.start_server(self._serve, "127.0.0.1", self.port)

    async def cut(self) -> None:
        """Reset all connections, and refuse others."""
        if self._server is not None:
            self._server.close()
            self._server = None
        for writer in self._writers:
            writer.transport.abort()

    def hush(self) -> None:
        """Take everything and pass nothing on, as a cable would that somebody stumbled over."""
        self._flowing.clear()

    async def close(self) -> None:
        await self.cut()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        writers = [writer]
        self._writers.add(writer)
        try:
            await self._flowing.wait()
            inward, outward = await asyncio.open_connection("127.0.0.1", self._target)
            writers.append(outward)
            self._writers.add(outward)
            pumps = [asyncio.create_task(self._pump(*pair)) for pair in ((reader, outward), (inward, writer))]
            self._tasks.update(pumps)
            await asyncio.wait(pumps, return_when=asyncio.FIRST_COMPLETED)
            for pump in pumps:
                pump.cancel()
            await asyncio.gather(*pumps, return_exceptions=True)
            self._tasks.difference_update(pumps)
        except OSError:
            pass
        finally:
            self._tasks.discard(task)
            for one in writers:
                self._writers.discard(one)
                one.transport.abort()

    async def _pump(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError):
            while data := await reader.read(1 << 16):
                await self._flowing.wait()
                writer.write(data)
                await writer.drain()
