"""How covey is packed: kernels are compiled while the wheel is built, and the wheel asks for the Numba that did it.

Numba rejects what another version of it has compiled, so a wheel whose bundle shall be used requires exactly the one it
was built with; which one that is shows only while building. It is added here and not by a hook on metadata, because
what such a hook says in a source archive is kept for the wheels that are built from it later, by another Numba. An
editable install gets its bundle beside the sources.
"""

from __future__ import annotations

import shutil
import sys
from importlib.metadata import version as installed
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

_PACKAGE = "covey/kernels"


class CompiledKernels(BuildHookInterface[Any]):
    """Puts the bundle of compiled kernels into the wheel."""

    PLUGIN_NAME = "custom"

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Compile what isn't compiled yet, and tag the wheel for this Python and platform."""
        if self.target_name != "wheel":
            return
        build_data["dependencies"].append(f"numba=={installed('numba')}")
        source = Path(self.root) / "src"
        sys.path.insert(0, str(source))
        try:
            from covey.kernels import build, bundle
        finally:
            sys.path.remove(str(source))
        in_place = source / _PACKAGE / bundle.FILE
        if version == "editable":
            build.build(in_place)
            return
        made = Path(self.root) / "build" / bundle.FILE
        made.parent.mkdir(exist_ok=True)
        if in_place.exists():
            shutil.copyfile(in_place, made)
        if build.build(made):
            build_data["force_include"][str(made)] = f"{_PACKAGE}/{bundle.FILE}"
            build_data["pure_python"] = False
            build_data["infer_tag"] = True
