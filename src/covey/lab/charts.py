"""Charts as small inline SVG, drawn by hand so that they take the page's colours, light or dark, and weigh some 3 KB;
a plotting library's SVG has its colours and glyphs baked in and is ten times larger.

Lines and bars carry classes `c0` to `c7`, which the page's style sheet gives colours; the paper's are dashed. The same
rows give the same text.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from itertools import pairwise
from typing import Final

from covey.lab.experiments import Cell, Chart, Rows

WIDTH, HEIGHT = 440, 270
LEFT, RIGHT, TOP, BOTTOM = 58, 22, 10, 42
COLOURS: Final = 8
MOST_TICKS: Final = 6
SMALL_WIDTH, SMALL_HEIGHT = 120, 44

Value = float
Series = dict[str, list[tuple[Cell, Value]]]


def shown(value: Cell) -> str:
    """A cell as people read it."""
    if value is None:
        return "–"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, str):
        return value
    if value == 0 or not math.isfinite(value):
        return f"{value:g}"
    digits = max(0, 2 - math.floor(math.log10(abs(value))))
    text = f"{value:,.{min(digits, 6)}f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def figure(chart: Chart, ours: Rows, paper: Rows = ()) -> str:
    """The chart with its legend, as HTML; empty where there is nothing to draw."""
    mine = series(chart, ours)
    theirs = series(chart, paper) if chart.paper != "none" else {}
    if not any(mine.values()):
        return ""
    names = list(dict.fromkeys([*mine, *theirs]))
    colours = {name: number % COLOURS for number, name in enumerate(names)}
    if chart.paper == "same" or not theirs:
        parts = [_axes(chart, [(mine, False), (theirs, True)], colours)]
    else:
        parts = [
            f"<figure>{_axes(chart, [(rows, dashed)], colours)}<figcaption>{title}</figcaption></figure>"
            for rows, dashed, title in ((mine, False, "here"), (theirs, True, "the paper"))
        ]
    keys = [f'<li><i class="c{colours[name]}"></i>{escape(name)}</li>' for name in names]
    if theirs:
        keys.append('<li><i class="dash"></i>the paper</li>')
    return f'<div class="charts">{"".join(parts)}</div><ul class="legend">{"".join(keys)}</ul>'


def small(chart: Chart, ours: Rows, paper: Rows = ()) -> str:
    """The chart's lines alone, for a cell of a table; bars are drawn as a line from one to the next."""
    mine = series(chart, ours)
    theirs = series(chart, paper) if chart.paper != "none" else {}
    names = list(dict.fromkeys([*mine, *theirs]))
    points = [point for group in (mine, theirs) for line in group.values() for point in line]
    if not any(mine.values()):
        return ""
    places = {x: at for at, x in enumerate(dict.fromkeys(x for x, _ in points))}
    numeric = all(isinstance(x, (int, float)) for x, _ in points) and chart.kind == "line"
    across = _within([float(x) if numeric else places[x] for x, _ in points], SMALL_WIDTH, chart.log_x and numeric)  # type: ignore[arg-type]
    up = _within([y for _, y in points], SMALL_HEIGHT, chart.log_y)
    parts = []
    for group, dashed in ((mine, False), (theirs, True)):
        for name, line in group.items():
            placed = sorted(
                (across(float(x) if numeric else places[x]), SMALL_HEIGHT - up(y))  # type: ignore[arg-type]
                for x, y in line
            )
            path = "".join(f"{'L' if at else 'M'}{x:.1f} {y:.1f}" for at, (x, y) in enumerate(placed))
            style = f"c{names.index(name) % COLOURS}{' dash' if dashed else ''}"
            dots = "".join(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="1.5"/>' for x, y in placed) if dashed else ""
            parts.append(f'<g class="{style}"><path d="{path}"/>{dots}</g>')
    return f'<svg class="small" viewBox="0 0 {SMALL_WIDTH} {SMALL_HEIGHT}" aria-hidden="true">{"".join(parts)}</svg>'


def _within(values: Sequence[float], size: int, log: bool) -> Callable[[float], float]:
    """Places from 3 to 3 below the size, for values from the least to the greatest."""
    log = log and min(values) > 0
    low, high = (math.log10(value) if log else value for value in (min(values), max(values)))
    span = (high - low) or 1.0
    return lambda value: 3 + (size - 6) * ((math.log10(value) if log else value) - low) / span


def series(chart: Chart, rows: Rows) -> Series:
    """Points by the name of their line; rows without a number are left out."""
    found: Series = {}
    for row in rows:
        for column in chart.y:
            value = row.get(column)
            if chart.x not in row or isinstance(value, (str, bool)) or value is None:
                continue
            if chart.log_y and value <= 0:
                continue
            found.setdefault(_name(chart, row, column), []).append((row[chart.x], float(value)))
    return found


def _name(chart: Chart, row: Mapping[str, Cell], column: str) -> str:
    parts = [
        shown(row.get(name)) if isinstance(row.get(name), str) else f"{name} {shown(row.get(name))}"
        for name in chart.split
    ]
    if len(chart.y) > 1 or not parts:
        parts.append(column.replace("_", " "))
    return ", ".join(parts)


@dataclass(frozen=True)
class _Scale:
    """Where values of an axis are, and which of them are marked."""

    place: Callable[[Cell], float]
    ticks: tuple[tuple[float, str], ...]


def _axes(chart: Chart, groups: Sequence[tuple[Series, bool]], colours: Mapping[str, int]) -> str:
    points = [point for group, _ in groups for line in group.values() for point in line]
    across = _across(chart, [x for x, _ in points])
    lowest = None if chart.log_y else 0.0
    up = _numeric([y for _, y in points], HEIGHT - BOTTOM, TOP, chart.log_y, lowest)
    body = [_grid(chart, across, up)]
    for group, dashed in groups:
        draw = _bars if chart.kind == "bar" and not dashed else _marks if chart.kind == "bar" else _lines
        body.append(draw(group, across, up, colours, dashed))
    label = escape(f"{chart.y_label or ', '.join(chart.y)} by {chart.x_label or chart.x}".replace("_", " "))
    return f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{label}">{"".join(body)}</svg>'


def _across(chart: Chart, values: list[Cell]) -> _Scale:
    numbers = [value for value in values if isinstance(value, (int, float)) and not isinstance(value, bool)]
    if chart.kind == "line" and len(numbers) == len(values):
        return _numeric(numbers, LEFT, WIDTH - RIGHT, chart.log_x and min(numbers) > 0, None)
    names = list(dict.fromkeys(values))
    step = (WIDTH - LEFT - RIGHT) / len(names)
    places = {name: LEFT + step * (number + 0.5) for number, name in enumerate(names)}
    return _Scale(lambda value: places[value], tuple((places[name], shown(name)) for name in names))


def _numeric(values: Sequence[float], start: float, end: float, log: bool, lowest: float | None) -> _Scale:
    low, high = min(values), max(values)
    if lowest is not None:
        low = min(low, lowest)
    if log:
        low, high = math.log10(low), math.log10(high)
    if low == high:
        low, high = low - 0.5, high + 0.5
    marks = _decades(low, high) if log else _steps(low, high)
    if lowest is not None or log:
        low, high = min(low, marks[0]), max(high, marks[-1])

    def place(value: Cell) -> float:
        assert isinstance(value, (int, float))
        at = math.log10(value) if log else value
        return start + (end - start) * (at - low) / (high - low)

    ticks = [10**mark if log else mark for mark in marks if low - 1e-9 <= mark <= high + 1e-9]
    return _Scale(place, tuple((place(tick), _tick(tick)) for tick in ticks))


def _decades(low: float, high: float) -> list[float]:
    first, last = math.floor(low), math.ceil(high)
    step = max(1, -(-(last - first) // MOST_TICKS))
    return [float(mark) for mark in range(first, last + step, step)]


def _steps(low: float, high: float) -> list[float]:
    """Round numbers that span the values."""
    rough = (high - low) / (MOST_TICKS - 1)
    unit = 10 ** math.floor(math.log10(rough))
    step = next(factor * unit for factor in (1, 2, 2.5, 5, 10) if factor * unit >= rough * (1 - 1e-9))
    first = math.floor(low / step + 1e-9)
    last = math.ceil(high / step - 1e-9)
    return [number * step for number in range(first, last + 1)]


def _tick(value: float) -> str:
    for size, unit in ((1e9, "G"), (1e6, "M"), (1e4, "k")):
        if abs(value) >= size:
            return f"{value / (1e3 if unit == 'k' else size):.4g}{unit}"
    return f"{value:,.0f}" if value == round(value) else f"{value:.3g}"


def _grid(chart: Chart, across: _Scale, up: _Scale) -> str:
    parts = []
    for y, text in up.ticks:
        parts.append(f'<path class="grid" d="M{LEFT} {y:.1f}H{WIDTH - RIGHT}"/>')
        parts.append(f'<text x="{LEFT - 6}" y="{y + 4:.1f}" text-anchor="end">{escape(text)}</text>')
    last = -1e9
    for x, text in across.ticks:
        if x - last < 6.2 * len(text) + 6:
            continue
        last = x
        parts.append(f'<text x="{x:.1f}" y="{HEIGHT - BOTTOM + 16}" text-anchor="middle">{escape(text)}</text>')
    parts.append(f'<path class="axis" d="M{LEFT} {TOP}V{HEIGHT - BOTTOM}H{WIDTH - RIGHT}"/>')
    x_label, y_label = (label.replace("_", " ") for label in (chart.x_label or chart.x, chart.y_label or chart.y[0]))
    middle = (LEFT + WIDTH - RIGHT) / 2
    parts.append(f'<text x="{middle:.0f}" y="{HEIGHT - 6}" text-anchor="middle">{escape(x_label)}</text>')
    centre = (TOP + HEIGHT - BOTTOM) / 2
    parts.append(
        f'<text transform="translate(12 {centre:.0f}) rotate(-90)" text-anchor="middle">{escape(y_label)}</text>'
    )
    return "".join(parts)


def _lines(group: Series, across: _Scale, up: _Scale, colours: Mapping[str, int], dashed: bool) -> str:
    parts = []
    for name, line in group.items():
        placed = sorted((across.place(x), up.place(y)) for x, y in line)
        dots = "".join(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{2 if dashed else 3}"/>' for x, y in placed)
        path = "".join(f"{'L' if number else 'M'}{x:.1f} {y:.1f}" for number, (x, y) in enumerate(placed))
        style = f"c{colours[name]}{' dash' if dashed else ''}"
        parts.append(f'<g class="{style}"><title>{escape(name)}</title><path d="{path}"/>{dots}</g>')
    return "".join(parts)


def _bars(group: Series, across: _Scale, up: _Scale, colours: Mapping[str, int], dashed: bool) -> str:
    del dashed
    width, floor, parts = _bar_width(group, across), HEIGHT - BOTTOM, []
    for number, (name, line) in enumerate(group.items()):
        shift = (number - len(group) / 2) * width
        bars = "".join(
            f'<rect x="{across.place(x) + shift:.1f}" y="{up.place(y):.1f}" width="{width * 0.9:.1f}" '
            f'height="{max(0.5, floor - up.place(y)):.1f}"/>'
            for x, y in line
        )
        parts.append(f'<g class="c{colours[name]}"><title>{escape(name)}</title>{bars}</g>')
    return "".join(parts)


def _marks(group: Series, across: _Scale, up: _Scale, colours: Mapping[str, int], dashed: bool) -> str:
    """The paper's numbers over our bars: a stroke at their height."""
    del dashed
    width, parts = _bar_width(group, across), []
    for number, (name, line) in enumerate(group.items()):
        shift = (number - len(group) / 2) * width
        strokes = "".join(f"M{across.place(x) + shift:.1f} {up.place(y):.1f}h{width * 0.9:.1f}" for x, y in line)
        parts.append(f'<g class="c{colours[name]} dash"><title>{escape(name)}</title><path d="{strokes}"/></g>')
    return "".join(parts)


def _bar_width(group: Series, across: _Scale) -> float:
    places = [x for x, _ in across.ticks]
    room = min((b - a for a, b in pairwise(places)), default=float(WIDTH - LEFT - RIGHT))
    return room * 0.8 / max(1, len(group))
