"""Names of a package that are imported when they are first used.

Importing the matcher takes a second of Numba and Arrow, which `covey pub` or a client in a small script don't need. A
package says where its names live; `from covey import Index` then imports only what an index takes.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from typing import Any


def names_of(package: str, homes: Mapping[str, Sequence[str]]) -> Callable[[str], Any]:
    """A package's `__getattr__`: its names by the modules that have them; "one as another" renames."""
    modules = {
        name.partition(" as ")[2] or name: (module, name.partition(" as ")[0])
        for module, names in homes.items()
        for name in names
    }

    def find(name: str) -> Any:
        if name not in modules:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        module, original = modules[name]
        value = getattr(import_module(module), original)
        setattr(sys.modules[package], name, value)
        return value

    return find
