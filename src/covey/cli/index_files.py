"""`covey index build` and `covey index stats`: indexes in files."""

from __future__ import annotations

import json
import time

from covey.cli.arguments import IndexBuildOptions, IndexStatsOptions, UsageError
from covey.cli.subscriptions import index_of
from covey.cli.terminal import complain, watched
from covey.file_names import INDEX_SUFFIX, is_index
from covey.matching import Index


def build(options: IndexBuildOptions) -> int:
    """Build an index of the subscriptions and save it."""
    assert options.output is not None
    if is_index(options.subscriptions):
        raise UsageError(f"{options.subscriptions} is an index already")
    if not is_index(options.output):
        raise UsageError(f"{options.output}: an index's name ends in {INDEX_SUFFIX}")
    start = time.perf_counter()
    index, unused = index_of(options, shown=watched())
    seconds = time.perf_counter() - start
    index.save(options.output)
    rate = len(index) / max(seconds, 1e-9)
    print(f"{options.output}: {len(index):,} subscriptions in {seconds:.2f} s ({rate:,.0f} a second)")
    if unused.count:
        complain(f"left out {unused}")
    return 0


def stats(options: IndexStatsOptions) -> int:
    """Print what a saved index holds."""
    facts = Index.open(options.file).stats().to_dict()
    if options.json:
        print(json.dumps(facts))
        return 0
    width = max(map(len, facts))
    for name, value in facts.items():
        print(f"{name:<{width}}  {f'{value:,}' if isinstance(value, int) else value}")
    return 0
