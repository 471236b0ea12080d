"""IP addresses in networks: `cidr_match(ip, '10.0.0.0/8')`, for IPv4 and IPv6.

A text that is no IP address is in no network, and neither is an address of the other version: `::ffff:10.0.0.1` is an
IPv6 address and not in `10.0.0.0/8`. Addresses are read as Python's `ipaddress` reads them: no leading zeros, and a
zone (`fe80::1%eth0`) says nothing about the network.

Two networks are nested or apart, which makes relations among them plain: the networks of a filter are a forest, and an
address is in those on one way from a root.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from ipaddress import ip_address, ip_network
from typing import ClassVar, TypeAlias

from covey.errors import FilterError
from covey.filters.patterns import Form, Network
from covey.filters.predicates import TextTest, text_test

Address: TypeAlias = tuple[int, int]
"""The version, 4 or 6, and the address as a number."""

BITS = {4: 32, 6: 128}
_KEPT_NETWORKS = 65_536
_LONGEST_ADDRESS = 64
"""Characters of a text that may be an address: some 45, and a zone."""


@text_test
@dataclass(frozen=True, slots=True, repr=False)
class CidrMatch(TextTest):
    """The attribute's value is an IP address in this network; of a network, the bits behind its prefix don't count."""

    name: ClassVar[str] = "cidr_match"

    network: str

    def check(self) -> None:  # noqa: D102
        network_of(self.network)

    def holds(self, text: str) -> bool:  # noqa: D102
        return in_network(address_of(text), network_of(self.network))

    def form(self) -> Form:  # noqa: D102
        return network_of(self.network)


def address_of(text: str) -> Address | None:
    """The IP address that a text is; None where it is none."""
    if len(text) > _LONGEST_ADDRESS or not text.isascii():
        return None
    try:
        address = ip_address(text)
    except ValueError:
        return None
    return address.version, int(address)


def address_text(address: Address) -> str:
    """An address as it is written."""
    version, number = address
    return str(ip_address(number.to_bytes(BITS[version] // 8, "big")))


def in_network(address: Address | None, network: Network) -> bool:
    """Whether an address is in a network."""
    return address is not None and address[0] == network.version and address[1] >> network.free == network.prefix


def is_within(inner: Network, outer: Network) -> bool:
    """Whether all addresses of one network are in the other."""
    if inner.version != outer.version or inner.free > outer.free:
        return False
    return inner.prefix >> outer.free - inner.free == outer.prefix


@lru_cache(maxsize=_KEPT_NETWORKS)
def network_of(text: str) -> Network:
    """The network of a text such as `10.0.0.0/8`; of an address alone, the one that has nothing else in it."""
    try:
        found = ip_network(text, strict=False)
    except ValueError:
        raise FilterError(
            f"{text[:60]!r} is not a network; write an address and the length of its prefix: '10.0.0.0/8' or "
            "'2001:db8::/32'"
        ) from None
    free = BITS[found.version] - found.prefixlen
    return Network(found.version, int(found.network_address) >> free, free)
