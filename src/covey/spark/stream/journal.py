"""The stream's own notes in its checkpoint: which version each micro-batch uses.

Spark's checkpoint fixes which events are in batch N before N runs, and replays N after a crash with the same events. It
knows nothing of subscriptions, so the driver writes down "batch N uses version V" before it matches anything, and a
replay of N reads that line instead of looking for newer changes. A note is written once: beside the target, synced, and
linked into place, so that a crash leaves either no note or a whole one, and of two drivers on one checkpoint (an old
one that isn't quite dead) the first decides for both. A batch that fails says so in its note: where nothing of it can
have been seen it may then choose a newer version, so that no version, whatever is wrong with it, is tried for ever.

The checkpoint also says what the stream is: an identity, and settings that can't change in the middle of it.
"""

from __future__ import annotations

import json
import os
import uuid
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from covey.errors import CoveyError

_KEPT = 100
"""Notes that stay, as many as Spark keeps of its own."""


def sync_directory(directory: Path) -> None:
    """Make renames in a directory last."""
    handle = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def write_durably(path: Path, data: bytes, *, once: bool = False) -> bool:
    """Write a whole file or none. With `once` a file that is there stays, and the answer is False."""
    temporary = path.with_name(f".{path.name}.{uuid.uuid4().hex}.tmp")
    try:
        with open(temporary, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        if once:
            try:
                os.link(temporary, path)
            except FileExistsError:
                return False
        else:
            os.replace(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)
    sync_directory(path.parent)
    return True


def local_path(path: str | os.PathLike[str], what: str) -> Path:
    """A path of this host, or of a mount; other file systems lack the rename that exactly-once rests on."""
    text = os.fspath(path)
    text = text.removeprefix("file://") if text.startswith("file://") else text.removeprefix("file:")
    if "://" in text:
        raise CoveyError(
            f"{what} {text!r} is not a path of this host; use a local or mounted directory, "
            "and writer= for other stores"
        )
    return Path(text).absolute()


class Journal:
    """Notes in `<checkpoint>/covey`."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self._batches = directory / "batches"
        self._batches.mkdir(parents=True, exist_ok=True)

    def identity(self, settings: Mapping[str, Any]) -> str:
        """The stream's name for itself. Settings must be those with which it began."""
        path = self.directory / "stream.json"
        stream = {"stream": uuid.uuid4().hex, **settings}
        write_durably(path, json.dumps(stream).encode(), once=True)
        began = json.loads(path.read_bytes())
        for name, value in settings.items():
            if began.get(name) != value:
                raise CoveyError(
                    f"this checkpoint began with {name}={began.get(name)!r}, not {value!r}; "
                    "start a new checkpoint to change it"
                )
        identity: str = began["stream"]
        return identity

    def version_of(self, batch: int) -> int | None:
        """The version that a batch uses, if that is decided."""
        note = self._read(batch)
        return None if note is None else int(note["version"])

    def has_failed(self, batch: int) -> bool:
        """Whether a batch was given up by a run that lived to say so."""
        note = self._read(batch)
        return note is not None and "failed" in note

    def decide(self, batch: int, version: int, *, again: bool = False) -> int:
        """Decide on a version before the batch runs; the version that holds, which another driver may have chosen. With
        `again` the batch has failed, nothing of it is written, and what was decided holds no more."""
        note = json.dumps({"batch": batch, "version": version}).encode()
        if write_durably(self._note(batch), note, once=not again):
            return version
        decided = self.version_of(batch)
        assert decided is not None
        return decided

    def fail(self, batch: int, reason: str) -> None:
        """Note that a decided batch could not be done, and why."""
        note = self._read(batch)
        if note is not None:
            write_durably(self._note(batch), json.dumps({**note, "failed": reason}).encode())

    def _read(self, batch: int) -> dict[str, Any] | None:
        try:
            note: dict[str, Any] = json.loads(self._note(batch).read_bytes())
        except FileNotFoundError:
            return None
        return note

    def forget_before(self, batch: int) -> None:
        """Remove the note of a batch that can't come again, now that this one is done."""
        self._note(batch - _KEPT).unlink(missing_ok=True)

    def _note(self, batch: int) -> Path:
        return self._batches / f"{batch}.json"
