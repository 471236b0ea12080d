"""Decision diagrams over predicates: the global predicate index, variable orders, shared diagrams, dependency
restriction, flat arrays and their evaluation.

May import `covey.filters`, `covey.errors` and `covey.limits`. Knows nothing of text dialects, of how the matcher
stores and partitions subscriptions, or of brokers: it serves those who need the structure itself.
"""

from covey.diagrams.attribute_tests import FALSE, TRUE, UNDEFINED, AttributeTests, truth_of
from covey.diagrams.dependencies import Dependencies
from covey.diagrams.flat import FlatDiagram, flatten, sort_by_level, walk
from covey.diagrams.lowering import Lowering, Test, attribute_of, predicate_of
from covey.diagrams.order import ORDERS, History, OrderName, arrange, asked_by
from covey.diagrams.predicate_index import PredicateIndex
from covey.diagrams.restriction import restrict
from covey.diagrams.shared import SharedDiagram, Subscription
from covey.diagrams.sharing import mbds, same_children
from covey.diagrams.snapshot import Snapshot, pack, unpack
from covey.diagrams.worlds import Domain, implies, worlds

__all__ = [
    "FALSE",
    "ORDERS",
    "TRUE",
    "UNDEFINED",
    "AttributeTests",
    "Dependencies",
    "Domain",
    "FlatDiagram",
    "History",
    "Lowering",
    "OrderName",
    "PredicateIndex",
    "SharedDiagram",
    "Snapshot",
    "Subscription",
    "Test",
    "arrange",
    "asked_by",
    "attribute_of",
    "flatten",
    "implies",
    "mbds",
    "pack",
    "predicate_of",
    "restrict",
    "same_children",
    "sort_by_level",
    "truth_of",
    "unpack",
    "walk",
    "worlds",
]
