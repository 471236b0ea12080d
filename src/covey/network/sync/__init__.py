"""Clients for programs without asyncio. `covey.network.asyncio` has the same modules for those with it."""

from covey.network.sync.client import Client, connect
from covey.network.sync.publishing import Publishing
from covey.network.sync.subscription import Delivery, DeliveryBatch, Subscription, SubscriptionGroup

__all__ = ["Client", "Delivery", "DeliveryBatch", "Publishing", "Subscription", "SubscriptionGroup", "connect"]
