"""The report: one HTML page without anything outside of it, and the same figures as JSON.

Every experiment of the lab is in the table of contents, also those that weren't run. The page has no date and no paths,
so a run that finds the same gives the same page.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from html import escape
from importlib.resources import files
from itertools import groupby
from pathlib import Path
from typing import Any, Final

from covey.lab.charts import figure, shown
from covey.lab.experiments import Cell, Experiment, Panel, Rows
from covey.lab.points import plain
from covey.lab.runs import Finished

PAGE: Final = "index.html"
RESULTS: Final = "results.json"
MOST_ROWS: Final = 60
"""A longer table shows this many rows; the JSON has all."""

_NUMBER: Final = ' class="n"'
_VERDICTS: Final = {True: ("holds", "holds"), False: ("fails", "does not hold"), None: ("open", "can't tell")}


def write(
    directory: Path,
    experiments: Sequence[Experiment],
    finished: Mapping[str, Finished],
    *,
    scale: float,
    seed: int,
    machine: Mapping[str, str],
) -> Path:
    """Write the page and the JSON into a directory; gives the page's path."""
    directory.mkdir(parents=True, exist_ok=True)
    path = directory / PAGE
    path.write_text(page(experiments, finished, scale=scale, seed=seed, machine=machine), encoding="utf-8")
    content = results(experiments, finished, scale=scale, seed=seed, machine=machine)
    (directory / RESULTS).write_text(json.dumps(content, indent=1, default=plain) + "\n", encoding="utf-8")
    return path


def results(
    experiments: Sequence[Experiment],
    finished: Mapping[str, Finished],
    *,
    scale: float,
    seed: int,
    machine: Mapping[str, str],
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
            entry |= {"holds": outcome.holds, "sentence": outcome.sentence, "seconds": done.seconds}
            entry |= {"parameters": dict(outcome.parameters), "rows": list(map(dict, outcome.rows))}
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
) -> str:
    """The page's text."""
    outcomes = [done.outcome for done in finished.values() if done.outcome is not None]
    held = sum(outcome.holds is True for outcome in outcomes)
    size = "the papers' full size" if scale == 1 else f"{scale:g} of the papers' size"
    facts = "".join(f"<dt>{escape(name)}</dt><dd>{escape(value)}</dd>" for name, value in machine.items())
    style = files("covey.lab").joinpath("report.css").read_text(encoding="utf-8")
    minutes = sum(done.seconds for done in finished.values()) / 60
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>covey: the laboratory</title><style>{style}</style></head><body><main>"
        "<h1>The laboratory</h1>"
        f"<p>Every table and figure of the papers, run again on covey at {size}, seed {seed}: of {len(outcomes)} "
        f"findings {held} hold. The points took {minutes:.1f} minutes. The papers' machines are decades older, so "
        "where a paper has times, compare shapes.</p>"
        f"{_contents(experiments, finished)}{_papers(experiments, finished, scale)}"
        f'<h2 id="machine">The machine</h2><dl class="facts">{facts}</dl></main></body></html>\n'
    )


def _contents(experiments: Sequence[Experiment], finished: Mapping[str, Finished]) -> str:
    rows = []
    for experiment in experiments:
        done = finished.get(experiment.name)
        found = done.outcome.sentence if done is not None and done.outcome is not None else ""
        where = f"{escape(experiment.paper.authors)}, {escape(experiment.place)}"
        rows.append(
            f'<tr><td><a href="#{experiment.name}">{where}</a></td>'
            f"<td>{_badge(done)}</td><td>{escape(experiment.claim)}</td><td>{escape(found or _problem(done))}</td></tr>"
        )
    head = "<tr><th>where</th><th></th><th>the paper finds</th><th>here</th></tr>"
    return (
        f'<div class="wide"><table class="contents"><thead>{head}</thead><tbody>{"".join(rows)}</tbody></table></div>'
    )


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
    chart = one.chart
    if chart is not None and chart.paper == "same" and scale < 1:
        chart = replace(chart, paper="beside")  # In the paper's axes a smaller run would be a dot in the corner.
    drawn = figure(chart, outcome.rows, one.paper_numbers) if chart is not None else ""
    tables = _table("here", outcome.rows) + (
        _table("the paper", one.paper_numbers, as_given=True) if one.paper_numbers else ""
    )
    return (
        f'<article id="{one.name}">{head}<p>{_badge(done)} {escape(outcome.sentence)}</p>{drawn}'
        f'<div class="tables">{tables}</div>{"".join(map(_panel, outcome.panels))}'
        f'<p class="small">{_parameters(outcome.parameters)}Took {shown(done.seconds)} s. '
        f"<code>covey lab run {one.name}</code></p></article>"
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
    return ("fails", "failed") if done.outcome is None else _VERDICTS[done.outcome.holds]


def _badge(done: Finished | None) -> str:
    kind, text = _verdict(done)
    return f'<b class="{kind}">{text}</b>'


def _problem(done: Finished | None) -> str:
    return "" if done is None else done.problem
