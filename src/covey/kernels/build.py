"""Compile kernels into the bundle: `python -m covey.kernels.build [FILE]`.

Kernels that the bundle has from the same sources stay; after an edit only its module and those that import it are due.

Modules of kernels are dealt out to one process a core, those that take longest first. Code is made for the baseline of
the architecture, which Numba takes from the environment before it starts. Where there is no baseline nothing is made,
and covey compiles at first use.
"""

from __future__ import annotations

import contextlib
import gc
import os
import pickle
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator, Mapping
from importlib import import_module
from pathlib import Path
from queue import Empty, SimpleQueue
from threading import Thread
from typing import Any

from covey.kernels import bundle

MODULES = (
    "single_json", "single_dict", "single_maps", "single", "planning", "roots", "matching", "bulk_parsing", "pruning",
    "compiling", "splitting", "literals", "sweeping", "diagrams", "json_lines", "rectangles", "merging", "restricting",
    "messagepack", "witnesses", "encoding", "value_sets", "event_texts", "results",
    "publications", "scanning",
)  # fmt: skip
"""All modules that have kernels, those that take longest first."""


def build(path: Path, *, processes: int | None = None, progress: bool = True) -> int:
    """Compile what the bundle there lacks, or has from other sources, and write it; gives how many kernels it has."""
    target = bundle.baseline()
    if target is None:
        print("covey: no baseline for this architecture; kernels will be compiled at first use", file=sys.stderr)
        return 0
    kernels = _current(path)
    there = {key.partition(":")[0] for key in kernels}
    due = [module for module in MODULES if f"{bundle.ROOM}.{module}" not in there]
    if not due:
        return len(kernels)
    began = time.monotonic()
    environment = os.environ | {
        "NUMBA_CPU_NAME": target.cpu,
        "NUMBA_CPU_FEATURES": "",
        "PYTHONPATH": os.pathsep.join(filter(None, [_source_root(), os.environ.get("PYTHONPATH", "")])),
    }
    with _Compilers(min(_cores(processes), len(due)), environment) as compilers:
        for done, made in enumerate(compilers.compiled(due), 1):
            kernels |= made
            if progress:
                print(f"covey: compiled {done} of {len(due)} modules of kernels", file=sys.stderr, flush=True)
    bundle.write(path, dict(sorted(kernels.items())))
    if progress:
        took = time.monotonic() - began
        size = path.stat().st_size / 2**20
        print(f"covey: {len(kernels)} kernels for {target.cpu}, {size:.1f} MiB, in {took:.0f} s", file=sys.stderr)
    return len(kernels)


def _current(path: Path) -> dict[str, bytes]:
    """The kernels of the bundle there whose sources are as they were."""
    found = bundle.read(path)
    if isinstance(found, bundle.BundleError):
        return {}
    edited = {*found.outdated()}
    keys = [key for key in found.header["kernels"] if key.partition(":")[0] not in edited]
    return {key: code for key in keys if (code := found.code(key)) is not None}


def _cores(processes: int | None) -> int:
    if processes is not None:
        return processes
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _source_root() -> str:
    return str(Path(__file__).resolve().parents[2])


class _Compilers:
    """Processes that compile one module after another, since starting Numba takes a second and more."""

    def __init__(self, count: int, environment: Mapping[str, str]) -> None:
        command = [sys.executable, "-m", f"{bundle.ROOM}.build", "--modules"]
        self._processes = [
            subprocess.Popen(command, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
            for _ in range(count)
        ]

    def __enter__(self) -> _Compilers:
        return self

    def __exit__(self, *_: object) -> None:
        for process in self._processes:
            process.kill()
            process.communicate()

    def compiled(self, modules: Iterable[str]) -> Iterator[dict[str, bytes]]:
        """What each module makes, as it is done."""
        waiting, done = SimpleQueue[str](), SimpleQueue[dict[str, bytes] | Exception]()
        count = 0
        for module in modules:
            waiting.put(module)
            count += 1
        for process in self._processes:
            Thread(target=_feed, args=(process, waiting, done), daemon=True).start()
        for _ in range(count):
            result = done.get()
            if isinstance(result, Exception):
                raise result
            yield result


def _feed(process: subprocess.Popen[bytes], waiting: SimpleQueue[str], done: SimpleQueue[Any]) -> None:
    assert process.stdin is not None
    assert process.stdout is not None
    while True:
        try:
            module = waiting.get_nowait()
        except Empty:
            return
        try:
            process.stdin.write(f"{module}\n".encode())
            process.stdin.flush()
            done.put(pickle.load(process.stdout))
        except (OSError, EOFError, pickle.UnpicklingError) as error:
            done.put(RuntimeError(f"the kernels of {module} can't be compiled: {error}"))
            return


def compile_module(module: str) -> dict[str, bytes]:
    """The code of a module's kernels by key, compiled in this process."""
    from covey.kernels.jit import KERNELS

    name = f"{bundle.ROOM}.{module}"
    import_module(name)
    made: dict[str, bytes] = {}
    for kernel in KERNELS.get(name, []):
        kernel.compile(kernel.declared)
        made[bundle.key_of(kernel.py_func, kernel.declared)] = bundle.packed(kernel.overloads[kernel.declared])
    return made


@contextlib.contextmanager
def _without_collections() -> Iterator[None]:
    """Look for garbage after a module only: nearly all that Numba makes is still in use, and is gone through again."""
    gc.disable()
    try:
        yield
    finally:
        gc.collect()
        gc.freeze()  # what is left stays, in Numba's own tables


def main(arguments: list[str]) -> None:
    """Bring the bundle up to date, or compile modules for the process that does."""
    if arguments == ["--modules"]:
        out = os.fdopen(os.dup(1), "wb")
        os.dup2(2, 1)  # whatever prints on the way doesn't get between
        for line in sys.stdin:
            with _without_collections():
                made = compile_module(line.strip())
            pickle.dump(made, out)
            out.flush()
        return
    build(Path(arguments[0]) if arguments else Path(__file__).with_name(bundle.FILE))


if __name__ == "__main__":
    main(sys.argv[1:])
