"""Profiles in files: eight bytes of magic, a checksum, and an Arrow file with the sample, all else as JSON in its
metadata. Arrow's format is stable and compressed. The file is written beside its target, synced and renamed, so a
reader finds the old profile or the new one.
"""

from __future__ import annotations

import hashlib
import json
import os
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from covey.errors import CoveyError
from covey.history.event_profile import EventProfile
from covey.history.sketches import AttributeSketch
from covey.history.subscription_profile import SubscriptionProfile

if TYPE_CHECKING:
    from covey.history.profile import Profile

FORMAT = 1
_MAGIC = b"COVEYPRO"
_DIGEST = 32
_KEY = b"covey profile"
_PRIORITY = "priority of the sample"


def write(profile: Profile, path: str | os.PathLike[str]) -> None:
    """Write a profile, whole or not at all."""
    kept = to_bytes(profile)
    target = Path(path)
    try:
        handle, name = tempfile.mkstemp(dir=target.parent, prefix=target.name, suffix=".new")
    except OSError as error:
        raise CoveyError(f"{target}: {error.strerror or error}") from None
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(kept)
            file.flush()
            os.fsync(file.fileno())
        os.replace(name, target)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise


def read(path: str | os.PathLike[str]) -> Profile:
    """Read what `write` wrote."""
    try:
        kept = Path(path).read_bytes()
    except OSError as error:
        raise CoveyError(f"{path}: {error.strerror or error}") from None
    return from_bytes(kept, str(path))


def to_bytes(profile: Profile) -> bytes:
    """A profile as a file holds it."""
    events = profile.events
    sample = pa.table({_PRIORITY: pa.array([], pa.float64())})
    header: dict[str, Any] = {
        "format": FORMAT,
        "version": profile.version,
        "subscriptions": profile.subscriptions.to_json(),
        "events": None,
    }
    if events is not None:
        sample = events.sample.append_column(_PRIORITY, pa.array(events.priorities))
        header["events"] = {
            "count": events.count,
            "sample_events": events.sample_events,
            "sketches": {name: sketch.to_json() for name, sketch in events.sketches.items()},
        }
    text = json.dumps(header).encode()
    whole = sample.replace_schema_metadata({_KEY: text}).combine_chunks()
    sink = pa.BufferOutputStream()
    with pa.ipc.new_file(sink, whole.schema, options=pa.ipc.IpcWriteOptions(compression="zstd")) as out:
        out.write_table(whole)
    body: bytes = sink.getvalue().to_pybytes()
    return _MAGIC + hashlib.sha256(body).digest() + body


def is_whole(kept: bytes) -> bool:
    """Whether these are all bytes of a profile, as they were written."""
    start = len(_MAGIC) + _DIGEST
    return kept.startswith(_MAGIC) and hashlib.sha256(kept[start:]).digest() == kept[len(_MAGIC) : start]


def from_bytes(kept: bytes, name: str = "profile") -> Profile:
    """What `to_bytes` made; `name` is for error messages."""
    from covey.history.profile import Profile

    start = len(_MAGIC) + _DIGEST
    if not kept.startswith(_MAGIC):
        raise CoveyError(f"{name}: not a covey profile")
    if not is_whole(kept):
        raise CoveyError(f"{name}: damaged (its checksum differs); make the profile anew")
    sample = pa.ipc.open_file(kept[start:]).read_all()
    header = json.loads(sample.schema.metadata[_KEY])
    if header["format"] != FORMAT:
        raise CoveyError(f"{name}: written in format {header['format']}; this version of covey reads {FORMAT}")
    sample = sample.replace_schema_metadata(None)
    subscriptions = SubscriptionProfile.from_json(header["subscriptions"])
    kept_events = header["events"]
    if kept_events is None:
        return Profile(None, subscriptions, header["version"])
    events = EventProfile(
        kept_events["count"],
        sample.drop_columns([_PRIORITY]),
        np.asarray(sample[_PRIORITY]),
        {one: AttributeSketch.from_json(sketch) for one, sketch in kept_events["sketches"].items()},
        kept_events["sample_events"],
    )
    return Profile(events, subscriptions, header["version"])
