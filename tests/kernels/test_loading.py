from __future__ import annotations

import subprocess
import sys

from covey.kernels.loading import load_all


def test_all_kernels_can_be_loaded_before_they_are_needed() -> None:
    from covey.kernels.jit import KERNELS

    count = load_all()
    assert count == sum(map(len, KERNELS.values()))
    assert all(kernel.overloads for kernels in KERNELS.values() for kernel in kernels)


def test_importing_what_loads_them_loads_nothing() -> None:
    code = "import sys, covey.kernels.loading; print('covey.kernels.jit' in sys.modules)"
    assert subprocess.check_output([sys.executable, "-c", code], text=True) == "False\n"
