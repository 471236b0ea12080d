"""How much one attribute of the events tells about another: normalised mutual information on a sample.

Values are put into at most sixteen classes each, numbers by quantiles and others by frequency, missing being a class of
its own. The mutual information of the classes is divided by the smaller entropy, so that 0 says independent and 1 that
one attribute's class determines the other's. The part that chance alone gives to a finite table (Miller and Madow) is
taken off first, so that independent attributes come out at about 0.

Quantiles and frequencies cut values that determine each other in different places, so that a number and its name
would seem half dependent. Where the values of both repeat, both are put into classes by frequency too, which then are
the same classes, and the larger answer counts. What chance gives to such a table is reckoned from the cells that are
taken: those of attributes that determine each other are few. Of values that occur once each nothing can be learned in
this way.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

_CLASSES = 16


def dependence(sample: pa.Table, left: str, right: str) -> float:
    """Normalised mutual information of two columns, between 0 and 1."""
    if sample.num_rows < 2:
        return 0.0
    a, b = _values(sample[left]), _values(sample[right])
    found = _shared(_classes(a), _classes(b))
    if _is_number(a.type) or _is_number(b.type):
        found = max(found, _shared(_by_frequency(a, least=2), _by_frequency(b, least=2), sparse=True))
    return found


def _shared(a: NDArray[np.int64], b: NDArray[np.int64], *, sparse: bool = False) -> float:
    """What two classings have in common, as a part of the smaller one's entropy; of a sparse table, only the cells that
    are taken owe something to chance."""
    table = np.zeros((a.max() + 1, b.max() + 1))
    np.add.at(table, (a, b), 1)
    rows, cells = table.sum(axis=1), table.sum(axis=0)
    smaller = min(_entropy(rows), _entropy(cells))
    if smaller == 0:
        return 0.0
    information = _entropy(rows) + _entropy(cells) - _entropy(table.ravel())
    taken, taken_rows, taken_cells = (int(np.count_nonzero(counts)) for counts in (table, rows, cells))
    free = taken - taken_rows - taken_cells + 1 if sparse else (taken_rows - 1) * (taken_cells - 1)
    by_chance = free / (2 * len(a))
    return float(min(1.0, max(0.0, information - by_chance) / smaller))


def _values(column: pa.ChunkedArray) -> pa.Array:
    values = column.combine_chunks()
    return pa.concat_arrays(values.chunks) if isinstance(values, pa.ChunkedArray) else values


def _is_number(kind: pa.DataType) -> bool:
    return bool(pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_timestamp(kind))


def _classes(values: pa.Array) -> NDArray[np.int64]:
    """Classes by what suits the type; 0 is what is missing."""
    return _by_quantiles(values) if _is_number(values.type) else _by_frequency(values)


def _by_quantiles(values: pa.Array) -> NDArray[np.int64]:
    present = np.asarray(values.is_valid())
    classes = np.zeros(len(values), np.int64)
    if present.any():
        known = values.drop_null()
        numbers = (known.cast(pa.int64()) if pa.types.is_timestamp(values.type) else known).cast(
            pa.float64(), safe=False
        )
        numbers = np.nan_to_num(numbers.to_numpy(zero_copy_only=False), nan=np.inf)
        bounds = np.unique(np.quantile(numbers, np.linspace(0, 1, _CLASSES)[1:-1], method="lower"))
        classes[present] = 1 + np.searchsorted(bounds, numbers, side="left")
    return classes


def _by_frequency(values: pa.Array, least: int = 1) -> NDArray[np.int64]:
    """The most frequent values as classes of their own, those that occur as often in the order in which they come; only
    such as occur `least` times."""
    present = np.asarray(values.is_valid())
    classes = np.zeros(len(values), np.int64)
    if present.any():
        plain = pa.array([str(one) for one in values.to_pylist()]) if pa.types.is_list(values.type) else values
        counts = pc.value_counts(plain.filter(pa.array(present)))
        times = counts.field(1).to_numpy()
        order = np.argsort(-times, kind="stable")[: _CLASSES - 1]
        frequent = counts.field(0).take(pa.array(order[times[order] >= least]))
        found = pc.index_in(plain, frequent).fill_null(_CLASSES - 1).to_numpy(zero_copy_only=False)
        classes[present] = 1 + found[present]
    return classes


def _entropy(counts: NDArray[np.float64]) -> float:
    fractions = counts[counts > 0] / counts.sum()
    return float(-(fractions * np.log(fractions)).sum())
