"""Kernels that put matches into the events' order: offsets into one array of ascending, distinct subscriptions."""

from __future__ import annotations

import numpy as np

from covey.kernels.jit import inner, kernel
from covey.kernels.types import Int64, Int64s
from covey.kernels.vectors import lowest_bit

_INSERTION = 48
"""Up to this many matches of an event are sorted by insertion; more go through a bitmap, which costs a pass over it."""
_MANY = 4_096
"""From so many pairs on, if there are also more than subscriptions, all are dealt out by subscription first and then
by event, so that none has to be sorted: 600,000 pairs of 100,000 subscriptions took 11 ns each, and 17 by insertion."""


@inner
def _distinct(values, first, last, write, out):
    """Copy the sorted run values[first:last] without repetitions to out[write:]; gives the new end."""
    for i in range(first, last):
        if i == first or values[i] != values[i - 1]:
            out[write] = values[i]
            write += 1
    return write


@inner
def _dealt_twice(pairs, used, count, subscriptions):
    """The same for many pairs: a stable deal by subscription, then one by event."""
    next_of = np.zeros(subscriptions + 1, np.int32)
    starts = np.zeros(count + 1, np.int64)
    for i in range(used):
        next_of[(pairs[i] & 0xFFFFFFFF) + 1] += 1
        starts[(pairs[i] >> 32) + 1] += 1
    for subscription in range(subscriptions):
        next_of[subscription + 1] += next_of[subscription]
    for event in range(count):
        starts[event + 1] += starts[event]
    by_subscription = np.empty(used, np.int64)
    for i in range(used):
        subscription = pairs[i] & 0xFFFFFFFF
        by_subscription[next_of[subscription]] = pairs[i]
        next_of[subscription] += 1
    place = starts[:count].copy()
    dealt = np.empty(used, np.int32)
    for i in range(used):
        event = by_subscription[i] >> 32
        dealt[place[event]] = np.int32(by_subscription[i] & 0xFFFFFFFF)
        place[event] += 1
    offsets = np.zeros(count + 1, np.int64)
    write = 0
    for event in range(count):
        write = _distinct(dealt, starts[event], starts[event + 1], write, dealt)
        offsets[event + 1] = write
    return offsets, dealt[:write]


@kernel
def by_event(pairs: Int64s, used: Int64, count: Int64, subscriptions: Int64):
    """(offsets, subscriptions) of `used` pairs event << 32 | subscription, for events 0 to count."""
    if used >= _MANY and used > subscriptions:
        return _dealt_twice(pairs, used, count, subscriptions)
    starts = np.zeros(count + 1, np.int64)
    for i in range(used):
        starts[(pairs[i] >> 32) + 1] += 1
    for event in range(count):
        starts[event + 1] += starts[event]
    place = starts[:count].copy()
    scattered = np.empty(used, np.int32)
    for i in range(used):
        event = pairs[i] >> 32
        scattered[place[event]] = np.int32(pairs[i] & 0xFFFFFFFF)
        place[event] += 1
    offsets = np.zeros(count + 1, np.int64)
    words = (subscriptions + 63) >> 6
    bitmap, summary = np.zeros(words, np.uint64), np.zeros((words + 63) >> 6, np.uint64)
    write = 0
    for event in range(count):
        first, last = starts[event], starts[event + 1]
        if last - first <= _INSERTION:
            for i in range(first + 1, last):
                value = scattered[i]
                j = i - 1
                while j >= first and scattered[j] > value:
                    scattered[j + 1] = scattered[j]
                    j -= 1
                scattered[j + 1] = value
            write = _distinct(scattered, first, last, write, scattered)
        else:
            for i in range(first, last):
                word = scattered[i] >> 6
                bitmap[word] |= np.uint64(1) << np.uint64(scattered[i] & 63)
                summary[word >> 6] |= np.uint64(1) << np.uint64(word & 63)
            for upper in range(len(summary)):
                group = summary[upper]
                summary[upper] = np.uint64(0)
                while group:
                    word = (upper << 6) + lowest_bit(group)
                    group &= group - np.uint64(1)
                    bits = bitmap[word]
                    bitmap[word] = np.uint64(0)
                    while bits:
                        scattered[write] = np.int32((word << 6) + lowest_bit(bits))
                        bits &= bits - np.uint64(1)
                        write += 1
        offsets[event + 1] = write
    return offsets, scattered[:write]
