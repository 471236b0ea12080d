"""A profile as text, for people."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from itertools import combinations
from typing import TYPE_CHECKING

from covey.filters.values import instant
from covey.history.sketches import AttributeSketch

if TYPE_CHECKING:
    from covey.history.profile import Profile

_MOST = 8
_DEPENDENT = 0.05


def summary(profile: Profile) -> str:
    """A page of what a profile knows."""
    return "\n".join((*_events(profile), *_subscriptions(profile), *_dependences(profile)))


def _events(profile: Profile) -> Iterator[str]:
    events = profile.events
    if events is None:
        return
    yield f"{events.count:,} events, {events.sample.num_rows:,} of them kept as a sample"
    width = max((len(name) for name in events.sketches), default=0)
    for name in sorted(events.sketches):
        sketch = events.sketches[name]
        missing = 1 - sketch.present / events.count if events.count else 0.0
        yield f"  {name:{width}}  {_values(sketch)}" + (f", missing in {missing:.1%}" if missing else "")


def _values(sketch: AttributeSketch) -> str:
    parts = []
    if sketch.numbers or sketch.timestamps:
        ends = [sketch.quantile(fraction) for fraction in (0.0, 0.25, 0.5, 0.75, 1.0)]
        shown = [_number(end, bool(sketch.timestamps)) for end in ends if end is not None]
        if len(shown) == len(ends):
            low, first, middle, third, high = shown
            parts.append(f"{low} to {high}, half of it {first} to {third}, median {middle}")
    if sketch.strings:
        frequent = sketch.frequent_strings(3)
        parts.append(
            f"about {sketch.distinct:,.0f} texts"
            + "".join(f", {text!r} {count / sketch.strings:.1%}" for text, count in frequent)
        )
    if sum(sketch.truths):
        parts.append(f"true in {sketch.truths[1] / sum(sketch.truths):.1%}")
    if sketch.lists:
        parts.append(f"{sketch.lists:,} lists")
    return "; ".join(parts) or "never defined"


def _number(value: float, is_instant: bool) -> str:
    if is_instant:
        moment: datetime = instant(int(value)).astimezone(UTC)
        return moment.strftime("%Y-%m-%d %H:%M:%S")
    return f"{value:,.6g}"


def _subscriptions(profile: Profile) -> Iterator[str]:
    asked = profile.subscriptions
    if not asked.count:
        return
    yield f"{asked.count:,} subscriptions"
    for names, count in asked.combinations.most_common(_MOST):
        yield f"  {count / asked.count:6.1%} ask for {', '.join(names) or 'no attribute'}"
    popular = asked.popular(_MOST)
    if not popular:
        return
    chances = [None] * len(popular) if profile.events is None else profile.chances([one for one, _ in popular]).tolist()
    yield "  predicates that many have:"
    for (predicate, count), chance in zip(popular, chances, strict=True):
        yield f"    {count:>9,}  {predicate}" + ("" if chance is None else f"  (met by {chance:.2%} of the events)")


def _dependences(profile: Profile) -> Iterator[str]:
    """Attributes that subscriptions name together and that depend on each other in the events."""
    if profile.events is None:
        return
    asked: dict[tuple[str, str], int] = {}
    for names, count in profile.subscriptions.combinations.most_common(_MOST):
        for pair in combinations(names[:_MOST], 2):
            if all(name in profile.events.sketches for name in pair):
                asked[pair] = asked.get(pair, 0) + count
    found = [(profile.dependence(*pair), pair) for pair in asked]
    for strength, (left, right) in sorted(found, reverse=True)[:_MOST]:
        if strength >= _DEPENDENT:
            yield f"  {left} and {right} depend on each other: {strength:.2f} of what one could tell of the other"
