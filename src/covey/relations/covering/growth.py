"""Arrays that grow: at least as long as asked for, doubling, so that growing costs a constant for each element."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray


def grown(array: NDArray[Any], needed: int, fill: int = 0) -> NDArray[Any]:
    """The array itself where it is long enough, else a longer copy; new elements have the fill value."""
    if needed <= len(array):
        return array
    longer = np.full((max(needed, 2 * len(array)), *array.shape[1:]), fill, array.dtype)
    longer[: len(array)] = array
    return longer
