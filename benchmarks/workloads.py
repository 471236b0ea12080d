"""Seeded workloads: subscriptions, the same filters as trees, and events.

All draws come from one numpy generator, a column at a time, so that a million subscriptions take seconds. Doubles
are rounded to a few decimals: every engine then sees the same number, also those that compute with decimals.
The match rates below are expectations, for choosing sizes; the oracle counts what really matches.
"""

from __future__ import annotations

import gc
import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.ipc

from benchmarks.deep_trees import generate_ads, generate_paper
from benchmarks.text_workloads import generate_mixed, generate_text
from benchmarks.trees import Tree, to_sql

Parts = tuple[list[Tree], pa.Table]

SYMBOLS = 1000
SYMBOL_SKEW = 0.8
SECTORS = 20
REGIONS = 10
PRICE_MAX = 1000.0
VOLUME_MAX = 1_000_000


@dataclass(frozen=True)
class Workload:
    """One set of subscriptions with the events to match against it."""

    name: str
    subscriptions: list[tuple[str, str]]
    trees: list[Tree]
    events: pa.Table


def generate(name: str, n_subscriptions: int, n_events: int, seed: int = 1) -> Workload:
    """The workload `name`; the same arguments give the same workload."""
    if name not in GENERATORS:
        raise ValueError(f"no workload {name!r}; there are {', '.join(GENERATORS)}")
    with _paused_collector():
        trees, events = GENERATORS[name](np.random.default_rng(seed), n_subscriptions, n_events)
        subscriptions = [(f"s{i}", to_sql(tree)) for i, tree in enumerate(trees)]
    return Workload(name, subscriptions, trees, events)


def write(workload: Workload, directory: Path, checked: int) -> None:
    """Files for the engines: subscriptions.jsonl, events.jsonl (the first `checked` events, nulls left out),
    events.arrow (all of them) and schema.json."""
    directory.mkdir(parents=True, exist_ok=True)
    with (directory / "subscriptions.jsonl").open("w") as out:
        for (identifier, sql), tree in zip(workload.subscriptions, workload.trees, strict=True):
            out.write(json.dumps({"id": identifier, "filter": sql, "tree": tree}, separators=(",", ":")) + "\n")
    with (directory / "events.jsonl").open("w") as out:
        for event in dictionaries(workload.events.slice(0, checked)):
            out.write(json.dumps(event, separators=(",", ":")) + "\n")
    with pa.ipc.new_file(str(directory / "events.arrow"), workload.events.schema) as arrow:
        arrow.write_table(workload.events)
    schema = {field.name: _type_name(field.type) for field in workload.events.schema}
    (directory / "schema.json").write_text(json.dumps({"workload": workload.name, "attributes": schema}))


def dictionaries(events: pa.Table) -> list[dict[str, object]]:
    """Events as dictionaries without their nulls."""
    return [{k: v for k, v in row.items() if v is not None} for row in events.to_pylist()]


def _type_name(kind: pa.DataType) -> str:
    if pa.types.is_boolean(kind):
        return "boolean"
    if pa.types.is_integer(kind):
        return "int"
    return "double" if pa.types.is_floating(kind) else "string"


@contextmanager
def _paused_collector() -> Iterator[None]:
    # Millions of small lists and no cycles: collection passes would take most of the time.
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


def zipf(size: int, skew: float) -> np.ndarray:
    """Probabilities of ranks 1..size under Zipf's law."""
    weights: np.ndarray = np.arange(1, size + 1) ** -skew
    return np.asarray(weights / weights.sum())


def _names(prefix: str, size: int) -> np.ndarray:
    return np.array([f"{prefix}{i}" for i in range(size)], dtype=object)


def _draw(names: np.ndarray, positions: np.ndarray) -> list[str]:
    return list(names[positions].tolist())


def _symbols(rng: np.random.Generator, size: int) -> list[str]:
    return _draw(_names("S", SYMBOLS), rng.choice(SYMBOLS, size, p=zipf(SYMBOLS, SYMBOL_SKEW)))


def _ranges(rng: np.random.Generator, n: int, top: float, width: float, decimals: int) -> list[tuple[float, float]]:
    """Intervals of one relative width, placed so that each value of 0..top is covered about equally often."""
    low = np.round(rng.uniform(0, top * (1 - width), n), decimals)
    high = np.round(low + top * width, decimals)
    return list(zip(low.tolist(), high.tolist(), strict=True))


def _integer_ranges(rng: np.random.Generator, n: int, top: int, width: float) -> list[tuple[int, int]]:
    low = rng.integers(0, max(1, round(top * (1 - width))), n)
    return list(zip(low.tolist(), (low + round(top * width)).tolist(), strict=True))


def _trades(rng: np.random.Generator, n: int) -> dict[str, pa.Array]:
    return {
        "symbol": pa.array(_symbols(rng, n), pa.string()),
        "price": pa.array(np.round(rng.uniform(0, PRICE_MAX, n), 2)),
        "volume": pa.array(rng.integers(0, VOLUME_MAX, n)),
    }


def _conjunctions(rng: np.random.Generator, n: int, n_events: int, width: float) -> Parts:
    symbols = _symbols(rng, n)
    prices = _ranges(rng, n, PRICE_MAX, width, 2)
    volumes = _integer_ranges(rng, n, VOLUME_MAX, width)
    trees: list[Tree] = [
        ["and", ["cmp", "symbol", "=", s], ["between", "price", a, b], ["between", "volume", c, d]]
        for s, (a, b), (c, d) in zip(symbols, prices, volumes, strict=True)
    ]
    return trees, pa.table(_trades(rng, n_events))


def _conj(rng: np.random.Generator, n: int, n_events: int) -> Parts:
    """An equality and two ranges of 10%: some 10 matches an event at 100,000 subscriptions."""
    return _conjunctions(rng, n, n_events, 0.1)


def _conj_narrow(rng: np.random.Generator, n: int, n_events: int) -> Parts:
    """The same with ranges as wide as 10 matches an event need, whatever the number of subscriptions."""
    same_symbol = float((zipf(SYMBOLS, SYMBOL_SKEW) ** 2).sum())
    return _conjunctions(rng, n, n_events, min(1.0, (10 / (same_symbol * n)) ** 0.5))


def _range(rng: np.random.Generator, n: int, n_events: int) -> Parts:
    """Three ranges of 10% and nothing to look up by equality: one subscription in 1,000 matches."""
    return _three_ranges(rng, n, n_events, 0.1)


def _range_narrow(rng: np.random.Generator, n: int, n_events: int) -> Parts:
    """The same with ranges as wide as 10 matches an event need: what grows with subscriptions is candidates alone."""
    return _three_ranges(rng, n, n_events, min(1.0, (10 / n) ** (1 / 3)))


def _three_ranges(rng: np.random.Generator, n: int, n_events: int, width: float) -> Parts:
    x, y, z = (_ranges(rng, n, 100.0, width, 4) for _ in range(3))
    trees: list[Tree] = [
        ["and", ["between", "x", a, b], ["between", "y", c, d], ["between", "z", e, f]]
        for (a, b), (c, d), (e, f) in zip(x, y, z, strict=True)
    ]
    return trees, pa.table({name: np.round(rng.uniform(0, 100.0, n_events), 4) for name in "xyz"})


def _bool(rng: np.random.Generator, n: int, n_events: int) -> Parts:
    """Two alternatives, a list and a negation: about one subscription in 1,000 matches."""
    lists = zip(_symbols(rng, n), _symbols(rng, n), _symbols(rng, n), strict=True)
    prices = _ranges(rng, n, PRICE_MAX, 0.02, 2)
    sectors = _draw(_names("sector", SECTORS), rng.integers(0, SECTORS, n))
    regions = _draw(_names("region", REGIONS), rng.integers(0, REGIONS, n))
    volumes = rng.integers(VOLUME_MAX * 8 // 10, VOLUME_MAX, n).tolist()
    trees: list[Tree] = [
        [
            "or",
            ["and", ["in", "symbol", sorted(set(three))], ["between", "price", a, b]],
            ["and", ["cmp", "sector", "=", s], ["cmp", "region", "=", r], ["not", ["cmp", "volume", "<", v]]],
        ]
        for three, (a, b), s, r, v in zip(lists, prices, sectors, regions, volumes, strict=True)
    ]
    events = _trades(rng, n_events)
    events["sector"] = pa.array(_draw(_names("sector", SECTORS), rng.integers(0, SECTORS, n_events)))
    events["region"] = pa.array(_draw(_names("region", REGIONS), rng.integers(0, REGIONS, n_events)))
    return trees, pa.table(events)


def _eq(rng: np.random.Generator, n: int, n_events: int) -> Parts:
    """Three equalities over uniform values, 20 x 100 x 50 of them: 10 matches an event at 1,000,000."""
    domains = {"exchange": _names("X", 20), "account": _names("A", 100), "product": _names("P", 50)}
    drawn = [_draw(domain, rng.integers(0, len(domain), n)) for domain in domains.values()]
    trees: list[Tree] = [
        ["and", ["cmp", "exchange", "=", x], ["cmp", "account", "=", a], ["cmp", "product", "=", p]]
        for x, a, p in zip(*drawn, strict=True)
    ]
    events = {k: pa.array(_draw(d, rng.integers(0, len(d), n_events))) for k, d in domains.items()}
    return trees, pa.table(events)


GENERATORS: dict[str, Callable[[np.random.Generator, int, int], Parts]] = {
    "conj": _conj,
    "conj-narrow": _conj_narrow,
    "range": _range,
    "range-narrow": _range_narrow,
    "bool": _bool,
    "eq": _eq,
    "paper": generate_paper,
    "ads": generate_ads,
    "text": generate_text,
    "mixed": generate_mixed,
}
