"""Arrays that grow: room for half as much again, so that adding one by one stays linear."""

from __future__ import annotations

from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

Scalar = TypeVar("Scalar", bound=np.generic)

_LEAST = 64


def fitted(array: NDArray[Scalar], length: int) -> NDArray[Scalar]:
    """The array itself where it is long enough, else a longer one that starts with it, zeros behind."""
    if len(array) >= length:
        return array
    longer = np.zeros((max(_LEAST, length, len(array) * 3 // 2), *array.shape[1:]), dtype=array.dtype)
    longer[: len(array)] = array
    return longer
