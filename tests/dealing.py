"""How tests are dealt out to processes: what shares something dear stays together, and what waits starts first.

Tests of one lane run in one process, one after the other: they share its Spark session, its browser, or ports. So do
those of one file, which share fixtures and what they have computed; only the few files in `SPREAD` are dealt out test
by test. The lanes come first, in the order below, so that the lane that waits for brokers rather than computes is under
way beside the others from the start; after them what takes long, so that no process is left with that at the end.

The groups of pytest-xdist would do for lanes, but it writes them into the ids of tests, and pytest 9.2 drops them
there without a word; here the lane follows from the id alone.
"""

from __future__ import annotations

from collections import OrderedDict
from fnmatch import fnmatch
from typing import Any

from xdist.scheduler import LoadScopeScheduling

LANES = {
    "waits": (
        "tests/network/test_*",
        "tests/attacks/*",
        "tests/console/test_answers.py*",
        "tests/docs/test_examples.py*network*",
    ),
    "cluster": ("tests/spark/test_cluster.py*",),
    "spark streams": ("tests/spark/test_stream*", "tests/spark/test_source.py*", "tests/spark/test_loading.py*"),
    "spark": ("tests/spark/*", "tests/cli/test_spark_*"),
    "console": ("tests/console/test_browser.py*",),
    "lab": ("tests/lab/*",),
}
"""Patterns of ids; the first that fits counts."""
SPREAD = ("tests/docs/test_pages.py", "tests/simulation/test_seeds.py", "tests/spark/test_stream_crash.py")
"""Files of tests that take long and share nothing."""
EARLY = (
    "tests/spark/*", "tests/docs/test_pages.py*", "tests/simulation/*", "tests/diagrams/*", "tests/relations/*",
    "tests/matching/*",
)  # fmt: skip


def lane(nodeid: str) -> str:
    """What goes to one process: a lane, a file or a test."""
    file = nodeid.partition("::")[0]
    if file in SPREAD:
        return nodeid
    for name, patterns in LANES.items():
        if any(fnmatch(nodeid, one) for one in patterns):
            return name
    return file


def rank(scope: str) -> int:
    """Whose turn it is: lanes, then what is long, then the rest."""
    order = [*LANES, *EARLY]
    if scope in LANES:
        return order.index(scope)
    return next((order.index(one) for one in EARLY if fnmatch(scope, one)), len(order))


class Dealing(LoadScopeScheduling):  # type: ignore[misc, unused-ignore]
    """Deals out lanes, then files."""

    def _split_scope(self, nodeid: str) -> str:
        return lane(nodeid)

    def _assign_work_unit(self, node: Any) -> None:
        if not any(self.assigned_work.values()):
            self.workqueue = OrderedDict(sorted(self.workqueue.items(), key=lambda item: rank(item[0])))
        super()._assign_work_unit(node)
