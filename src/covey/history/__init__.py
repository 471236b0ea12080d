"""What is known of past events and subscriptions: how likely filters are to match, how often attributes are named.

May import `covey.matching` and what is below it. Pure but for reading and writing a profile's file: Spark jobs and
brokers gather what is kept here, the relations between filters and the index use it.
"""

from covey.history.asked import History, asked_by, learned_attributes
from covey.history.chances import Chances, EventSample
from covey.history.event_profile import EventProfile
from covey.history.profile import Profile
from covey.history.sketches import AttributeSketch
from covey.history.subscription_profile import SubscriptionProfile

__all__ = [
    "AttributeSketch",
    "Chances",
    "EventProfile",
    "EventSample",
    "History",
    "Profile",
    "SubscriptionProfile",
    "asked_by",
    "learned_attributes",
]
