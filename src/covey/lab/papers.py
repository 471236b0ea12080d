"""All experiments: importing the papers' modules registers them."""

from __future__ import annotations

import importlib
from typing import Final

from covey.lab.experiments import Experiment, chosen, registered

MODULES: Final[tuple[str, ...]] = (
    "bdd_filtering",
    "modified_bdds",
    "imperfect_merging",
    "merger_chains",
    "pruning",
    "pruning_lines",
    "pruning_by_load",
    "negative_space",
    "negative_space_settings",
)


def experiments(*names: str) -> list[Experiment]:
    """The experiments of these names or papers, or all, in the order of the modules above."""
    modules = [importlib.import_module(f"covey.lab.{module}").__name__ for module in MODULES]
    everything = sorted(
        (experiment for experiment in registered().values() if experiment.module in modules),
        key=lambda experiment: modules.index(experiment.module),
    )
    return chosen(everything, names)
