"""Change files behind an address, such as those of an object store: each is fetched once and read from its copy."""

from __future__ import annotations

import tempfile
from collections.abc import Collection, Iterator
from functools import cached_property
from pathlib import Path
from typing import Any

from covey.errors import CoveyError
from covey.spark.addresses import RemoteDirectory, files_below
from covey.spark.stream.sources import Change, ChangeDirectory, RowNames, is_unit
from covey.spark.worker_files import directory


class RemoteChanges(ChangeDirectory):
    """A directory of change files behind an address. An object appears whole, so that a file counts when it is there; a
    directory counts, as elsewhere, with its `_SUCCESS`."""

    def __init__(self, address: str, names: RowNames | None = None) -> None:
        self._remote = RemoteDirectory(address)
        super().__init__(str(self._remote), names)

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name != "_copies"}

    @cached_property
    def _copies(self) -> Path:
        return Path(tempfile.mkdtemp(dir=directory()))

    def _here(self, unit: str) -> Path:
        inside = dict(self._remote.names())
        if unit not in inside:
            raise CoveyError(f"the index has to be built again, but {self._remote}/{unit} is gone")
        for name in files_below(self._remote, unit) if inside[unit] else (unit,):
            copy = self._copies / name
            copy.parent.mkdir(parents=True, exist_ok=True)
            if not copy.exists():
                self._remote.download(name, copy)
        return self._copies

    def read_again(self, units: Collection[str]) -> list[Change]:
        """The rows of units that were dealt with before."""
        return [change for unit in sorted(units) for change in self._rows_of(unit)[0]]

    def _units(self) -> Iterator[str]:
        return (name for name, _ in self._remote.names() if is_unit(name))
