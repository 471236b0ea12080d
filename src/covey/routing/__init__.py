"""One broker as a state machine without IO: tables, exports, links, the spanning tree, clients, the journal.

`Broker.handle(input, now)` gives what to commit and what to send after the commit; it knows no clock, no socket and no
randomness. `broker.py` opens with the rules. May import `covey.relations` and all below it; must not know simulators,
servers or storage.
"""

from typing import TYPE_CHECKING

from covey.lazy_names import have_names

if TYPE_CHECKING:
    from covey.routing.broker import Broker
    from covey.routing.config import (
        STRATEGIES,
        AdaptiveFiltering,
        BrokerConfig,
        BrokerLimits,
        ConfigError,
        MergingOptions,
        PruningOptions,
        Strategy,
        SubsumptionOptions,
        Timing,
    )
    from covey.routing.inspection import BrokerStatus, LinkView, status
    from covey.routing.journal import Drop, Outputs, Put, Record
    from covey.routing.messages import (
        AddPeer,
        ClientDown,
        ClientUp,
        FromClient,
        FromPeer,
        PeerDown,
        PeerUp,
        Permissions,
        RemovePeer,
        Tick,
    )

have_names(
    "covey.routing",
    {
        "covey.routing.broker": ("Broker",),
        "covey.routing.config": (
            "STRATEGIES",
            "AdaptiveFiltering",
            "BrokerConfig",
            "BrokerLimits",
            "ConfigError",
            "MergingOptions",
            "PruningOptions",
            "Strategy",
            "SubsumptionOptions",
            "Timing",
        ),
        "covey.routing.inspection": (
            "BrokerStatus",
            "LinkView",
            "status",
        ),
        "covey.routing.journal": (
            "Drop",
            "Outputs",
            "Put",
            "Record",
        ),
        "covey.routing.messages": (
            "AddPeer",
            "ClientDown",
            "ClientUp",
            "FromClient",
            "FromPeer",
            "PeerDown",
            "PeerUp",
            "Permissions",
            "RemovePeer",
            "Tick",
        ),
    },
)

__all__ = [
    "STRATEGIES",
    "AdaptiveFiltering",
    "AddPeer",
    "Broker",
    "BrokerConfig",
    "BrokerLimits",
    "BrokerStatus",
    "ClientDown",
    "ClientUp",
    "ConfigError",
    "Drop",
    "FromClient",
    "FromPeer",
    "LinkView",
    "MergingOptions",
    "Outputs",
    "PeerDown",
    "PeerUp",
    "Permissions",
    "PruningOptions",
    "Put",
    "Record",
    "RemovePeer",
    "Strategy",
    "SubsumptionOptions",
    "Tick",
    "Timing",
    "status",
]
