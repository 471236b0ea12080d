"""Filters in the form in which compaction's steps pass them on: one normal form, pickled, parsed once."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterator
from typing import Any

import pyarrow as pa

from covey.errors import CoveyError
from covey.events.meaning import Meaning
from covey.filters import FALSE, Filter, Semantics
from covey.language import parse
from covey.relations.conjunctions import UNSATISFIABLE, Conjunction, conjunction_of

Form = Conjunction | Filter

ENTRIES = "id string, filter string, form binary, names array<string>, stands_for array<string>"
"""An entry: its id, its text, its form, the attributes that it names, and the ids of what it stands for."""
NORMAL = "id string, filter string, form binary, names array<string>, error string"


def normal_form(condition: Filter, semantics: Semantics) -> Form:
    """A conjunction where the filter is one, else the filter itself. Equal conjunctions have equal forms; that two
    Boolean filters of different forms mean the same is left to covering."""
    form = conjunction_of(condition, Meaning(semantics))
    if form is None:
        return condition
    return FALSE if form == UNSATISFIABLE else form


def names_of(form: Form) -> list[str]:
    """The attributes that a form names, sorted."""
    return [name for name, _ in form.sets] if isinstance(form, Conjunction) else sorted(form.attributes())


def normalising(semantics: Semantics, dialect: str) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """In a worker: (id, text) to (id, text, form, names, error)."""

    def normalise(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            rows = [_normal(text, semantics, dialect) for text in batch.column(1).to_pylist()]
            forms, names, errors = zip(*rows, strict=True) if rows else ((), (), ())
            yield pa.RecordBatch.from_arrays(
                [
                    *batch.columns, pa.array(forms, pa.binary()), pa.array(names, pa.list_(pa.string())),
                    pa.array(errors, pa.string()),
                ],
                names=["id", "filter", "form", "names", "error"],
            )  # fmt: skip

    return normalise


def _normal(text: Any, semantics: Semantics, dialect: str) -> tuple[bytes | None, list[str] | None, str | None]:
    try:
        form = normal_form(parse(text, dialect), semantics)
    except (CoveyError, TypeError) as mistake:
        return None, None, str(mistake).splitlines()[0]
    return pickle.dumps(form, protocol=5), names_of(form), None
