"""The demo's page: two charts and the figures, in one HTML file that needs nothing else, light or dark as the reader
has it. The drawings are written by hand: bars and text need no library, and the page no script. It is well-formed XML.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from typing import Final

_WIDTH: Final = 720
_ROW: Final = 24
_LABEL: Final = 64
_NUMBER: Final = 96
_HEIGHT: Final = 180
_FOOT: Final = 40

_STYLE: Final = """
:root { color-scheme: light dark; --page: #fcfcfb; --text: #1c1c1a; --quiet: #63625d; --line: #d9d8d3;
  --bar: #2a78d6; --other: #1baf7a; }
@media (prefers-color-scheme: dark) { :root { --page: #1a1a19; --text: #f3f2ee; --quiet: #a9a8a1; --line: #3d3c39;
  --bar: #3987e5; --other: #199e70; } }
body { background: var(--page); color: var(--text); font: 16px/1.5 system-ui, sans-serif; margin: 2rem auto;
  max-width: 45rem; padding: 0 1rem; }
h1 { font-size: 1.5rem; margin-bottom: 0; } h2 { font-size: 1.1rem; margin: 2rem 0 0.2rem; }
p { margin: 0.2rem 0 0.8rem; color: var(--quiet); }
dl { display: grid; grid-template-columns: repeat(auto-fit, minmax(9rem, 1fr)); gap: 1rem; margin: 1.5rem 0; }
dt { color: var(--quiet); font-size: 0.85rem; } dd { font-size: 1.4rem; margin: 0; }
svg { display: block; height: auto; width: 100%; } svg text { fill: var(--text); font: 13px system-ui, sans-serif; }
svg .quiet { fill: var(--quiet); } svg .bar { fill: var(--bar); } svg .other { fill: var(--other); }
svg .axis { stroke: var(--line); }
pre { font: 13px/1.5 ui-monospace, monospace; overflow-x: auto; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; width: 100%; }
th, td { border-bottom: 1px solid var(--line); padding: 0.25rem 0.5rem; text-align: right; }
th { color: var(--quiet); font-weight: normal; } th:first-child, td:first-child { text-align: left; padding-left: 0; }
"""


@dataclass(frozen=True, slots=True)
class Batch:
    """One micro-batch of the stream, as the page shows it."""

    version: int
    heard: int
    """How many quotes the trader who joins and leaves has heard of."""


@dataclass(frozen=True, slots=True)
class Page:
    """What the page shows."""

    title: str
    subtitle: str
    facts: Sequence[tuple[str, str]]
    symbols: Sequence[tuple[str, int]]
    """The matches of each symbol, the most first."""
    joined: str
    """What the trader who joins and leaves has asked for."""
    batches: Sequence[Batch]
    known: str
    """What the profile knows of quotes and wishes."""
    parts: Sequence[Sequence[str]]
    """The table of parts, a heading first."""


def html(page: Page) -> str:
    """The page as text."""
    facts = "".join(f"<div><dt>{escape(name)}</dt><dd>{escape(value)}</dd></div>" for name, value in page.facts)
    return f"""<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8"/><meta name="viewport" content="width=device-width"/>
<title>{escape(page.title)}</title><style>{_STYLE}</style></head><body>
<h1>{escape(page.title)}</h1><p>{escape(page.subtitle)}</p>
<dl>{facts}</dl>
<h2>Matches of the {len(page.symbols)} stocks most heard of</h2><p>Quotes times the traders who hear of each.</p>
{bars(page.symbols)}
<h2>A trader joins a running stream, and leaves it</h2>
<p>Quotes that reach {escape(page.joined)}, by micro-batch; v is the version of the subscriptions.</p>
{columns([(f"v{batch.version}", batch.heard) for batch in page.batches])}
<h2>What it took</h2>
{table(page.parts)}
<h2>What quotes and wishes are like</h2>
<pre>{escape(page.known)}</pre>
</body></html>
"""


def bars(rows: Sequence[tuple[str, int]]) -> str:
    """Horizontal bars with their numbers at the end."""
    most = max((value for _, value in rows), default=0) or 1
    room = _WIDTH - _LABEL - _NUMBER
    drawn = []
    for place, (name, value) in enumerate(rows):
        top, length = place * _ROW, room * value / most
        middle = top + _ROW // 2 + 4
        drawn.append(
            f'<text x="{_LABEL - 8}" y="{middle}" text-anchor="end">{escape(name)}</text>'
            f'<rect class="bar" x="{_LABEL}" y="{top + 4}" width="{length:.1f}" height="{_ROW - 8}" rx="2">'
            f"<title>{escape(name)}: {value:,} matches</title></rect>"
            f'<text class="quiet" x="{_LABEL + length + 8:.1f}" y="{middle}">{value:,}</text>'
        )
    return _drawing(len(rows) * _ROW, "Matches by stock", drawn)


def columns(rows: Sequence[tuple[str, int]]) -> str:
    """Upright bars, one a micro-batch, with the number above and a note below."""
    most = max((value for _, value in rows), default=0) or 1
    step = _WIDTH / max(len(rows), 1)
    wide = min(step * 0.6, 64)
    drawn = [f'<line class="axis" x1="0" y1="{_HEIGHT}" x2="{_WIDTH}" y2="{_HEIGHT}"/>']
    for place, (note, value) in enumerate(rows):
        middle, high = (place + 0.5) * step, (_HEIGHT - 24) * value / most
        drawn.append(
            f'<rect class="other" x="{middle - wide / 2:.1f}" y="{_HEIGHT - high:.1f}" width="{wide:.1f}" '
            f'height="{high:.1f}" rx="2"><title>batch {place}, {escape(note)}: {value:,}</title></rect>'
            f'<text x="{middle:.1f}" y="{_HEIGHT - high - 6:.1f}" text-anchor="middle">{value:,}</text>'
            f'<text class="quiet" x="{middle:.1f}" y="{_HEIGHT + 18}" text-anchor="middle">{place}</text>'
            f'<text class="quiet" x="{middle:.1f}" y="{_HEIGHT + 34}" text-anchor="middle">{escape(note)}</text>'
        )
    return _drawing(_HEIGHT + _FOOT, "Quotes heard by micro-batch", drawn)


def table(rows: Sequence[Sequence[str]]) -> str:
    """A table whose first row is its heading."""
    lines = []
    for number, row in enumerate(rows):
        tag = "td" if number else "th"
        lines.append("<tr>" + "".join(f"<{tag}>{escape(cell)}</{tag}>" for cell in row) + "</tr>")
    return "<table>" + "\n".join(lines) + "</table>"


def _drawing(height: int, title: str, parts: Sequence[str]) -> str:
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {height}" role="img" '
        f'aria-label="{escape(title)}">\n' + "\n".join(parts) + "\n</svg>"
    )
