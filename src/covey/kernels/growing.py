"""Arrays that grow while kernels fill them."""

from __future__ import annotations

import numpy as np

from covey.kernels.jit import inner


@inner
def grown(array, needed):
    """The array itself, or a larger one with what it holds."""
    if needed <= len(array):
        return array
    larger = np.empty(max(needed, 2 * len(array)), array.dtype)
    for i in range(len(array)):
        larger[i] = array[i]
    return larger
