"""Names of a package that are imported when they are first used.

Importing the matcher takes a second of Numba and Arrow, which `covey pub` or a client in a small script don't need. A
package says where its names live; `from covey import Index` then imports only what an index takes.

The package's `__getattr__` and `__dir__` are put there by `have_names`, not written in it: a type checker that sees a
`__getattr__` takes any name for one that is there. What it shall see stands below `if TYPE_CHECKING` in the package.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from importlib import import_module
from types import ModuleType
from typing import Any

from covey.errors import CoveyError


def have_names(
    package: str, homes: Mapping[str, Sequence[str]], *, extras: Mapping[str, Sequence[str]] | None = None
) -> None:
    """Give a package names by the modules that have them; "one as another" renames. `extras` says which names need an
    extra of the installation: where it is missing, using them says so."""
    module = sys.modules[package]
    places = {
        name.partition(" as ")[2] or name: (home, name.partition(" as ")[0])
        for home, names in homes.items()
        for name in names
    }
    needs = {name: extra for extra, names in (extras or {}).items() for name in names}

    def find(name: str) -> Any:
        if name not in places:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        home, original = places[name]
        try:
            value = getattr(import_module(home), original)
        except ModuleNotFoundError as error:
            if name not in needs:
                raise
            raise CoveyError(f"{package}.{name} needs {error.name}; pip install 'covey[{needs[name]}]'") from None
        setattr(module, name, value)
        return value

    def listed() -> list[str]:
        return sorted({*places, *(name for name, value in vars(module).items() if _is_shown(module, name, value))})

    module.__getattr__ = find  # type: ignore[method-assign]
    module.__dir__ = listed  # type: ignore[method-assign]


def _is_shown(package: ModuleType, name: str, value: object) -> bool:
    """Whether `dir` lists what stands in a package: its public names, those that Python gives it and the modules in it,
    but not what it has imported for itself."""
    if isinstance(value, ModuleType):
        return value.__name__ == f"{package.__name__}.{name}"
    return name.startswith("__") or name in package.__all__
