"""How much one attribute of the events tells about another: normalised mutual information on a sample.

Values are put into at most sixteen classes each, numbers by quantiles and others by frequency, missing being a class of
its own. The mutual information of the classes is divided by the smaller entropy, so that 0 says independent and 1 that
one attribute's class determines the other's. The part that chance alone gives to a finite table (Miller and Madow) is
taken off first, so that independent attributes come out at about 0.
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
    a, b = _classes(sample[left]), _classes(sample[right])
    table = np.zeros((a.max() + 1, b.max() + 1))
    np.add.at(table, (a, b), 1)
    smaller = min(_entropy(table.sum(axis=1)), _entropy(table.sum(axis=0)))
    if smaller == 0:
        return 0.0
    information = _entropy(table.sum(axis=1)) + _entropy(table.sum(axis=0)) - _entropy(table.ravel())
    rows, cells = (int(np.count_nonzero(table.sum(axis=axis))) for axis in (1, 0))
    by_chance = (rows - 1) * (cells - 1) / (2 * sample.num_rows)
    return float(min(1.0, max(0.0, information - by_chance) / smaller))


def _classes(column: pa.ChunkedArray) -> NDArray[np.int64]:
    values = column.combine_chunks()
    if isinstance(values, pa.ChunkedArray):
        values = pa.concat_arrays(values.chunks)
    present = np.asarray(values.is_valid())
    classes = np.zeros(len(values), np.int64)
    if not present.any():
        return classes
    if pa.types.is_integer(values.type) or pa.types.is_floating(values.type) or pa.types.is_timestamp(values.type):
        known = values.drop_null()
        numbers = (known.cast(pa.int64()) if pa.types.is_timestamp(values.type) else known).cast(
            pa.float64(), safe=False
        )
        numbers = np.nan_to_num(numbers.to_numpy(zero_copy_only=False), nan=np.inf)
        bounds = np.unique(np.quantile(numbers, np.linspace(0, 1, _CLASSES)[1:-1], method="lower"))
        classes[present] = 1 + np.searchsorted(bounds, numbers, side="left")
        return classes
    texts = (values if not pa.types.is_list(values.type) else pa.array([str(one) for one in values.to_pylist()])).cast(
        pa.string()
    )
    counts = pc.value_counts(texts.filter(pa.array(present)))
    order = np.argsort(-counts.field(1).to_numpy(), kind="stable")[: _CLASSES - 1]
    frequent = counts.field(0).take(pa.array(order))
    found = pc.index_in(texts, frequent).fill_null(_CLASSES - 1).to_numpy(zero_copy_only=False)
    classes[present] = 1 + found[present]
    return classes


def _entropy(counts: NDArray[np.float64]) -> float:
    fractions = counts[counts > 0] / counts.sum()
    return float(-(fractions * np.log(fractions)).sum())
