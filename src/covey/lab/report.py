"""The report: one HTML page without anything outside of it, and the same figures as JSON.

A summary comes first: for every experiment of the lab, also those that weren't run, the claim, the numbers that tell
most (those that fail, then the first ones) beside the paper's and with their range over what the paper leaves open, the
verdict, also under other seeds that were run, and a small plot. Then each has an article with its numbers one by
one, its plot, what was learned, its tables and the code that made it. The page has no date and no paths, so a run that
finds the same gives the same page.
"""

from __future__ import annotations

import inspect
import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from html import escape
from importlib.resources import files
from itertools import groupby
from pathlib import Path
from typing import Any, Final, TypeAlias

from covey.lab import verdicts
from covey.lab.charts import figure, shown, small
from covey.lab.experiments import Cell, Chart, Experiment, Outcome, Panel, Rows
from covey.lab.open_questions import QUESTIONS
from covey.lab.points import plain
from covey.lab.runs import Finished
from covey.lab.verdicts import Check, Setting

PAGE: Final = "index.html"
RESULTS: Final = "results.json"
MOST_ROWS: Final = 60
"""A longer table shows this many rows; the JSON has all."""
MOST_CHECKS: Final = 3
"""Numbers of a claim in the summary; the article has all."""

Seeds: TypeAlias = Mapping[int, Mapping[str, Finished]]
"""Outcomes of the same size under other seeds."""

_NUMBER: Final = ' class="n"'
_STYLES: Final = {
    "holds": "holds",
    "holds in this range": "range",
    "does not hold": "fails",
    "can't tell": "open",
}


def write(
    directory: Path,
    experiments: Sequence[Experiment],
    finished: Mapping[str, Finished],
    *,
    scale: float,
    seed: int,
    machine: Mapping[str, str],
    seeds: Seeds | None = None,
) -> Path:
    """Write the page and the JSON into a directory; gives the page's path. `seeds` has outcomes under other seeds, for
    whether they come to the same verdicts."""
    directory.mkdir(parents=True, exist_ok=True)
    path = directory / PAGE
    path.write_text(page(experiments, finished, scale=scale, seed=seed, machine=machine, seeds=seeds), encoding="utf-8")
    content = results(experiments, finished, scale=scale, seed=seed, machine=machine, seeds=seeds)
    (directory / RESULTS).write_text(json.dumps(content, indent=1, default=plain) + "\n", encoding="utf-8")
    return path


def results(
    experiments: Sequence[Experiment],
    finished: Mapping[str, Finished],
    *,
    scale: float,
    seed: int,
    machine: Mapping[str, str],
    seeds: Seeds | None = None,
) -> dict[str, Any]:
    """All that the page shows, as plain values."""
    listed = []
    for experiment in experiments:
        done = finished.get(experiment.name)
        entry: dict[str, Any] = {
            "name": experiment.name,
            "place": experiment.place,
            "title": experiment.title,
            "claim": experiment.claim,
        }
        entry |= {"paper_numbers": list(map(dict, experiment.paper_numbers))}
        if done is not None and done.outcome is not None:
            outcome = done.outcome
            entry |= {"verdict": outcome.verdict, "because": outcome.because}
            entry |= {"ours": verdicts.ours(outcome.settings), "range": verdicts.ranges(outcome.settings)}
            entry |= {"settings": verdicts.as_plain(outcome.settings)}
            entry |= {"sentence": outcome.sentence, "seconds": done.seconds}
            entry |= {"parameters": dict(outcome.parameters), "rows": list(map(dict, outcome.rows))}
            entry |= {
                "verdicts_under_seeds": {
                    str(other): verdict(found[experiment.name])
                    for other, found in sorted((seeds or {}).items())
                    if experiment.name in found
                }
            }
            entry["panels"] = [{"title": panel.title, "rows": list(map(dict, panel.rows))} for panel in outcome.panels]
        elif done is not None:
            entry["problem"] = done.problem
        listed.append(entry)
    return {"scale": scale, "seed": seed, "machine": dict(machine), "experiments": listed}


def page(
    experiments: Sequence[Experiment],
    finished: Mapping[str, Finished],
    *,
    scale: float,
    seed: int,
    machine: Mapping[str, str],
    seeds: Seeds | None = None,
) -> str:
    """The page's text."""
    seeds = seeds or {}
    outcomes = [done.outcome for done in finished.values() if done.outcome is not None]
    counts = ", ".join(
        f"{sum(outcome.verdict == word for outcome in outcomes)} {word}"
        for word in _STYLES
        if any(outcome.verdict == word for outcome in outcomes)
    )
    size = "the papers' full size" if scale == 1 else f"{scale:g} of the papers' size"
    missing = len(experiments) - len(finished)
    which = "Tables and figures" if missing else "Every table and figure"
    without = f" Not run at this size: {missing}." if missing else ""
    facts = "".join(f"<dt>{escape(name)}</dt><dd>{escape(value)}</dd>" for name, value in machine.items())
    style = files("covey.lab").joinpath("report.css").read_text(encoding="utf-8")
    minutes = sum(done.seconds for done in finished.values()) / 60
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>covey: the laboratory</title><style>{style}</style></head><body><main>"
        "<h1>The laboratory</h1>"
        f"<p>{which} of the papers, run again at {size}, seed {seed}. Of {len(outcomes)} findings: "
        f"{counts}.{without}{_said_by_seeds(finished, seeds)} The points took {minutes:.1f} minutes.</p>"
        "<p>A finding is shown on the paper's kind of matcher, small and plain, and beside it stands what covey's own "
        "makes of it. A verdict follows from numbers with bounds that stand in the code: <b>holds</b> in every setting "
        "of what the paper leaves open, <b>holds in this range</b> in those named, or <b>does not hold</b>, with what "
        "fails. In plots the paper's points are dashed.</p>"
        f"{_contents(experiments, finished, scale, seeds)}{_papers(experiments, finished, scale)}"
        f"{_questions(experiments)}"
        f'<h2 id="machine">The machine</h2><dl class="facts">{facts}</dl></main></body></html>\n'
    )


def _contents(experiments: Sequence[Experiment], finished: Mapping[str, Finished], scale: float, seeds: Seeds) -> str:
    rows = []
    for experiment in experiments:
        done = finished.get(experiment.name)
        where = f"{escape(experiment.paper.authors)}, {escape(experiment.place)}"
        badge = _badge(done) + _other_seeds(experiment.name, done, seeds)
        cells = [f'<a href="#{experiment.name}">{where}</a>', badge, escape(experiment.claim)]
        if done is not None and done.outcome is not None:
            outcome = done.outcome
            chart = _chart(experiment, scale)
            theirs = experiment.paper_numbers if chart is not None and chart.paper == "same" else ()
            cells += [
                _telling(outcome.settings),
                small(chart, outcome.rows, theirs) if chart is not None else "",
            ]
        else:
            cells += [escape(_problem(done)), ""]
        rows.append(f"<tr>{''.join(f'<td>{cell}</td>' for cell in cells)}</tr>")
    head = "".join(f"<th>{name}</th>" for name in ("where", "", "the paper finds", "here", ""))
    body = "".join(rows)
    return (
        f'<div class="wide"><table class="contents"><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>'
    )


def _said_by_seeds(finished: Mapping[str, Finished], seeds: Seeds) -> str:
    """How many verdicts other seeds change."""
    told = []
    for seed, others in sorted(seeds.items()):
        both = [name for name in others if name in finished]
        changed = sum(verdict(others[name]) != verdict(finished[name]) for name in both)
        told.append(f" Of {len(both)} run under seed {seed}, {changed or 'none'} came to another verdict.")
    return "".join(told)


def _telling(settings: Sequence[Setting]) -> str:
    """A few of a claim's numbers, a line each; what fails comes first."""
    if not settings:
        return ""
    checks = sorted(settings[0].checks, key=lambda check: check.holds)
    left = len(checks) - MOST_CHECKS
    more = f'<li class="soft">and {left} more that {"hold" if left > 1 else "holds"}</li>' if left > 0 else ""
    if any(not check.holds for check in checks[MOST_CHECKS:]):
        more = f'<li class="soft">and {left} more</li>'
    return f"<ul>{''.join(_line(check, settings) for check in checks[:MOST_CHECKS])}{more}</ul>"


def _line(check: Check, settings: Sequence[Setting]) -> str:
    """A number, or a yes or no; the paper's; and what it is in all settings."""
    found = [one for setting in settings for one in setting.checks if one.what == check.what]
    kind = "holds" if check.holds else "fails"
    if check.paper == "yes":
        ours = "yes" if check.holds else "no"
        held = sum(one.holds for one in found)
        aside = f"in {held} of {len(found)} settings" if len(found) > 1 else ""
    else:
        ours, aside = check.shown(check.ours), f"paper: {check.paper}"
        numbers = [one.ours for one in found if one.ours is not None]
        ends = [check.shown(min(numbers)), check.shown(max(numbers))] if numbers else []
        if len(set(ends)) > 1:
            aside += f"; range {ends[0]} to {ends[1]}"
    told = f' <span class="soft">{escape(aside)}</span>' if aside else ""
    return f'<li>{escape(check.what.rstrip(","))} <b class="{kind}">{escape(ours)}</b>{told}</li>'


def _other_seeds(name: str, done: Finished | None, seeds: Seeds) -> str:
    """Whether the verdict is the same under other seeds."""
    found = {seed: verdict(others[name]) for seed, others in sorted(seeds.items()) if name in others}
    if done is None or not found:
        return ""
    same = [str(seed) for seed, word in found.items() if word == verdict(done)]
    told = [f"{'seed' if len(same) == 1 else 'seeds'} {' and '.join(same)}: the same"] if same else []
    told += [f"seed {seed}: {word}" for seed, word in found.items() if word != verdict(done)]
    return f'<p class="small">{escape("; ".join(told))}</p>'


def _chart(experiment: Experiment, scale: float) -> Chart | None:
    """An experiment's chart; in the paper's axes a smaller run would be a dot in the corner."""
    chart = experiment.chart
    if chart is not None and chart.paper == "same" and scale < 1:
        return replace(chart, paper="beside")
    return chart


def _questions(experiments: Sequence[Experiment]) -> str:
    """What the papers left open, and what became of it."""
    names = {experiment.name for experiment in experiments}
    rows = "".join(
        f"<dt>{escape(one.paper)}: {escape(one.question)}</dt><dd>{escape(one.answer)}"
        + "".join(f' <a href="#{name}">{escape(name)}</a>' for name in one.experiments if name in names)
        + "</dd>"
        for one in QUESTIONS
    )
    return f'<h2 id="open">What the papers left open</h2><dl class="questions">{rows}</dl>'


def _papers(experiments: Sequence[Experiment], finished: Mapping[str, Finished], scale: float) -> str:
    parts = []
    for paper, group in groupby(experiments, key=lambda experiment: experiment.paper):
        title = f"{escape(paper.authors)}: {escape(paper.title)} ({paper.year})"
        parts.append(
            f"<h2>{title}</h2>"
            + "".join(_article(experiment, finished.get(experiment.name), scale) for experiment in group)
        )
    return "".join(parts)


def _article(one: Experiment, done: Finished | None, scale: float) -> str:
    head = f'<h3>{escape(one.place.capitalize())}: {escape(one.title)}</h3><p class="claim">{escape(one.claim)}</p>'
    if done is None or done.outcome is None:
        return f'<article id="{one.name}">{head}<p>{_badge(done)} {escape(_problem(done))}</p></article>'
    outcome = done.outcome
    chart = _chart(one, scale)
    drawn = figure(chart, outcome.rows, one.paper_numbers) if chart is not None else ""
    tables = _table("here", outcome.rows) + (
        _table("the paper", one.paper_numbers, as_given=True) if one.paper_numbers else ""
    )
    because = f" {escape(outcome.because)}." if outcome.because else ""
    return (
        f'<article id="{one.name}">{head}<p>{_badge(done)}{because}</p>{_numbers(outcome)}{drawn}'
        f"<p>{escape(outcome.sentence)}</p>"
        f'<details><summary>Tables</summary><div class="tables">{tables}</div>'
        f"{''.join(map(_panel, outcome.panels))}</details>{_code(one)}"
        f'<p class="small">{_parameters(outcome.parameters)}Took {shown(done.seconds)} s. '
        f"<code>covey lab run {one.name}</code></p></article>"
    )


def _numbers(outcome: Outcome) -> str:
    """The claim number by number, a column for each setting."""
    if not outcome.settings:
        return ""
    head = "".join(
        f"<th>{escape(name)}</th>"
        for name in ("", "the paper", "counts as the same", *(setting.name for setting in outcome.settings))
    )
    body = ""
    listed: dict[str, Check] = {}
    for setting in outcome.settings:
        for check in setting.checks:
            listed.setdefault(check.what, check)
    for check in listed.values():
        found = [next((one for one in other.checks if one.what == check.what), None) for other in outcome.settings]
        cells = "".join(map(_found, found))
        bounds = "" if check.paper == "yes" else escape(check.bounds())
        body += f"<tr><td>{escape(check.what)}</td><td>{escape(check.paper)}</td><td>{bounds}</td>{cells}</tr>"
    return f'<div class="wide"><table class="numbers"><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>'


def _found(check: Check | None) -> str:
    if check is None:
        return "<td></td>"
    text = ("yes" if check.holds else "no") if check.paper == "yes" else check.shown(check.ours)
    return f'<td class="n"><b class="{"holds" if check.holds else "fails"}">{escape(text)}</b></td>'


def _code(one: Experiment) -> str:
    """The function that made an outcome, as it stands in the source."""
    try:
        source = inspect.getsource(one.run)
    except (OSError, TypeError):
        return ""
    file = one.module.replace(".", "/")
    return (
        f"<details><summary>The code: <code>src/{escape(file)}.py</code>, <code>{escape(one.run.__name__)}</code>"
        f"</summary><pre>{escape(source)}</pre></details>"
    )


def _panel(panel: Panel) -> str:
    drawn = figure(panel.chart, panel.rows) if panel.chart is not None else ""
    return f'<h4>{escape(panel.title)}</h4>{drawn}<div class="tables">{_table("", panel.rows)}</div>'


def _table(title: str, rows: Rows, *, as_given: bool = False) -> str:
    """A table with the columns of all rows; numbers rounded, or as they are given."""
    names = list(dict.fromkeys(name for row in rows for name in row))
    head = "".join(f"<th{_side(rows, name)}>{escape(name.replace('_', ' '))}</th>" for name in names)
    body = "".join(f"<tr>{''.join(_cell(row.get(name), as_given) for name in names)}</tr>" for row in rows[:MOST_ROWS])
    caption = f"<caption>{title}</caption>" if title else ""
    more = f'<p class="small">and {len(rows) - MOST_ROWS:,} rows more</p>' if len(rows) > MOST_ROWS else ""
    return f'<div class="wide"><table>{caption}<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>{more}</div>'


def _cell(value: Cell, as_given: bool) -> str:
    text = f"{value:,}" if as_given and isinstance(value, float) else shown(value)
    return f"<td{_NUMBER if _is_number(value) else ''}>{escape(text)}</td>"


def _side(rows: Rows, name: str) -> str:
    return _NUMBER if any(_is_number(row.get(name)) for row in rows) else ""


def _is_number(value: Cell) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _parameters(parameters: Mapping[str, Cell]) -> str:
    listed = "; ".join(f"{escape(name.replace('_', ' '))} {escape(shown(value))}" for name, value in parameters.items())
    return f"Parameters: {listed}. " if listed else ""


def verdict(done: Finished | None) -> str:
    """Whether a finding holds, in a word or two."""
    return _verdict(done)[1]


def _verdict(done: Finished | None) -> tuple[str, str]:
    if done is None:
        return "open", "not run"
    if done.outcome is None:
        return "fails", "failed"
    return _STYLES[done.outcome.verdict], done.outcome.verdict


def _badge(done: Finished | None) -> str:
    kind, text = _verdict(done)
    return f'<b class="{kind}">{text}</b>'


def _problem(done: Finished | None) -> str:
    return "" if done is None else done.problem
