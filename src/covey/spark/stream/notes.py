"""Where a stream keeps its own notes: the directory `covey` in its checkpoint, here or behind an address.

Behind an address they are a copy on this machine, fetched when the stream starts and pushed whenever something must
last: before a batch runs, when it has failed, when it is done. What a note names is pushed before the note (segments,
then the lists of versions, then which batch uses which), so that a driver that dies in the middle leaves what another
can go on from. One driver uses a checkpoint at a time, as Spark itself asks for.
"""

from __future__ import annotations

import json
import os
import shutil
import tempfile
from pathlib import Path
from typing import Any

from covey.spark.addresses import RemoteDirectory, files_below, is_address, shown
from covey.spark.stream.journal import local_path
from covey.spark.worker_files import directory

_ORDER = (".covey", ".json")
"""What is pushed first: names with these ends, in the index, before all else."""


def location(checkpoint: str | os.PathLike[str]) -> str:
    """A checkpoint as Spark takes it: without options of Arrow's."""
    text = os.fspath(checkpoint)
    return shown(text) if is_address(text) else str(local_path(text, "checkpoint"))


def began(checkpoint: str | os.PathLike[str]) -> dict[str, Any] | None:
    """What a stream noted of itself when it began; None where it hasn't."""
    text = os.fspath(checkpoint)
    if is_address(text):
        return _remote(text).read_json("stream.json")
    try:
        found: dict[str, Any] = json.loads((local_path(text, "checkpoint") / "covey" / "stream.json").read_bytes())
    except (OSError, ValueError):
        return None
    return found


class Notes:
    """The directory of a stream's notes on this machine."""

    def __init__(self, checkpoint: str | os.PathLike[str]) -> None:
        text = os.fspath(checkpoint)
        self._remote = _remote(text) if is_address(text) else None
        self._pushed: dict[str, tuple[int, int]] = {}
        if self._remote is None:
            self.directory = local_path(text, "checkpoint") / "covey"
            return
        self.directory = Path(tempfile.mkdtemp(dir=directory()))
        for name in files_below(self._remote):
            path = self.directory / name
            path.parent.mkdir(parents=True, exist_ok=True)
            self._remote.download(name, path)
            self._pushed[name] = _state(path)

    def push(self) -> None:
        """Make what is here last, where it isn't here that it lasts."""
        if self._remote is None:
            return
        here = {path.relative_to(self.directory).as_posix(): path for path in self.directory.rglob("*") if _lasts(path)}
        for name in sorted(here, key=_rank):
            state = _state(here[name])
            if self._pushed.get(name) != state:
                self._remote.upload(name, here[name])
                self._pushed[name] = state
        for name in self._pushed.keys() - here.keys():
            self._remote.remove(name)
            del self._pushed[name]

    def close(self) -> None:
        """Give back the copy."""
        if self._remote is not None:
            shutil.rmtree(self.directory, ignore_errors=True)


def _lasts(path: Path) -> bool:
    return path.is_file() and not path.name.startswith(".")


def _state(path: Path) -> tuple[int, int]:
    found = path.stat()
    return found.st_mtime_ns, found.st_size


def _rank(name: str) -> tuple[int, str]:
    in_index = [number for number, end in enumerate(_ORDER) if name.startswith("index/") and name.endswith(end)]
    return (in_index[0] if in_index else len(_ORDER)), name


def _remote(checkpoint: str) -> RemoteDirectory:
    path, mark, options = checkpoint.partition("?")
    return RemoteDirectory(f"{path.rstrip('/')}/covey{mark}{options}")
