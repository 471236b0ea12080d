"""Kernels: the loops over arrays that Numba compiles, and how they reach a user compiled already.

The base room: it may import NumPy and Numba and nothing else of covey, so that a build can compile it alone. Every
kernel that Python calls is marked `@kernel` and declares the types of its parameters in its annotations (`types`);
what only kernels call is marked `@inner`, `@inlined` or `@forced`. `build` compiles all of them for a baseline of
processors into one file, the bundle; `bundle` finds a kernel there, or in the user's cache, or has it compiled.

Importing this package imports nothing; its modules import Numba, which takes a quarter of a second and more. Rooms
above that answer small questions without kernels ask for them with `on_demand`.
"""

from __future__ import annotations

import sys
from importlib import import_module
from typing import Any


class _OnDemand:
    """A module that is imported when something of it is first asked for; then its names are plain attributes."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, name: str) -> Any:
        value = getattr(import_module(self._name), name)
        setattr(self, name, value)
        return value


def on_demand(name: str) -> Any:
    """A module of kernels that is imported when one of them is first called."""
    return _OnDemand(f"{__name__}.{name}")


def kernels_loaded() -> bool:
    """Whether some kernel was called for already; before, a small question is answered sooner without."""
    return f"{__name__}.jit" in sys.modules
