from __future__ import annotations

import asyncio

from covey.network.send_buffers import ROUND_BYTES, SMALL_FRAME, SendBuffers
from tests.network.running import in_loop


@in_loop
async def test_large_frames_wait_for_their_round_and_small_ones_do_not() -> None:
    buffers = SendBuffers(1 << 40)
    gone: list[int] = []

    async def send(number: int, size: int) -> None:
        await buffers.turn(size)
        gone.append(number)

    large = [asyncio.create_task(send(number, ROUND_BYTES // 2)) for number in range(10)]
    await asyncio.sleep(0)
    assert len(gone) < 10
    await send(100, SMALL_FRAME)
    assert gone[-1] == 100
    assert len(gone) < 11
    await asyncio.gather(*large)
    assert [number for number in gone if number != 100] == list(range(10))


@in_loop
async def test_a_frame_larger_than_a_round_gets_through_and_one_given_up_is_passed_over() -> None:
    buffers = SendBuffers(1 << 40)
    tasks = [asyncio.create_task(buffers.turn(5 * ROUND_BYTES)) for _ in range(5)]
    await asyncio.sleep(0)
    tasks[2].cancel()
    await asyncio.wait_for(asyncio.gather(*tasks, return_exceptions=True), 30)
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    assert not buffers._is_turning
    await asyncio.wait_for(buffers.turn(ROUND_BYTES), 30)
