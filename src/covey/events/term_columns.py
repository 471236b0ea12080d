"""Columns of terms: each distinct term is computed once for a batch, from the columns of the attributes inside it.

A batch may bring a term's column itself, under the term's name, as Spark's workers do; it is then taken as it is. What
is computed here is what the interpreter gives (`Term.value`): NumPy does arithmetic and comparisons wherever that is
sure, the interpreter the rest, once for each distinct combination of the attributes' values. Defaults count before
terms do.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from covey.events.pieces import Piece, pieces_of_values, python_values
from covey.events.term_vectors import Vectors, pieces_of
from covey.filters.semantics import attribute_value
from covey.filters.terms import Term, of_whole_event, term_of
from covey.filters.values import Scalar, Value


def attributes_of(names: Iterable[str]) -> list[str]:
    """The attributes that terms of these names take their values from, each once; of a path itself."""
    return list(dict.fromkeys(inner for name in names for inner in term_of(name).attributes()))


def term_pieces(
    term: Term, vectors: Vectors, columns: Mapping[str, tuple[Piece, ...]], length: int, defaults: Mapping[str, Scalar]
) -> tuple[Piece, ...]:
    """The column of a term, given those of its attributes: by vectors where they are sure, else by the interpreter for
    the distinct combinations of its attributes' values."""
    names = term.attributes()
    if not any(name in defaults for name in names):
        vector = vectors.of(term)
        if vector is not None:
            return pieces_of(vector, length)
    if not length:
        return ()
    inputs = {name: _distinct(columns[name], length, defaults.get(name)) for name in names}
    firsts, inverse = _combinations([codes for codes, _ in inputs.values()], length)
    found: dict[str, list[Value | None]] = {
        name: [values[code] for code in codes[firsts].tolist()] for name, (codes, values) in inputs.items()
    }
    row = 0

    def lookup(name: str) -> Value | None:
        return found[name][row]

    results: list[Value | None] = []
    for row in range(len(firsts)):  # noqa: B007
        results.append(term.value(lookup))
    return _repeated(pieces_of_values(results, term.name), len(firsts), inverse)


def _distinct(
    pieces: tuple[Piece, ...], length: int, default: Scalar | None
) -> tuple[NDArray[np.int64], list[Value | None]]:
    """For each row the number of its value, and the values by number; 0 is missing, or the default."""
    codes = np.zeros(length, dtype=np.int64)
    values: list[Value | None] = [default]
    for piece in pieces:
        match piece.type:
            case "string":
                assert piece.dictionary is not None
                numbers, words = piece.values.astype(np.int64), piece.dictionary.to_pylist()
            case "bigint" | "list":
                numbers, words = np.arange(len(piece.values)), list(piece.values)
            case _:
                # -0.0 isn't 0.0 in a term, so doubles are told apart by their bits.
                bits = piece.values.view(np.int64) if piece.type == "double" else piece.values
                _, first, numbers = np.unique(bits, return_index=True, return_inverse=True)
                words = python_values(replace(piece, rows=None, values=piece.values[first]))
        codes[slice(None) if piece.rows is None else piece.rows] = numbers + len(values)
        values += words
    return codes, values


def _combinations(codes: list[NDArray[np.int64]], length: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The first row of each distinct combination, and for each row the number of its own."""
    first, inverse = np.zeros(1, dtype=np.int64), np.zeros(length, dtype=np.int64)
    for one in codes:
        joined = inverse * (int(one.max()) + 1) + one
        _, first, inverse = np.unique(joined, return_index=True, return_inverse=True)
    return first, inverse


def _repeated(pieces: tuple[Piece, ...], count: int, inverse: NDArray[np.int64]) -> tuple[Piece, ...]:
    """A column of distinct rows as that of all rows."""
    wide = []
    for piece in pieces:
        place = np.full(count, -1, dtype=np.int64)
        place[slice(None) if piece.rows is None else piece.rows] = np.arange(len(piece.values))
        found = place[inverse]
        rows = None if piece.rows is None else np.flatnonzero(found >= 0)
        wide.append(replace(piece, rows=rows, values=piece.values[found if rows is None else found[rows]]))
    return tuple(wide)


def with_terms(
    event: Mapping[str, Any], terms: Iterable[Term], defaults: Mapping[str, Scalar], given: Mapping[str, Any]
) -> dict[str, Any]:
    """One event's attributes, normalised, and beside them the values of terms by their names. The event as it was
    `given` tells what is null in it from what it lacks."""

    def lookup(name: str) -> Value | None:
        if of_whole_event(name):
            return attribute_value(given, name)
        value: Value | None = event.get(name)
        return defaults.get(name) if value is None else value

    found = dict(event)
    for term in terms:
        value = term.value(lookup)
        if value is not None:
            found[term.name] = value
    return found
