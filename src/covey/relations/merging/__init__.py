"""Merging: one filter for several, perfectly or up to a threshold, and whole tables of subscriptions made smaller.

Filters in, mergers out; pure. May import the relations' value sets and conjunctions, `covey.history` and what is below
it; knows nothing of brokers or messages.
"""

from covey.events.meaning import Meaning
from covey.relations.merging.degrees import Degrees, imperfect_degree, imperfect_degrees
from covey.relations.merging.merger_table import Change, MergerTable
from covey.relations.merging.mergers import MergeError, Merger, merge
from covey.relations.merging.policy import MergingPolicy
from covey.relations.merging.rules import MAX_PIECES, RULES, Rule
from covey.relations.merging.table_merging import MEASURES, Measure, merge_table
from covey.relations.merging.uniform import Uniform

__all__ = [
    "MAX_PIECES",
    "MEASURES",
    "RULES",
    "Change",
    "Degrees",
    "Meaning",
    "Measure",
    "MergeError",
    "Merger",
    "MergerTable",
    "MergingPolicy",
    "Rule",
    "Uniform",
    "imperfect_degree",
    "imperfect_degrees",
    "merge",
    "merge_table",
]
