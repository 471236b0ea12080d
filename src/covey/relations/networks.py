"""Which of some networks an IP address can be in together: exactly, with addresses that show it.

Networks are nested or apart. What is in a network and in none within it is a region, and all addresses of a region are
in the same networks; so there are no more regions than networks, and one for everything else, which any other text
shows. A region is empty where the networks directly within one fill it.
"""

from __future__ import annotations

from collections.abc import Mapping

from covey.filters.networks import BITS, address_text, is_within
from covey.filters.patterns import Network


def network_regions(networks: Mapping[int, Network]) -> dict[int, tuple[str, ...]]:
    """For each region the bits of the networks that it is in, with some addresses; 0 is for all other texts."""
    bits: dict[Network, int] = {}
    for bit, network in networks.items():
        bits[network] = bits.get(network, 0) | bit
    found: dict[int, tuple[str, ...]] = {0: ()}
    for network in bits:
        around = sum(its for other, its in bits.items() if is_within(network, other))
        inner = [_span(other) for other in bits if other != network and is_within(other, network)]
        gaps = _gaps(_span(network), inner)
        if gaps:
            ends = {gaps[0][0], gaps[0][1] - 1, gaps[-1][0], gaps[-1][1] - 1}
            found[around] = tuple(address_text((network.version, number)) for number in sorted(ends))
    for version, bits_of_version in BITS.items():  # an address in none, for filters that compare the text too
        taken = [_span(network) for network in bits if network.version == version]
        gaps = _gaps((0, 1 << bits_of_version), taken)
        if taken and gaps:
            found[0] += (address_text((version, gaps[0][0])), address_text((version, gaps[-1][1] - 1)))
    return found


def _span(network: Network) -> tuple[int, int]:
    return network.prefix << network.free, network.prefix + 1 << network.free


def _gaps(whole: tuple[int, int], taken: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """What of a span the others leave; they may be nested."""
    gaps: list[tuple[int, int]] = []
    at, end = whole
    for low, high in sorted(taken):
        if low > at:
            gaps.append((at, low))
        at = max(at, high)
    return [*gaps, (at, end)] if at < end else gaps
