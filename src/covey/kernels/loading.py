"""Load all kernels before they are needed: for servers, where else whoever comes first would make all others wait."""

from __future__ import annotations

from importlib import import_module

from covey.kernels.build import MODULES
from covey.kernels.bundle import ROOM


def load_all() -> int:
    """Import all kernels and load their code, about a second of processor time; gives how many there are."""
    for module in MODULES:
        import_module(f"{ROOM}.{module}")
    from covey.kernels.jit import KERNELS

    count = 0
    for kernels in list(KERNELS.values()):
        for kernel in kernels:
            kernel.load()
            count += 1
    return count
