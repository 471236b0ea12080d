"""The sending side of a WebSocket: a small frame goes at once where nothing waits, and frames keep their order."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from covey.network.frames import ANSWERS_PACKED, decode_answers
from covey.network.send_buffers import SMALL_FRAME
from covey.network.sockets import FrameSender
from covey.routing.messages import Confirmed, Refused
from tests.network.running import in_loop, until


class Wire(asyncio.WriteTransport):
    """Takes frames; `stuck` bytes wait in it."""

    def __init__(self) -> None:
        super().__init__()
        self.stuck = 0
        self.closed = False

    def get_write_buffer_size(self) -> int:
        return self.stuck

    def is_closing(self) -> bool:
        return self.closed


class Peer:
    """As much of a WebSocket as a sender needs."""

    def __init__(self) -> None:
        self.messages: list[Any] = []
        self.broken = False

    async def send_bytes(self, data: bytes) -> None:
        if self.broken:
            raise ConnectionResetError
        self.messages += decode_answers(data)

    async def close(self, code: int, message: bytes) -> None:
        pass


def sender(peer: Peer, wire: Wire | None, cut: list[int] | None = None) -> FrameSender[Any]:
    return FrameSender(
        peer,  # type: ignore[arg-type]
        ANSWERS_PACKED,
        buffer_bytes=1 << 20,
        cut=lambda: None if cut is None else cut.append(1),
        transport=wire,
    )


@in_loop
async def test_a_small_frame_is_written_at_once_where_nothing_waits() -> None:
    peer = Peer()
    sending = sender(peer, Wire())
    sending.send([Confirmed(1)])
    assert peer.messages == [Confirmed(1)]
    assert sending.waiting_bytes == 0
    assert sending.sent_bytes > 0


@in_loop
@pytest.mark.parametrize("why", ["no transport", "stuck", "closing", "large"])
async def test_all_else_waits_for_its_turn_and_order_is_kept(why: str) -> None:
    peer, wire = Peer(), Wire()
    wire.stuck, wire.closed = int(why == "stuck"), why == "closing"
    sending = sender(peer, None if why == "no transport" else wire)
    first = Refused(1, "x" * (SMALL_FRAME + 1 if why == "large" else 1))
    sending.send([first])
    wire.stuck, wire.closed = 0, False
    sending.send([Confirmed(2)])
    assert peer.messages == []
    running = asyncio.create_task(sending.run())
    await until(lambda: len(peer.messages) == 2)
    assert peer.messages == [first, Confirmed(2)]
    running.cancel()


@in_loop
async def test_nothing_is_written_past_a_frame_that_the_task_is_about() -> None:
    peer, wire, gate = Peer(), Wire(), asyncio.Event()
    wire.stuck = 1
    sending = sender(peer, wire)
    write = peer.send_bytes

    async def slowly(data: bytes) -> None:
        await gate.wait()
        await write(data)

    peer.send_bytes = slowly  # type: ignore[method-assign]
    running = asyncio.create_task(sending.run())
    sending.send([Confirmed(1)])
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    wire.stuck = 0
    sending.send([Confirmed(2)])
    gate.set()
    await until(lambda: len(peer.messages) == 2)
    assert peer.messages == [Confirmed(1), Confirmed(2)]
    running.cancel()


@in_loop
async def test_a_connection_that_breaks_meanwhile_is_cut() -> None:
    peer, cut = Peer(), []
    sending = sender(peer, Wire(), cut)
    peer.broken = True
    sending.send([Confirmed(1)])
    await asyncio.wait_for(sending.run(), 10)
    assert cut == [1]
