"""`covey demo`: a market of made-up stocks, from subscriptions to matches and their reasons, with what it took here.

On Spark where there is one (`spark_demo`), else with the library alone.
"""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pyarrow as pa
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from covey.cli.arguments import BATCH_SIZE, DemoOptions
from covey.cli.spark.session import NO_SPARK, spark_is_installed
from covey.cli.stocks import Market, market, quotes, wishes
from covey.errors import CoveyError
from covey.matching import Index, Matches

_QUOTES = 200_000
_SHOWN = 6
_IDS = 2
PATIENCE = 4.0
"""Seconds after which the user is told what the wait is for."""
NOTICE = "loading kernels …"


def run(options: DemoOptions) -> int:
    """Show the whole way."""
    console = Console(file=sys.stdout, highlight=False, soft_wrap=True)
    lacks = _lack(options)
    if lacks is None:
        from covey.cli.spark import demo as spark_demo

        return spark_demo.run(options, console)
    if lacks:
        console.print(f"[bold]Without Spark:[/] {escape(lacks)}\nHere is what the library does alone.\n")
    return _library(options, console)


def _lack(options: DemoOptions) -> str | None:
    """What is missing for Spark; empty where the user doesn't want it, None where all is there."""
    if not options.spark:
        return ""
    if not spark_is_installed():
        return NO_SPARK
    from covey.spark.session import find_java

    try:
        find_java()
    except CoveyError as error:
        return str(error)
    return None


def _library(options: DemoOptions, console: Console) -> int:
    count = options.quotes or _QUOTES
    stocks = market(options.seed)
    with patience(console):
        load_kernels(stocks, options.seed)
    texts = wishes(stocks, options.traders, options.seed)
    show_wishes(texts, console)
    index = Index()
    with timed() as building:
        index.add_many(texts)
    console.print(f"indexed in {building.seconds:.2f} s: {len(texts) / building.seconds:,.0f} subscriptions/s\n")

    stream = quotes(stocks, count, options.seed)
    first: Matches | None = None
    total = 0
    with timed() as matching:
        for batch in stream.to_batches(max_chunksize=BATCH_SIZE):
            found = index.match_batch(batch)
            total += len(found)
            first = first or found
    assert first is not None
    events, matches = count / matching.seconds, total / matching.seconds
    show_matches(index, stream, first, console)
    console.print(f"matched in {matching.seconds:.2f} s: [bold]{events:,.0f} quotes/s[/], {matches:,.0f} matches/s")
    console.print(f"{total:,} matches, {total / count:.1f} a quote. The seed was {options.seed}.")
    return 0


def load_kernels(stocks: Market, seed: int) -> None:
    """Kernels are loaded on their first use, or compiled where there is no bundle: neither is building or matching."""
    index = Index()
    index.add_many(wishes(stocks, 6_000, seed))  # enough for the bulk parser
    index.match_batch(quotes(stocks, 2_000, seed))


@contextmanager
def patience(console: Console) -> Iterator[None]:
    """Say what the wait is for if a block takes long."""
    notice = threading.Timer(PATIENCE, console.print, [NOTICE])
    notice.daemon = True
    notice.start()
    try:
        yield
    finally:
        notice.cancel()


class Timing:
    """How long a block took."""

    seconds = 0.0


@contextmanager
def timed() -> Iterator[Timing]:
    """Measure a block."""
    timing, start = Timing(), time.perf_counter()
    yield timing
    timing.seconds = max(time.perf_counter() - start, 1e-9)


def show_wishes(texts: list[tuple[str, str]], console: Console) -> None:
    """A few wishes, each of another form."""
    console.print(f"[bold]{len(texts):,} traders[/] say what they want to hear of. Some of them:")
    forms: dict[tuple[str, ...], tuple[str, str]] = {}
    for name, text in texts[:200]:
        form = tuple(word for word in text.replace("(", " ( ").split() if word.isalpha() and not word.istitle())
        forms.setdefault(tuple(dict.fromkeys(form)), (name, text))
    for name, text in list(forms.values())[:_SHOWN]:
        console.print(f"  {name}  {escape(text)}")


def show_matches(index: Index, stream: pa.Table, first: Matches, console: Console) -> None:
    """Some quotes and who hears of them, and why. `first` are the matches of the first quotes."""
    console.print(f"[bold]{stream.num_rows:,} quotes[/] come in. Some of them, and who hears of them:")
    console.print(_sample(stream, first))
    _explain(index, stream, first, console)


def _sample(stream: pa.Table, found: Matches) -> Table:
    table = Table("quote", "price", "change", "volume", "who", box=None, pad_edge=False, header_style="bold")
    lists = found.lists()
    busy = np.flatnonzero((found.counts() > 0) & (found.counts() < 200))[::7][:_SHOWN]
    for row in busy.tolist():
        quote, ids = _quote(stream, row), lists[row].as_py()
        more = f" and {len(ids) - _IDS:,} more" if len(ids) > _IDS else ""
        who = ", ".join(ids[:_IDS]) + more
        table.add_row(
            quote["symbol"], f"{quote['price']:,.2f}", f"{quote['change']:+.2f} %", f"{quote['volume']:,}", who
        )
    return table


def _quote(stream: pa.Table, row: int) -> dict[str, Any]:
    quote: dict[str, Any] = stream.slice(row, 1).to_pylist()[0]
    return quote


def _explain(index: Index, stream: pa.Table, found: Matches, console: Console) -> None:
    """One match, and one trader who asked for the same stock and doesn't hear of this quote."""
    rows = np.flatnonzero(found.counts())
    if not len(rows):
        return
    row = int(rows[0])
    quote = _quote(stream, row)
    heard = found.lists()[row].as_py()
    console.print("\n[bold]Why one of them hears of the first:[/]")
    console.print(escape(str(index.explain(heard[0], quote))))
    wanted = f"symbol = '{quote['symbol']}'"
    for name in index.ids():
        if name not in heard and wanted in index.text(name):
            console.print("[bold]And why another, who asked about the same stock, doesn't:[/]")
            console.print(escape(str(index.explain(name, quote))))
            break
    console.print()
