"""Which tests there are: by their room, which is their directory, and by what a machine must have to run them.

`pytest -m matching` runs one room, `pytest -m "not spark"` leaves out whatever starts a Spark session wherever it is,
and `pytest -m core` is what needs neither Spark nor a browser nor sockets nor the laboratory: a change to the library
is tried by that first. Tests are marked by where they are and by what they ask for.
"""

from __future__ import annotations

from fnmatch import fnmatchcase
from pathlib import Path, PurePosixPath

import pytest

HERE = Path(__file__).parent
ROOMS = tuple(sorted(path.name for path in HERE.iterdir() if path.is_dir() and not path.name.startswith("_")))
NEEDS = {
    "spark": "starts a Spark session, or runs in one",
    "browser": "opens pages in Chromium",
    "sockets": "listens or connects, on this machine only",
    "lab": "runs the papers' experiments",
}
"""What isn't in core, and why."""
OTHERS = {
    "core": "needs only the library: no Spark, browser, sockets or laboratory",
    "thorough": "more of what core has some of: run by `make test`, not by `make test-core`",
    "long": "takes minutes: left out of `make test`, run by `make test-long`",
}

NEEDED: dict[str, tuple[str, ...]] = {
    "attacks": ("sockets",),
    "cli/test_broker_commands.py": ("sockets",),
    "cli/test_cold_demo.py": ("spark", "sockets"),
    "cli/test_spark_session.py": ("spark",),
    "console": ("sockets",),
    "console/test_browser.py": ("sockets", "browser"),
    "console/test_overlay.py": (),
    "docs/test_examples.py": ("sockets", "spark"),
    "docs/test_pages.py": ("sockets", "spark"),
    "docs/test_service.py": ("sockets",),
    "docs/test_sessions.py": ("sockets",),
    "lab": ("lab",),
    "network": ("sockets",),
    "network/test_accounts.py": (),
    "network/test_backoff.py": (),
    "network/test_client_protocol.py": (),
    "network/test_cloudevents.py": (),
    "network/test_configuration_file.py": (),
    "network/test_event_sources.py": (),
    "network/test_event_streams.py": (),
    "network/test_frames.py": (),
    "network/test_histograms.py": (),
    "network/test_limits.py": (),
    "network/test_storage.py": (),
    "network/test_tokens.py": (),
    "spark": ("spark",),
}
"""By directory or file, of which the longest counts; `tests/conftest.py` fails whoever uses sockets beyond this."""
THOROUGH = (
    "cli/test_doctor.py::test_without*",
    "cli/test_doctor.py::test_the_java*",
    "cli/test_ends.py::test_a_reader_that_goes_away*",
    "cli/test_mistakes_in_files.py::test_many_lines*[[]*-2-*", "cli/test_mistakes_in_files.py::test_many_lines*-1000]",
    "cli/test_other_commands.py::test_the_demos_market*",
    "diagrams/test_changing_snapshots.py::*",
    "diagrams/test_restriction.py::*",
    "diagrams/test_shared.py::*-True]",
    "diagrams/*[[]strict*", "diagrams/*[[]simple*", "diagrams/*[[]default*",
    "events/test_json_batches.py::test_damaged*",
    "filters/test_oracles.py::test_three_valued*-[123]]",
    "docs/test_conformance.py::*",
    "docs/test_site.py::*",
    "kernels/test_bundle.py::test_two_processes*",
    "kernels/test_bundle.py::test_a_build_compiles*",
    "kernels/test_bundle.py::test_an_edited_kernel*",
    "kernels/test_bundle.py::test_without_a_bundle*",
    "kernels/test_small_work.py::*simple]", "kernels/test_small_work.py::*strict]",
    "kernels/test_small_work.py::*default]",
    "kernels/test_surface.py::*",
    "language/test_dialects_in_batches.py::test_covering_is_sound[[]eventbridge]",
    "matching/test_addresses.py::test_an_index_may_be_dropped*",
    "matching/test_formulas.py::test_formulas_match*[[][123]-*",
    "matching/test_index.py::test_many_changes*",
    "matching/test_j*.py::*simple]", "matching/test_j*.py::*strict]", "matching/test_j*.py::*default]",
    "matching/test_l*.py::*simple]", "matching/test_l*.py::*strict]", "matching/test_l*.py::*default]",
    "matching/test_large_sets.py::*",
    "matching/test_properties.py::*simple]", "matching/test_properties.py::*default]",
    "matching/test_properties.py::test_no_plan*-strict]", "matching/test_properties.py::test_many*[[]strict]",
    "matching/test_properties.py::test_at_least_a_hundred_thousand_pairs*",
    "matching/test_storage.py::test_a_killed_save*",
    "matching/test_storage.py::test_an_opened_index_answers*[[]s[it]*", "matching/test_storage.py::*default]",
    "package/test_names.py::test_a_users_program*",
    "package/test_names.py::test_a_name_that_is_not_there*",
    "package/test_without_diagrams.py::*",
    "relations/covering/test_sieve.py::*",
    "relations/subsumption/test_negative_space.py::test_a_long_history*[[][12]-*",
    "relations/*[[]*strict]", "relations/*[[]*simple]", "relations/*[[]*default]",
    "routing/test_budgets.py::test_whatever_is_put_off*[[]64-*",
    "routing/test_budgets.py::test_whatever_is_put_off*-merging]",
    "routing/test_adding_a_strategy.py::test_the_simulator*",
    "routing/test_loading.py::test_whatever_the_table_says*[[][1-9]-*",
    "routing/test_phases.py::test_every_transition*",
    "routing/test_strategies.py::test_what_comes_out*[[][1-9]-*",
    "routing/test_tables.py::test_hops_that_are_left_out*[[][1-9]-*",
    "simulation/test_faults_are_found.py::*",
    "simulation/test_replay.py::test_a_seed_has_the_same_trace*",
    "simulation/test_replay.py::test_a_scenario*[[]3]", "simulation/test_replay.py::test_a_scenario*[[]4]",
    "simulation/test_replay.py::test_a_scenario*[[]7]", "simulation/test_replay.py::test_a_scenario*[[]9]",
    "simulation/test_replay.py::test_a_scenario*[[]11]",
    "simulation/test_seeds.py::test_the_structures*",
    "test_tiers.py::*",
)  # fmt: skip
"""Patterns of what takes long and of which core has some, or the same under SQL's semantics: marked `thorough`."""
FIXTURES = {"spark": "spark", "browser": "browser"}
"""Who asks for such a fixture needs what it is."""


def place(item: pytest.Item) -> PurePosixPath:
    """Where a test is, as `NEEDED` has it."""
    return PurePosixPath(item.path.relative_to(HERE).as_posix())


def needs(item: pytest.Item) -> set[str]:
    """What a machine must have for a test."""
    here = place(item)
    found = {need for need in NEEDS if item.get_closest_marker(need)}
    found |= {FIXTURES[name] for name in getattr(item, "fixturenames", ()) if name in FIXTURES}
    for path in (here, *here.parents):
        if str(path) in NEEDED:
            return found | set(NEEDED[str(path)])
    return found


def is_never_core(path: Path) -> bool:
    """Whether nothing in a directory or file is in core."""
    here = path.relative_to(HERE).as_posix() if path.is_relative_to(HERE) else ""
    return bool(NEEDED.get(here)) and all(NEEDED[one] for one in NEEDED if one.startswith(f"{here}/"))


def mark(item: pytest.Item) -> None:
    """Say of a test which room it is in and what it needs."""
    wanted = needs(item)
    room = set(place(item).parts[:-1][:1])  # a test of tests/ itself is in none
    for name in room | wanted:
        item.add_marker(name)
    name = f"{place(item)}::{item.nodeid.partition('::')[2]}"
    if not wanted and any(fnmatchcase(name, pattern) for pattern in THOROUGH):
        item.add_marker("thorough")
    if not wanted and not any(map(item.get_closest_marker, ("thorough", "long"))):
        item.add_marker("core")


def register(config: pytest.Config) -> None:
    """Make the markers known."""
    rooms = {name: f"the room {name}" for name in ROOMS}
    for name, meaning in (rooms | NEEDS | OTHERS).items():
        config.addinivalue_line("markers", f"{name}: {meaning}")
