"""`cidr_match`: which addresses are in which networks, and how networks relate."""

from __future__ import annotations

import ipaddress
import random
import re

import pytest

import covey
from covey.filters import CidrMatch, attr, matches
from covey.filters.networks import address_of, network_of
from covey.matching import Index
from covey.relations import covers, equivalent, overlaps


def test_addresses_are_in_networks_as_the_standard_library_says() -> None:
    rng = random.Random(1)
    for _ in range(2_000):
        bits, make = rng.choice([(32, ipaddress.IPv4Address), (128, ipaddress.IPv6Address)])
        number, prefix = rng.getrandbits(bits), rng.randint(0, bits)
        network = ipaddress.ip_network((int(make(number)) >> bits - prefix << bits - prefix, prefix))
        address = make(number ^ (1 << rng.randrange(bits) if rng.random() < 0.5 else 0))
        assert CidrMatch("ip", str(network)).holds(str(address)) is (address in network)


def test_what_is_no_address_is_in_no_network() -> None:
    everything = covey.parse("cidr_match(ip, '0.0.0.0/0') OR cidr_match(ip, '::/0')")
    for text in ("", "10.0.0", "010.0.0.1", "10.0.0.1/8", "ten", "١.٢.٣.٤", " 10.0.0.1", "1" * 5_000):
        assert not everything.matches({"ip": text})
        assert matches(~everything, {"ip": text})
    assert covey.parse("cidr_match(ip, 'fe80::/10')").matches({"ip": "fe80::1%eth0"})
    assert not covey.parse("cidr_match(ip, '10.0.0.0/8')").matches({"ip": "::ffff:10.0.0.1"})
    assert not everything.matches({"ip": 5})
    assert not (~everything).matches({"ip": 5})


def test_it_is_written_as_sql_json_and_python() -> None:
    test = CidrMatch("ip", "10.0.0.0/8")
    assert covey.parse("CIDR_MATCH(ip, '10.0.0.0/8')") == test == attr("ip").in_network("10.0.0.0/8")
    assert covey.from_json(covey.to_json(test)) == test
    assert covey.parse(str(test)) == test
    assert network_of("10.1.2.3/8") == network_of("10.0.0.0/8")
    for wrong in ("", "10.0.0.0/33", "ten/8", "10.0.0.0/8/8"):
        with pytest.raises(covey.FilterError, match=re.escape("is not a network; write an address")):
            CidrMatch("ip", wrong)


def test_networks_relate_exactly() -> None:
    def net(*networks: str) -> covey.Filter:
        return covey.parse(" OR ".join(f"cidr_match(ip, '{one}')" for one in networks))

    assert covers(net("10.0.0.0/8"), net("10.1.0.0/16"))
    assert not covers(net("10.1.0.0/16"), net("10.0.0.0/8"))
    assert equivalent(net("10.0.0.0/9", "10.128.0.0/9"), net("10.0.0.0/8"))
    assert not overlaps(net("10.0.0.0/8"), net("11.0.0.0/8"))
    assert not overlaps(net("10.0.0.0/8"), net("::/0"))
    assert not covers(net("10.0.0.0/9", "10.128.0.0/10"), net("10.0.0.0/8"))
    assert covers(net("10.0.0.0/8"), covey.parse("ip = '10.3.0.1'"))
    assert not overlaps(net("10.0.0.0/8"), covey.parse("ip = '11.3.0.1'"))
    shown = covey.relate(net("10.0.0.0/8"), net("10.0.0.0/9"))
    assert shown.covers
    assert not shown.covered
    assert network_of("10.128.0.0/9").prefix == 0b000010101


def test_many_networks_are_found_by_the_lengths_of_prefixes() -> None:
    rng = random.Random(2)
    networks = {
        f"{at}": f"{rng.randint(1, 20)}.{rng.randint(0, 9)}.0.0/{rng.choice([8, 12, 16, 24, 32])}" for at in range(300)
    }
    index = Index()
    index.add_many([(id, f"cidr_match(ip, '{network}')") for id, network in networks.items()])
    events = [{"ip": f"{rng.randint(1, 20)}.{rng.randint(0, 9)}.{rng.randint(0, 1)}.0"} for _ in range(50)] + [
        {"ip": "x"}
    ]
    for event, found in zip(events, index.match_batch(events).to_pylist(), strict=True):
        address = address_of(event["ip"])
        inside = {id for id, network in networks.items() if address and CidrMatch("ip", network).holds(event["ip"])}
        assert set(found) == set(index.match(event)) == inside
