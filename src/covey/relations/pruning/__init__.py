"""Subscription pruning (Bittner and Hinze): parts of subscriptions removed so that they match more, cost less.

`Pruner` holds subscriptions and prunes them by one of three dimensions; `trees` says why that is sound, `dimensions`
what is estimated. `choose_dimension`, `CountSearch` and `best_count` say what to prune by and how far. Pure: which
subscriptions may be pruned at all (those of other brokers' clients) is for the broker to know.
"""

from covey.relations.pruning.control import CountSearch, Load, choose_dimension
from covey.relations.pruning.costs import BestCount, CostModel, best_count
from covey.relations.pruning.dimensions import DIMENSIONS, Dimension, Selectivity
from covey.relations.pruning.pruner import Pruner
from covey.relations.pruning.prunings import Pruning, Prunings, Target

__all__ = [
    "DIMENSIONS",
    "BestCount",
    "CostModel",
    "CountSearch",
    "Dimension",
    "Load",
    "Pruner",
    "Pruning",
    "Prunings",
    "Selectivity",
    "Target",
    "best_count",
    "choose_dimension",
]
