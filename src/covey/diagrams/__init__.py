"""The papers' decision diagrams, as Campailla et al. and Li, Hou and Jacobsen describe them: the global predicate
index, variable orders, shared diagrams, dependency restriction, EvalBDD and MVEvalBDD, variable dependencies.

A room beside the laboratory, public, and off the matcher's way. It needs the extra `diagrams`. May import
`covey.history` (what orders are learned from), `covey.relations` (what one test on texts says of another) and what is
below; knows nothing of text dialects, of how the matcher stores and partitions subscriptions, of brokers or of Spark.
"""

from covey.diagrams.attribute_tests import FALSE, TRUE, UNDEFINED, AttributeTests, truth_of
from covey.diagrams.dependencies import Dependencies
from covey.diagrams.flat import FlatDiagram, flatten, sort_by_level, walk
from covey.diagrams.order import ORDERS, OrderName, arrange
from covey.diagrams.predicate_index import PredicateIndex
from covey.diagrams.restriction import restrict
from covey.diagrams.shared import SharedDiagram, Subscription
from covey.diagrams.sharing import mbds, same_children
from covey.diagrams.snapshot import EMPTY, Snapshot
from covey.diagrams.words import pack, unpack
from covey.diagrams.worlds import Domain, implies, worlds
from covey.filters.two_valued import Lowering, Test, attribute_of, predicate_of
from covey.history.asked import History, asked_by

__all__ = [
    "EMPTY",
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
