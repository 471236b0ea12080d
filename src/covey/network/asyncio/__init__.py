"""Clients for asyncio. `covey.network.sync` has the same modules for programs without it."""

from covey.network.asyncio.client import Client, connect
from covey.network.asyncio.subscription import Delivery, LoadedSubscriptions, Subscription, SubscriptionGroup

__all__ = ["Client", "Delivery", "LoadedSubscriptions", "Subscription", "SubscriptionGroup", "connect"]
