"""Where compiled kernels come from: the package's bundle, the user's cache, or the compiler.

The bundle is one file in this package, made by `build` when covey is installed or packed: machine code for a baseline
of processors (`BASELINES`), by kernel and types. It counts while what it was made of is the same: the version of Numba
(which rejects what another one has compiled), Python's version, and the sources of the kernel and of all modules that
it takes anything from, each of which has a stamp. A processor that lacks an instruction of the baseline, another
Numba or an edited kernel is told once on standard error, and compiled into the user's cache, one process at a time.

    magic, length of the header (8 bytes, little-endian), header (JSON), machine code of all kernels

Nothing is unpickled from a place that others may write to: the cache is the user's own directory.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import pickle
import platform
import re
import sys
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Any

import llvmlite.binding as llvm
import numba
from numba.core import serialize
from numba.core.caching import _Cache
from numba.core.compiler import CompileResult

MAGIC = b"covey kernels 1\n"
FILE = "compiled.bundle"
ROOM = __name__.rpartition(".")[0]


@dataclass(frozen=True, slots=True)
class Baseline:
    """A kind of processor: as LLVM calls it, and the features that a processor must have to run code made for it."""

    cpu: str
    features: frozenset[str]


BASELINES: Mapping[str, Baseline] = {
    "x86_64": Baseline(
        "x86-64-v3",
        frozenset(
            [
                "avx",
                "avx2",
                "bmi",
                "bmi2",
                "cx16",
                "f16c",
                "fma",
                "lzcnt",
                "movbe",
                "popcnt",
                "sse3",
                "sse4.1",
                "sse4.2",
                "ssse3",
                "xsave",
            ]
        ),
    ),
    "aarch64": Baseline("generic", frozenset({"neon"})),
}
"""By architecture, as `platform.machine()` has it."""

SECONDS_TO_COMPILE = 120
"""About how long all kernels take where nothing is compiled, on one core."""


class BundleError(Exception):
    """Why the bundle can't be used."""


@dataclass(frozen=True, slots=True)
class Bundle:
    """The header of a bundle, and where its code lies."""

    path: Any
    header: Mapping[str, Any]
    start: int

    def code(self, key: str) -> bytes | None:
        """The code under a key."""
        place = self.header["kernels"].get(key)
        if place is None:
            return None
        first, length = place
        with self.path.open("rb") as file:
            file.seek(self.start + first)
            return bytes(file.read(length))

    def outdated(self) -> list[str]:
        """The modules that were edited or taken away since."""
        modules = {key.partition(":")[0]: key.rpartition(":")[2] for key in self.header["kernels"]}
        return sorted(module for module, made in modules.items() if not _is_made_of(module, made))


def identity() -> dict[str, str]:
    """What code depends on besides its sources and its processor."""
    return {
        "numba": numba.__version__,
        "python": f"{sys.implementation.name} {sys.version_info.major}.{sys.version_info.minor}",
        "machine": platform.machine(),
    }


def baseline() -> Baseline | None:
    """The baseline of this machine's architecture."""
    return BASELINES.get(platform.machine())


def write(path: Path, kernels: Mapping[str, bytes]) -> None:
    """Write a bundle."""
    places: dict[str, tuple[int, int]] = {}
    at = 0
    for key, code in kernels.items():
        places[key] = (at, len(code))
        at += len(code)
    target = baseline()
    header = json.dumps({**identity(), "cpu": target.cpu if target else None, "kernels": places}).encode()
    partial = path.with_name(path.name + ".partial")
    with partial.open("wb") as file:
        file.write(MAGIC + len(header).to_bytes(8, "little") + header)
        for code in kernels.values():
            file.write(code)
    partial.replace(path)


@cache
def opened() -> Bundle | BundleError:
    """The package's bundle, or why there is none for this machine."""
    if os.environ.get("COVEY_BUNDLE") == "off":
        return BundleError("COVEY_BUNDLE=off says so")
    found = read(resources.files(ROOM).joinpath(FILE))
    target = baseline()
    if isinstance(found, Bundle) and target is not None:
        lacking = sorted(target.features - _host_features())
        if lacking:
            return BundleError(
                f"the bundle is for processors of kind {target.cpu}; this one lacks {', '.join(lacking)}"
            )
    return found


def read(path: Any) -> Bundle | BundleError:
    """A bundle that was made for this Python, Numba and architecture, or why there is none."""
    if not path.is_file():
        return BundleError("this installation has no compiled kernels; 'make setup' or 'pip install .' makes them")
    with path.open("rb") as file:
        if file.read(len(MAGIC)) != MAGIC:
            return BundleError("the bundle is of another layout; install covey again")
        length = int.from_bytes(file.read(8), "little")
        header = json.loads(file.read(length))
    for what, here in identity().items():
        if header[what] != here:
            return BundleError(f"the bundle is made for {what} {header[what]}, and this is {here}")
    target = baseline()
    if target is None or header["cpu"] != target.cpu:
        return BundleError(f"the bundle is made for {header['cpu']} processors")
    return Bundle(path, header, len(MAGIC) + 8 + length)


@cache
def _host_features() -> frozenset[str]:
    return frozenset(name for name, there in llvm.get_host_cpu_features().items() if there)


def describe() -> tuple[bool, str]:
    """Whether kernels are compiled already, and a line about it."""
    found = opened()
    if isinstance(found, BundleError):
        directory = cache_directory()
        kept = f"kept in {directory}" if directory else "in every process, since no cache directory can be written"
        return False, f"{found}; kernels are compiled at first use, {kept}"
    changed = found.outdated()
    if changed:
        return False, f"kernels in {', '.join(changed)} were edited since; they are compiled at first use"
    return True, f"{len(found.header['kernels'])} kernels for {found.header['cpu']}, Numba {found.header['numba']}"


@cache
def stamp(module: str) -> str:
    """A hash of a module's source and of the modules of this room that it imports."""
    digest = hashlib.blake2b(digest_size=12)
    for name in sorted(_sources_of(module)):
        digest.update(_source(name))
    return digest.hexdigest()


def _is_made_of(module: str, made: str) -> bool:
    try:
        return made == stamp(module)
    except FileNotFoundError:
        return False


@cache
def _source(module: str) -> bytes:
    return resources.files(ROOM).joinpath(f"{module.rpartition('.')[2]}.py").read_bytes()


_IMPORT = re.compile(rf"^from {re.escape(ROOM)}\.(\w+) import".encode(), re.MULTILINE)
_WITHOUT_CODE = {"bundle"}
"""What finds and keeps code has no part in it."""


def _sources_of(module: str) -> set[str]:
    found: set[str] = set()
    waiting = [module]
    while waiting:
        name = waiting.pop()
        if name in found:
            continue
        found.add(name)
        named = (match.decode() for match in _IMPORT.findall(_source(name)))
        waiting += [f"{ROOM}.{other}" for other in named if other not in _WITHOUT_CODE]
    return found


def key_of(function: Any, types: tuple[Any, ...]) -> str:
    """A kernel's name in the bundle."""
    return f"{function.__module__}:{function.__name__}:{','.join(map(str, types))}:{stamp(function.__module__)}"


def packed(result: Any) -> bytes:
    """Compiled code as bytes."""
    return bytes(serialize.dumps(result._reduce()))


class CompiledKernels(_Cache):  # type: ignore[misc]
    """What Numba's dispatcher asks for compiled code: one kernel's."""

    def __init__(self, function: Any) -> None:
        self._function = function
        self.wanted: str | None = None
        """The key under which the code that is being compiled will be kept; None for what isn't declared."""

    @property
    def cache_path(self) -> str:
        """Where code is kept that isn't in the bundle."""
        return str(cache_directory())

    @contextlib.contextmanager
    def locked(self, types: tuple[Any, ...]) -> Iterator[None]:
        """Hold the user's cache while a kernel is looked for and compiled, unless the bundle has it."""
        key = key_of(self._function, types)
        found = opened()
        self.wanted = key
        try:
            if isinstance(found, Bundle) and key in found.header["kernels"]:
                yield
            else:
                with _exclusive():
                    yield
        finally:
            self.wanted = None

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """Compiled code for these types, if there is any."""
        if self.wanted is None or key_of(self._function, tuple(sig)) != self.wanted:
            return None
        found = opened()
        code = found.code(self.wanted) if isinstance(found, Bundle) else None
        if code is None:
            code = _from_cache(self.wanted)
        if code is None:
            _tell(found)
            return None
        target_context.refresh()
        return CompileResult._rebuild(target_context, *pickle.loads(code))

    def save_overload(self, sig: Any, data: Any) -> None:
        """Keep what was compiled."""
        if self.wanted is not None and key_of(self._function, tuple(sig)) == self.wanted:
            _into_cache(self.wanted, data)

    def enable(self) -> None:
        """Always enabled."""

    def disable(self) -> None:
        """Always enabled."""

    def flush(self) -> None:
        """Code in the bundle stays."""


# The user's cache: a file for each kernel, in a directory for each kind of processor and version of Numba.


@cache
def cache_directory() -> Path | None:
    """The user's own directory for compiled kernels, or None where none can be written."""
    given = os.environ.get("NUMBA_CACHE_DIR") or os.environ.get("COVEY_CACHE_DIR")
    homes = [Path(given)] if given else []
    if os.environ.get("XDG_CACHE_HOME"):
        homes.append(Path(os.environ["XDG_CACHE_HOME"]))
    with contextlib.suppress(RuntimeError):
        homes.append(Path.home() / ".cache")
    with contextlib.suppress(OSError):
        homes.append(Path(tempfile.gettempdir()) / f"covey-{os.getuid() if hasattr(os, 'getuid') else 'user'}")
    host = hashlib.blake2b(repr((identity(), numba.config.CPU_NAME, sorted(_host_features()))).encode(), digest_size=6)
    for home in homes:
        directory = home / "covey-kernels" / host.hexdigest()
        with contextlib.suppress(OSError):
            directory.mkdir(mode=0o700, parents=True, exist_ok=True)
            if _is_ours(directory) and os.access(directory, os.W_OK):
                return directory
    return None


def _is_ours(directory: Path) -> bool:
    """Whether nobody else can have put anything there."""
    if not hasattr(os, "getuid"):
        return True
    for place in (directory, directory.parent):
        facts = place.stat()
        if facts.st_uid != os.getuid() or facts.st_mode & 0o022:
            return False
    return True


def _cached_file(key: str) -> Path | None:
    directory = cache_directory()
    return directory and directory / f"{hashlib.blake2b(key.encode(), digest_size=16).hexdigest()}.kernel"


def _from_cache(key: str) -> bytes | None:
    path = _cached_file(key)
    try:
        return path.read_bytes() if path else None
    except OSError:
        return None


def _into_cache(key: str, result: Any) -> None:
    path = _cached_file(key)
    if path is None:
        return
    with contextlib.suppress(OSError):
        partial = path.with_suffix(f".{os.getpid()}")
        partial.write_bytes(packed(result))
        partial.replace(path)


_told = False


def _tell(found: Bundle | BundleError) -> None:
    """Say once why something is compiled, and how long that takes."""
    global _told
    if _told or os.environ.get("COVEY_BUNDLE") == "building":
        return
    _told = True
    why = str(found) if isinstance(found, BundleError) else "kernels were edited since the bundle was made"
    directory = cache_directory()
    kept = f"once; they are kept in {directory}" if directory else "in every process: no cache directory can be written"
    print(
        f"covey: compiling kernels, which takes up to {SECONDS_TO_COMPILE} s, {kept} ({why})",
        file=sys.stderr,
        flush=True,
    )


_depth = 0
_lock_file: Any = None


@contextlib.contextmanager
def _exclusive() -> Iterator[None]:
    """One process at a time compiles into the cache, so that the next one finds what it would compile too.

    Numba compiles under a lock of its own, which keeps the threads of one process apart; kernels that are compiled
    for another one come in here again."""
    global _depth, _lock_file
    from numba.core.compiler_lock import global_compiler_lock

    with global_compiler_lock:
        directory = cache_directory()
        if _depth == 0 and directory is not None:
            with contextlib.suppress(OSError, ImportError):
                import fcntl

                _lock_file = (directory / "lock").open("w")
                fcntl.flock(_lock_file, fcntl.LOCK_EX)
        _depth += 1
        try:
            yield
        finally:
            _depth -= 1
            if _depth == 0 and _lock_file is not None:
                _lock_file.close()
                _lock_file = None
