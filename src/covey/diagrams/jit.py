"""How kernels are compiled: once, kept on disk, without Python's lock."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, cast

import numba

Kernel = TypeVar("Kernel", bound=Callable[..., Any])


def kernel(function: Kernel) -> Kernel:
    """Compile a function over arrays. The plain function stays reachable as `.py_func`."""
    return cast(Kernel, numba.njit(cache=True, nogil=True)(function))
