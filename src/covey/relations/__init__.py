"""How filters relate: identity, covering, overlap, merging, subsumption by many, pruning.

Pure functions and small tables over filters; no clock, no IO. May import `covey.history` and what is below it; knows
nothing of brokers, of Spark or of the command line.
"""

from covey.relations.conjunctions import Conjunction, conjunction_of
from covey.relations.exact import RelationLimits, covers, equivalent, overlaps
from covey.relations.predicate_sets import from_predicate
from covey.relations.relate import Relation, relate
from covey.relations.value_sets import ValueSet

__all__ = [
    "Conjunction",
    "Relation",
    "RelationLimits",
    "ValueSet",
    "conjunction_of",
    "covers",
    "equivalent",
    "from_predicate",
    "overlaps",
    "relate",
]
