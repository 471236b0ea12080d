"""`merge`: one filter that covers several, and how far from their union it is.

A perfect merger matches exactly what its parts match, together. Shapes are united pair by pair while a rule applies
(`rules.united`); if one is left it is the merger, otherwise the disjunction of those left is. An imperfect merger is
one shape again: it constrains the attributes that all parts constrain, each by the simplest rule that is allowed. If
that matches too much, as it often does for Boolean filters, the disjunction is pruned instead (`pruned.py`).
How many events match it that match none of its parts is its imperfect degree (`degrees.py`).

Perfect mergers always exist but under `strict`, where a filter asks for every attribute that it names: there filters on
different attributes have no union that a filter could mean.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Generic, TypeVar

from covey.errors import CoveyError
from covey.events.meaning import Meaning
from covey.filters.algebra import Filter, any_of
from covey.filters.semantics import Defaults, Semantics
from covey.relations.conjunctions import conjunction_from
from covey.relations.merging.degrees import imperfect_degree
from covey.relations.merging.pruned import pruned_disjunction
from covey.relations.merging.rules import (
    MAX_PIECES,
    Rule,
    is_simple,
    joined,
    never_advertised,
    united,
    with_gaps_closed,
)
from covey.relations.merging.shapes import Shape, shape_of
from covey.relations.value_sets import NOTHING, ValueSet

if TYPE_CHECKING:
    from covey.events.schema import Schema
    from covey.history import Chances

Part = TypeVar("Part")


class MergeError(CoveyError):
    """Filters that have no merger of the kind that is asked for."""


@dataclass(frozen=True, slots=True)
class Merger(Generic[Part]):
    """A filter that stands for others."""

    filter: Filter
    parts: tuple[Part, ...]
    """What it stands for: ids in a table, otherwise the filters themselves."""
    perfect: bool
    """Whether it is known to match exactly what its parts match."""
    degree: float
    """Which fraction of the events that match it match none of its parts (definitions 1 and 2); 0 where perfect. Of
    parts that are imperfect mergers already, what these let through in vain counts too, and this is a bound."""


def merge(
    filters: Iterable[Filter],
    *,
    semantics: Semantics = "sql",
    defaults: Defaults | None = None,
    schema: Schema | None = None,
    chances: Chances | None = None,
    advertisements: Sequence[Filter] = (),
    imperfect: bool = False,
    imt: float = 1.0,
    rules: Sequence[Rule] = ("union", "hull"),
    max_pieces: int = MAX_PIECES,
) -> Merger[Filter]:
    """One filter that matches whatever any of the filters matches.

    Of the events that `advertisements` allow, it matches nothing more unless `imperfect` allows it to: then it is a
    single conjunction, made by `rules`, if its degree under `chances` and `advertisements` is at most the imperfect
    merging threshold `imt`; or else the disjunction, pruned as far as the threshold allows; or else the perfect merger.
    Without `chances`, events are taken as uniform around the constants (`Uniform.around`).
    """
    meaning = Meaning(semantics, defaults, schema)
    parts = tuple(filters)
    if not parts:
        raise MergeError("there is nothing to merge; give at least one filter")
    shapes = [shape_of(part, meaning) for part in parts]
    exact = left = simplified(shapes, meaning)
    free = never_advertised(shape_of(advertisement, meaning) for advertisement in advertisements)
    if free:
        left = simplified((with_free_gaps_closed(shape, free, meaning) for shape in exact), meaning)
    if imperfect:
        shape = _single(shapes, left, free, meaning, rules, max_pieces)
        if left != [shape]:
            merger = shape.to_filter(meaning)
            degree = imperfect_degree(merger, parts, chances, advertisements=advertisements, meaning=meaning)
            if degree <= imt:
                return Merger(merger, parts, False, degree)
            pruned = pruned_disjunction(parts, chances=chances, advertisements=advertisements, imt=imt, meaning=meaning)
            if pruned is not None:
                return Merger(pruned[0], parts, False, pruned[1])
    return Merger(_disjunction(left, parts, shapes, meaning), parts, left == exact, 0.0)


def _single(
    shapes: Sequence[Shape],
    left: Sequence[Shape],
    free: Mapping[str, ValueSet],
    meaning: Meaning,
    rules: Sequence[Rule],
    max_pieces: int,
) -> Shape:
    """One shape that covers all: the perfect one if it is simple, with free gaps closed, or by the rules."""
    if left[0] in shapes and len(left) == 1:
        return left[0]
    if "union" in rules:
        around = with_free_gaps_closed(joined(shapes, meaning), free, meaning)
        for shape in (*left, around) if len(left) == 1 else (around,):
            if not _is_long(shape, shapes, max_pieces):
                return shape
    return joined(shapes, meaning, rules, max_pieces)


def simplified(shapes: Iterable[Shape], meaning: Meaning) -> list[Shape]:
    """Shapes with the same union, as few as uniting pairs gives; quadratic, `merge_table` is for many."""
    left: list[Shape] = []
    waiting = list(dict.fromkeys(shapes))
    while waiting:
        shape = waiting.pop(0)
        for at, other in enumerate(left):
            union = united(other, shape, meaning)
            if union is None:
                continue
            if union is not other:
                # The union may unite with what did not unite with its parts.
                del left[at]
                waiting.insert(0, union)
            break
        else:
            left.append(shape)
    return left


def with_free_gaps_closed(shape: Shape, free: Mapping[str, ValueSet], meaning: Meaning) -> Shape:
    """The shape with those gaps of its sets closed that no advertised event falls into."""
    if not shape.satisfiable:
        return shape
    closed = [(name, with_gaps_closed(values, free.get(name, NOTHING))) for name, values in shape.conjunction.sets]
    return Shape(conjunction_from(closed, meaning), shape.opaque)


def _is_long(shape: Shape, parts: Sequence[Shape], max_pieces: int) -> bool:
    for name, values in shape.conjunction.sets:
        theirs = [own for part in parts if (own := part.conjunction.get(name)) is not None]
        if not is_simple(values, theirs, max_pieces):
            return True
    return False


def _printed(shape: Shape, parts: Sequence[Filter], shapes: Sequence[Shape], meaning: Meaning) -> Filter:
    """A part as it was written where it is the shape, and the shape's own filter otherwise. Under `strict` a part that
    names more than its shape would ask for more in a disjunction."""
    for part, own in zip(parts, shapes, strict=True):
        if own == shape and (meaning.semantics != "strict" or part.attributes() == shape.names()):
            return part
    return shape.to_filter(meaning)


def _disjunction(left: Sequence[Shape], parts: Sequence[Filter], shapes: Sequence[Shape], meaning: Meaning) -> Filter:
    if meaning.semantics == "strict" and len({shape.names() for shape in left}) > 1:
        raise MergeError(
            "filters that name different attributes have no perfect merger under strict semantics; allow imperfect ones"
        )
    return any_of(_printed(shape, parts, shapes, meaning) for shape in left)
