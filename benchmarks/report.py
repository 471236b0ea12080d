"""The page: one table a workload, rendered from the kept results."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from benchmarks import plot, sections
from benchmarks.engines import Result, measured

HEADER = (
    "subscriptions", "engine", "build s", "subscriptions/s", "bytes each", "open ms", "events/s",
    "one event p50 µs", "p99 µs", "matches/s", "batch vs best peer", "p50 vs best peer",
)  # fmt: skip

DESCRIPTIONS = {
    "conj": "`symbol = … AND price BETWEEN … AND volume BETWEEN …`; 1,000 symbols, Zipf 0.8 in subscriptions and "
    "events; both ranges 10% wide.",
    "conj-narrow": "The same, with ranges as narrow as about 10 matches an event need.",
    "range": "Three ranges of 10% over three doubles; no equality to look up.",
    "range-narrow": "The same, with ranges as narrow as about 10 matches an event need.",
    "bool": "`(symbol IN (…) AND price BETWEEN …) OR (sector = … AND region = … AND NOT volume < …)`.",
    "eq": "Three equalities over strings with 20, 100 and 50 uniform values.",
    "paper": "Campailla et al., section 8: ten attributes, 208 atoms, 7.6 atoms a query on average. Nearly half of "
    "the subscriptions match an event, so that most of the work is writing out matches.",
    "ads": "AND, OR and NOT to nine levels with up to 56 predicates over 122 attributes, 20 of them defined in an "
    "event.",
    "text": "`title ILIKE '%…%' AND category = …`; 20,000 words, 200 categories, titles of eight words.",
    "mixed": "`(contains(title, …) OR body ILIKE '%…%') AND price BETWEEN … AND brand IN (…)`.",
}

NOTES = """\
- Every total of matches is compared with an oracle before a time is printed: an evaluation in three-valued logic that
  shares no code with covey and is itself checked against DuckDB. An engine with another total is printed as WRONG.
- Engines run one after the other. *events/s* is on two threads, or two processes for Python, best of at least three
  where the time limit allows. *One event* is one call on one thread.
- covey's batch is one call with an Arrow table of up to 524,288 events (fewer where matches abound: 2,048 of `paper`);
  its total is checked on the first of them, the same ones that the peers match. Its kernels are compiled before the
  clock starts, as the peers' are.
  *Build* includes the first match, so that nothing is put off.
- *Bytes each* is the saved file for covey, and growth of resident memory while loading for the peers, which have no
  file. *Open* is opening that file.
- *vs best peer*: how many times covey does the best peer's events/s, and how many times shorter its p50 is. Below 1
  the peer is better.
- `lambdas`: every subscription compiled to a Python lambda, all of them called; no index. It can express all.
- `atree`: the a-tree crate. No substring predicates, so no `paper`. Events are parsed before the clock starts.
- `quamina`: conjunctions of equalities on JSON fields. No numeric ranges, and no OR or NOT over several fields, so
  `eq` only. It takes events as JSON text: reading them is part of its times.
- `quamina_rs`: the quamina crate, a port of it to Rust that has numeric ranges and wildcards too; it can't look inside
  texts whatever the case. It takes events as JSON text as well.
- `rsigma` reads Sigma's rules and is beside covey in a section of its own.
- `event_ruler` and `lucene_monitor` say below each table how they were called and what they cannot express.
- `hypermatch` has a place among the peers but no program: its Go module could not be downloaded. `be-tree` is in no
  registry.
- How cost grows: with candidates and matches. `conj-narrow` keeps ten matches an event at every size while candidates
  grow with the subscriptions, 64 of them to a word; from 100,000 to a million an event costs two and a half times as
  much, most of it cache misses. `range` has no key: a tenth of all subscriptions are candidates of every event, so its
  cost is linear in their number, 64 events at a time. `paper` can't be partitioned at all: half of it matches, every
  diagram is evaluated for every event, 512 at a time, and writing the matches out is most of the work.
- Peers run with up to as many subscriptions as the commands above say. A peer is tried at a size only when it loaded
  the size before within its limits and with the right total.
"""


def render(results: dict[str, Any], page: Path) -> None:
    """Write the page, and its plots next to it."""
    page.parent.mkdir(parents=True, exist_ok=True)
    workloads = list(dict.fromkeys(run["workload"] for run in results["runs"]))
    parts = [_head(results)]
    for workload in workloads:
        runs = sorted(
            (run for run in results["runs"] if run["workload"] == workload), key=lambda run: run["subscriptions"]
        )
        parts.append(_section(workload, runs))
    picture = page.with_suffix(".svg")
    drawn = results["runs"] + results.get("sigma", [])
    if plot.draw(drawn, list(dict.fromkeys(run["workload"] for run in drawn)), picture):
        parts.insert(1, f"![Events a second against the number of subscriptions]({picture.name})\n")
    parts += sections.kept()
    parts.append("## Notes on the engines\n\n" + NOTES)
    page.write_text("\n".join(parts))


def _head(results: dict[str, Any]) -> str:
    facts = ", ".join(f"{name} {value}" for name, value in results["machine"].items())
    commands = ", then ".join(f"`{command}`" for command in results["commands"])
    of = f" at commit {results['commit']}" if "commit" in results else ""
    took = ", ".join(f"{name} {seconds / 60:.1f}" for name, seconds in results.get("seconds", {}).items())
    minutes = f"\nMinutes that its parts took (`python -m benchmarks.page --parts`): {took}.\n" if took else ""
    return f"# Benchmarks\n\nMade by {commands}{of} on: {facts}.\n{minutes}"


def _section(workload: str, runs: list[dict[str, Any]]) -> str:
    lines = [f"## {workload}\n", DESCRIPTIONS.get(workload, "") + "\n"]
    lines += ["| " + " | ".join(HEADER) + " |", "|" + "---:|" + "---|" + "---:|" * (len(HEADER) - 2)]
    absent: dict[tuple[str, str], list[int]] = {}
    for run in runs:
        for result in run["results"]:
            if "skipped" in result:
                absent.setdefault((result["peer"], result["skipped"]), []).append(run["subscriptions"])
            else:
                lines.append("| " + " | ".join(_cells(run, result)) + " |")
    lines += [f"\n{peer} ({', '.join(f'{n:,}' for n in sizes)}): {why}." for (peer, why), sizes in absent.items()]
    lines += [f"\n{peer}: {note}." for peer, note in _remarks(runs).items()]
    per_event = ", ".join(f"{run['expected'] / run['events']:,.2f} at {run['subscriptions']:,}" for run in runs)
    lines.append(f"\nMatches an event: {per_event}.\n")
    return "\n".join(lines)


def _remarks(runs: list[dict[str, Any]]) -> dict[str, str]:
    """What a peer said of its own measurement, at the largest size that it was measured on."""
    results = [result for run in runs for result in run["results"] if measured(result)]
    return {result["peer"]: result["note"] for result in results if "note" in result}


def _cells(run: dict[str, Any], result: Result) -> list[str]:
    n = run["subscriptions"]
    first = [f"{n:,}", result["peer"]]
    if "wrong" in result:
        return [*first, f"WRONG: {result['wrong']}", *[""] * (len(HEADER) - 3)]
    if "error" in result:
        return [*first, result["error"], *[""] * (len(HEADER) - 3)]
    each = result.get("bytes_per_subscription", result["rss_bytes"] / n)
    partial = "" if result["events"] == run["events"] else f" (first {result['events']:,} events)"
    return [
        *first,
        figure(result["load_seconds"]),
        figure(n / result["load_seconds"]),
        figure(each),
        figure(result["open_seconds"] * 1000) if "open_seconds" in result else "",
        figure(result["events_per_second"]) + partial,
        figure(result["p50_us"]),
        figure(result["p99_us"]),
        figure(result.get("matches_per_second", result["matches"] / result["seconds"])),
        *_ratios(run, result),
    ]


def _ratios(run: dict[str, Any], result: Result) -> list[str]:
    others = [other for other in run["results"] if other["peer"] != "covey" and measured(other)]
    if result["peer"] != "covey" or not others:
        return ["", ""]
    batch = result["events_per_second"] / max(other["events_per_second"] for other in others)
    single = min(other["p50_us"] for other in others) / result["p50_us"]
    return [f"{figure(batch)}×", f"{figure(single)}×"]


def figure(value: float) -> str:
    """Three significant digits, no more than were measured."""
    if value >= 100:
        digits = max(0, len(str(int(value))) - 3)
        return f"{round(value / 10**digits) * 10**digits:,}"
    return f"{value:.3g}"
