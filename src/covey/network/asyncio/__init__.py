"""Clients for asyncio. `covey.network.sync` has the same modules for programs without it."""

from covey.network.asyncio.client import Client, connect
from covey.network.asyncio.publishing import Publishing
from covey.network.asyncio.subscription import (
    Delivery,
    DeliveryBatch,
    LoadedSubscriptions,
    Subscription,
    SubscriptionGroup,
)

__all__ = [
    "Client",
    "Delivery",
    "DeliveryBatch",
    "LoadedSubscriptions",
    "Publishing",
    "Subscription",
    "SubscriptionGroup",
    "connect",
]
