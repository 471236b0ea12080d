"""Events that stay bytes say what they would say decoded, and what isn't plain is left to whoever decodes it."""

from __future__ import annotations

from collections import Counter
from typing import Any

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from covey.kernels import publications as kernels
from covey.routing import Broker, BrokerConfig, ClientUp, FromClient
from covey.routing.batches import Originated
from covey.routing.entry_columns import WantedColumns
from covey.routing.known_filters import KnownFilters
from covey.routing.messages import (
    Deliver,
    Deliveries,
    Publication,
    Publish,
    Subscribe,
    ToClient,
    Unsubscribe,
)
from covey.routing.meta_events import RESERVED as RESERVED_NAME
from covey.routing.packed_events import (
    LEAST_PUBLICATION,
    RESERVED,
    NamedPairs,
    PackedDeliveries,
    PackedPublications,
    one_by_one,
    read_publications,
)
from covey.routing.plain_events import is_plain, size_of
from covey.routing.ranges import LARGEST
from covey.routing.routing_table import RoutingTable
from tests import strategies
from tests.routing.harness import hops_by_event

encode = msgspec.msgpack.Encoder().encode
SCALARS = (
    st.none() | st.booleans() | st.integers(-(2**63), 2**64 - 1) | st.floats(allow_nan=False) | st.text(max_size=40)
)
NAMES = st.text(max_size=12) | st.sampled_from([RESERVED, f"{RESERVED}.meta", f"{RESERVED}s", "covex", "a.b", ""])
PLAIN = st.dictionaries(st.text(max_size=6).filter(lambda name: not name.startswith("covey")), SCALARS, max_size=6)
ANY = st.dictionaries(NAMES, SCALARS | st.lists(SCALARS, max_size=2) | st.binary(max_size=2), max_size=6)
LARGE = st.dictionaries(st.text(max_size=4), st.text(max_size=400), max_size=70)
NUMBERS = st.sampled_from([0, 1, 127, 128, 255, 256, 65_535, 65_536, 2**32 - 1, 2**32, 2**62]) | st.integers(0, LARGEST)


def is_left(event: dict[str, Any]) -> bool:
    """The rule, spelled out."""
    names = [name for name in event if name.split(".")[0] == RESERVED]
    return bool(names) or not is_plain(event) or len(event) > kernels.MOST_NAMES


def test_the_reserved_name_is_the_same_everywhere() -> None:
    assert RESERVED == RESERVED_NAME


@given(st.lists(st.lists(st.tuples(ANY | PLAIN | LARGE, st.booleans(), NUMBERS), max_size=4), max_size=4))
def test_publications_are_read_as_they_would_be_decoded(given: list[list[tuple[dict[str, Any], bool, int]]]) -> None:
    lists = [[Publication(*one) for one in some] for some in given]
    found = read_publications([encode(some) for some in lists])
    if any(is_left(one.attributes) for some in lists for one in some):
        assert found is None
        return
    assert found is not None
    assert [list(some) for some in found] == lists
    for some, wanted in zip(found, lists, strict=True):
        assert [one == two for one, two in zip(some, wanted, strict=True)] == [True] * len(wanted)
        assert list(some[1:]) == wanted[1:]
        assert some.begin_durable == (bool(wanted) and wanted[0].durable)
        assert some[1:].begin_durable == (len(wanted) > 1 and wanted[1].durable)
        assert some[1:].is_plain == (not any(one.durable for one in wanted[1:]))
        assert some.is_plain == (not any(one.durable for one in wanted))
        assert some.events.sizes(range(len(some))) == [size_of(one.attributes) for one in wanted]
        assert repr(some) == repr(wanted)
    if found:
        assert list(found[0].joined(found[1:])) == [one.attributes for some in lists for one in some]
        apart = [read_publications([encode(some)]) for some in lists]
        (first, *others) = [one[0] for one in apart if one is not None]
        assert list(first.joined(others)) == [one.attributes for some in lists for one in some]


@pytest.mark.parametrize(
    "written",
    [
        b"",
        b"\x90\x00",
        b"\x91",
        b"\x91\x92\xabPublication",
        b"\x91\x92\xabPublicatioX\x80",
        b"\x91\x91\xabPublication",
        encode([Publication({"a": 1}, id="x")]),
        encode([Publication({"a": 1}, number=LARGEST + 1)]),
        encode([["Publication", {"a": 1}, 0]]),
        encode([["Publication", {"a": 1}, False, -1]]),
        encode([["Publication", {"a": 1}, False, 1.0]]),
        encode([["Publication", {"a": 1}, False, 1, "", 7]]),
        encode([["Publication", {1: 1}]]),
        encode([["Publication", {"a": {"b": 1}}]]),
        b"\x91\x92\xabPublication\x82\xa1a\x01\xa1a\x02",
        b"\x91\x92\xabPublication\x81\xa1\xff\x01",
        b"\x91\x92\xabPublication\x81\xa1a\xa1\xff",
        b"\x91\x92\xabPublication\x81\xa1a\xd9\xff",
        b"\x91\x92\xabPublication\x81\xa1a\xc1",
        b"\x91\x92\xabPublication\x81\xa1a\xcb\x00",
        encode([Publication({"a": "x" * (1 << 16)})]),
    ],
)
def test_what_is_not_plain_is_left(written: bytes) -> None:
    assert read_publications([written]) is None
    good = encode([Publication({"a": 1})])
    assert read_publications([good, written]) is None


def test_every_prefix_of_publications_is_left() -> None:
    whole = encode([Publication({"a": "text", "b": 1.5, "c": 300}, number=2**40)] * 2)
    assert read_publications([whole]) is not None
    assert all(read_publications([whole[:end]]) is None for end in range(len(whole)))
    assert len(encode(Publication({}))) >= LEAST_PUBLICATION
    assert read_publications([b"\x9f" + b"\x92\xabPublication\x80" * 15]) is not None


@given(
    st.lists(st.tuples(st.sampled_from(["ann", "b" * 40, "é"]), st.tuples(PLAIN, st.booleans(), NUMBERS)), min_size=1),
    st.sampled_from(["a", "broker-" * 30]),
    NUMBERS,
    st.data(),
)
def test_packed_deliveries_are_those_that_would_be_encoded(
    given: list[tuple[str, Any]], origin: str, first: int, data: st.DataObject
) -> None:
    publications = [Publication(*one) for _, one in given if not is_left(one[0])]
    publishers = [name for name, one in given if not is_left(one[0])]
    found = read_publications([encode(publications)])
    assert found is not None
    packed, plain = Originated(), Originated()
    for at, (publisher, one) in enumerate(zip(publishers, publications, strict=True)):
        packed.extend(publisher, [one.number], [one.durable], found[0].events[at : at + 1])
        plain.extend(publisher, [one.number], [one.durable], [one.attributes])
    for batch in (packed, plain):
        batch.number(origin, first, 8)
    places = [at for at in range(len(publications)) if data.draw(st.booleans())]
    keys = [data.draw(st.lists(st.text(max_size=3), min_size=1, max_size=3)) for _ in places]
    sizes = plain.sizes(places)
    wanted = plain.deliveries(places, keys, sizes)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("covey.routing.packed_events.PACKED_FROM", 1)
        deliveries = packed.deliveries(places, keys, packed.sizes(places))
    assert packed.sizes(places) == sizes
    assert list(deliveries) == wanted
    if isinstance(deliveries, PackedDeliveries):
        assert list(one_by_one([deliveries, 7])) == [*wanted, 7]
        assert deliveries.bytes == sum(sizes)
        assert deliveries.data == b"".join(map(encode, wanted))
        frames = list(deliveries.frames(3, 200))
        decoded = [msgspec.msgpack.decode(frame, type=list[Deliver]) for frame in frames]
        assert [one for frame in decoded for one in frame] == wanted
        assert all(
            len(some) <= 3 and (len(some) == 1 or len(frame) <= 200)
            for frame, some in zip(frames, decoded, strict=True)
        )
    assert [packed.envelope(at) for at in range(len(publications))] == [
        plain.envelope(at) for at in range(len(publications))
    ]


@given(st.lists(st.dictionaries(st.sampled_from("abcd"), SCALARS, max_size=4), max_size=20), st.data())
def test_bytes_are_matched_as_what_they_say(events: list[dict[str, Any]], data: st.DataObject) -> None:
    events = [event for event in events if not is_left(event)]
    filters = data.draw(st.lists(st.tuples(st.sampled_from("xyz"), strategies.filters(tuple("abcd"))), max_size=12))
    found = read_publications([encode([Publication(event) for event in events])])
    assert found is not None
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("covey.routing.routing_table.FEW", 4)
        patch.setattr("covey.routing.routing_table.BATCH", 1)
        patch.setattr("covey.routing.entry_columns.PAIRS_OF_A_HOP", data.draw(st.sampled_from([0, 4])))
        known = KnownFilters()
        table = RoutingTable(known)
        for number, (hop, condition) in enumerate(filters):
            table.add(hop, str(number), condition)
        if table._index is not None and data.draw(st.booleans()):
            table._index._take_all()
        for hop, key in data.draw(st.permutations([(hop, str(at)) for at, (hop, _) in enumerate(filters)])):
            matched = table.match_many(found[0].events)
            assert hops_by_event(matched, len(events)) == [table.match(one) for one in events]
            counted: Counter[tuple[str, str]] = Counter()
            for to, wanted in matched.items():
                if isinstance(wanted, WantedColumns):
                    assert names(wanted.named) == names(NamedPairs.of(wanted.places, wanted.keys))
                    assert wanted.entries == len(table.entries(to))
                    wanted.count()
                    counted.update((to, one) for keys in wanted.keys for one in keys)
            assert table.take_hits() == counted
            table.remove(hop, key)


def names(named: NamedPairs) -> list[tuple[int, str]]:
    """Places of events and the names of subscriptions that they are for."""
    written = named.names.tobytes()
    return [
        (place, msgspec.msgpack.decode(written[start : start + length], type=str))
        for place, start, length in zip(
            named.pairs.tolist(), named.starts.tolist(), named.lengths.tolist(), strict=True
        )
    ]


def test_a_slice_of_nothing_is_empty() -> None:
    (some,) = read_publications([encode([Publication({"a": 1}), Publication({"a": 2})])]) or [PackedPublications]
    assert isinstance(some, PackedPublications)
    assert list(some[2:]) == []
    assert list(some[1:1]) == []
    assert some[-1].attributes == {"a": 2}
    assert isinstance(some.events.block.starts, np.ndarray)
    with pytest.raises(IndexError):
        some.events[2]


ASKED = st.tuples(
    st.sampled_from(["ann", "bob", "eve"]),
    st.sampled_from(["p > 3", "p < 7", "q = 'x'", "p = 5 AND q = 'y'", "TRUE", "q IS NULL", "q LIKE '%x%'"]),
    st.sampled_from([False] * 9 + [True]),
)
SAID = st.lists(
    st.fixed_dictionaries({}, optional={"p": st.integers(0, 9), "q": st.sampled_from("xyz")}), min_size=1, max_size=9
)
OLD = ("bytes",)


@given(
    st.lists(ASKED, min_size=4, max_size=12),
    st.lists(st.tuples(st.sampled_from(["ann", "bob", "eve"]), SAID), min_size=1, max_size=4),
    st.lists(st.integers(0, 11), max_size=3),
    st.booleans(),
)
def test_clients_hear_the_same_of_bytes(
    asked: list[tuple[str, str, bool]], said: list[tuple[str, list[dict[str, Any]]]], ended: list[int], counts: bool
) -> None:
    heard, hits = [], []
    with pytest.MonkeyPatch.context() as patch:
        for name, value in (("routing_table.FEW", 2), ("routing_table.BATCH", 1), ("packed_events.PACKED_FROM", 1)):
            patch.setattr(f"covey.routing.{name}", value)
        patch.setattr("covey.routing.entry_columns.PAIRS_OF_A_HOP", 0)
        for as_bytes in (False, True):
            broker, _ = Broker.restore(BrokerConfig("a"), [], 1.0)
            for session, client in enumerate(("ann", "bob", "eve")):
                broker.handle(ClientUp(client, session=session, capabilities=OLD if counts else ()), 1.0)
            sends: list[Any] = []
            for turn in range(3):
                for at, (client, text, durable) in enumerate(asked[turn::2] if turn < 2 else []):
                    message = Subscribe(at, f"s{turn}-{at}", text, durable)
                    broker.handle(FromClient(client, message, ("ann", "bob", "eve").index(client)), 1.0)
                if turn == 2:
                    for at in ended:
                        client = asked[at % len(asked)][0]
                        message = Unsubscribe(99, f"s{at % 2}-{at // 2}")
                        broker.handle(FromClient(client, message, ("ann", "bob", "eve").index(client)), 1.0)
                if broker.table._index is not None:
                    broker.table._index._take_all()
                lists: list[Any] = [[Publication(event) for event in events] for _, events in said]
                if as_bytes:
                    lists = read_publications([encode(some) for some in lists]) or []
                inputs = [
                    FromClient(client, Publish(at, some), ("ann", "bob", "eve").index(client))
                    for at, ((client, _), some) in enumerate(zip(said, lists, strict=True))
                ]
                for output in broker.publish(inputs, 2.0).sends:
                    assert isinstance(output, Deliveries | ToClient)
                    told = output.messages if isinstance(output, Deliveries) else [output.message]
                    sends += [(output.client, type(one).__name__, one) for one in told]
                broker.count_hits()
                hits.append(
                    {
                        (one.id, id): claim.hits
                        for one in broker.clients
                        for id, claim in one.claims.subscriptions.items()
                    }
                )
            heard.append(sorted(sends, key=lambda send: send[:2]))
            hits.append({one.id: (one.credit, one.credit_bytes, one.meant, list(one.flying)) for one in broker.clients})
    assert heard[0] == heard[1]
    assert hits[:4] == hits[4:]


def test_deliveries_are_the_bytes_that_came(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("covey.routing.routing_table.BATCH", 1)
    broker, _ = Broker.restore(BrokerConfig("a"), [], 1.0)
    broker.handle(ClientUp("ann", capabilities=OLD), 1.0)
    for number in range(100):
        broker.handle(FromClient("ann", Subscribe(number, f"s{number}", f"p = {number}")), 1.0)
    assert broker.table._index is not None
    broker.table._index._take_all()
    events = [{"p": at % 100, "text": "é" * at} for at in range(200)]
    (packed,) = read_publications([encode([Publication(event) for event in events])]) or [None]
    assert packed is not None
    outputs = broker.publish([FromClient("ann", Publish(1, packed))], 2.0)
    delivered = [output.messages for output in outputs.sends if isinstance(output, Deliveries)]
    assert [type(one) for one in delivered] == [PackedDeliveries]
    assert [one.attributes for one in delivered[0]] == events
    assert [one.subscriptions for one in delivered[0]] == [[f"s{at % 100}"] for at in range(200)]
    broker.handle(FromClient("ann", Subscribe(1, "kept", "p = 1", True)), 2.0)
    outputs = broker.publish([FromClient("ann", Publish(1, packed))], 2.0)
    assert not any(isinstance(one.messages, PackedDeliveries) for one in outputs.sends if isinstance(one, Deliveries))
