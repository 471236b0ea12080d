"""Arrays that grow: at least as long as asked for, doubling, so that growing costs a constant for each element."""

from __future__ import annotations

from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

Scalar = TypeVar("Scalar", bound=np.generic)


def grown(array: NDArray[Scalar], needed: int, fill: int = 0) -> NDArray[Scalar]:
    """The array itself where it is long enough, else a longer copy; new elements have the fill value."""
    if needed <= len(array):
        return array
    shape = (max(needed, 2 * len(array)), *array.shape[1:])
    # Zeros come from the system as they are, page by page when they are first touched.
    longer = np.full(shape, fill, array.dtype) if fill else np.zeros(shape, array.dtype)
    longer[: len(array)] = array
    return longer
