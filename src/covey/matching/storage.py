"""An index in one file: a manifest and plain arrays, to be mapped rather than read.

    bytes 0-7      magic
    bytes 8-15     length of the manifest
    bytes 16-19    CRC-32 of the manifest
    bytes 20-23    zero
    then           the manifest (JSON), and the arrays at offsets that are multiples of 64, each with its own CRC-32

Writing goes to a file beside the target, which is synced and then renamed over it, so a crash leaves the old file or
the new one. Opening checks lengths, and by default every checksum (some 0.4 s a gigabyte); `verify=False` maps
without reading the arrays, in about a millisecond at 100,000 subscriptions.
"""

from __future__ import annotations

import hashlib
import json
import logging
import mmap
import os
import struct
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from covey.errors import FilterError, IndexFileError
from covey.events import Schema
from covey.filters import Predicate, Semantics
from covey.filters.terms import is_path, term_of
from covey.filters.values import Scalar
from covey.kernels.opcodes import DENSE, VERIFIED
from covey.language import from_json, to_json
from covey.limits import DEFAULT_LIMITS, Limits
from covey.matching.bulk import compile_rows
from covey.matching.coding import CodeSpaces
from covey.matching.learned import LEARNED
from covey.matching.options import BuildOptions
from covey.matching.segment import Segment
from covey.matching.tables import Tables
from covey.matching.text_index import TextIndex, no_texts

log = logging.getLogger("covey.matching")

MAGIC = b"COVEYIX\x01"
LAYOUT = 1
"""To be raised with every change of the arrays."""
_LAYOUT_WITH_TERMS = 2
"""Of files with terms that aren't attributes: what doesn't know terms must not take their names for attributes'."""
_LAYOUT_WITH_TEXTS = 3
"""Of files with patterns, whose literals have an automaton. Files of the layouts before have patterns without one:
what has patterns there is built anew from its texts."""
_HEADER = struct.Struct("<8sQII")
_ALIGNMENT = 64
_SPACE_ARRAYS = ("base", "size", "starts", "numbers", "remainders", "ordered_texts")


class StoredPatterns(Sequence[Predicate]):
    """The patterns of a file, read when they are asked for. Those that literals decide aren't kept."""

    def __init__(self, kept: Mapping[str, Any], count: int) -> None:
        self._kept, self._count = kept, count
        self._read: dict[int, Predicate] = {}

    def __len__(self) -> int:
        return self._count

    def __getitem__(self, number: Any) -> Any:
        found = self._read.get(number)
        if found is None:
            pattern = from_json(self._kept[str(number)])
            assert isinstance(pattern, Predicate)
            found = self._read[number] = pattern
        return found


def index_header(
    semantics: Semantics, *, order: str = "selectivity", schema: Any = None, attributes: Sequence[str] = ()
) -> dict[str, Any]:
    """What a file says of the index as a whole, beside its segments. A learned order is that of `attributes`."""
    header = {"version": 1, "semantics": semantics, "order": order, "schema": schema}
    return header | {"attributes": list(attributes)} if attributes else header


def content_hash(path: str | os.PathLike[str]) -> str:
    """32 hexadecimal digits that tell a file's content from any other. They are of the manifest, which has a checksum
    of every array, so a large index isn't read through for them. What is no index is found out when it is opened."""
    try:
        with open(path, "rb") as file:
            header = file.read(_HEADER.size)
            if len(header) < _HEADER.size:
                raise IndexFileError(f"{path}: not a covey index (only {len(header)} bytes)")
            _, length, _, _ = _HEADER.unpack(header)
            manifest = file.read(min(length, os.fstat(file.fileno()).st_size))
    except OSError as error:
        raise IndexFileError(f"{path}: {error.strerror or error}") from None
    return hashlib.sha256(header + manifest).hexdigest()[:32]


def write_index(
    path: str | os.PathLike[str], header: Mapping[str, Any], segments: list[tuple[Segment, NDArray[np.uint8]]]
) -> None:
    """Write segments (with their bitmaps of deletions) and a header for the index, atomically."""
    target = Path(path)
    described = []
    arrays: list[NDArray[Any]] = []
    offset = 0
    for segment, deleted in segments:
        entries = {}
        for name, array in [*_arrays(segment), ("deleted", deleted)]:
            flat = np.ascontiguousarray(array)
            entries[name] = [flat.dtype.str, list(flat.shape), offset, _checksum(flat)]
            arrays.append(flat)
            offset += -(-flat.nbytes // _ALIGNMENT) * _ALIGNMENT
        described.append({"names": segment.names, "patterns": _kept_patterns(segment), "arrays": entries})
    manifest = json.dumps(
        {**header, "layout": _layout(segments), "segments": described, "length": offset}, separators=(",", ":")
    ).encode()
    temporary = target.with_name(f".{target.name}.{os.getpid()}.tmp")
    try:
        with open(temporary, "wb") as file:
            file.write(_HEADER.pack(MAGIC, len(manifest), zlib.crc32(manifest), 0))
            file.write(manifest)
            _pad(file)
            for array in arrays:
                file.write(array.reshape(-1).view(np.uint8).data)
                _pad(file)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, target)
    except OSError as error:
        temporary.unlink(missing_ok=True)
        raise IndexFileError(f"{path}: {error.strerror or error}") from None
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    directory = os.open(target.parent, os.O_RDONLY)
    try:
        os.fsync(directory)
    finally:
        os.close(directory)


def _kept_patterns(segment: Segment) -> dict[str, Any]:
    """The patterns that literals don't decide, by number."""
    kept = np.flatnonzero((segment.literals.mode == DENSE) | (segment.literals.mode == VERIFIED))
    return {str(number): to_json(segment.patterns[number]) for number in kept.tolist()}


def _layout(segments: list[tuple[Segment, NDArray[np.uint8]]]) -> int:
    if any(segment.literals.slots for segment, _ in segments):
        return _LAYOUT_WITH_TEXTS
    plain = all(is_path(name) for segment, _ in segments for name in segment.names)
    return LAYOUT if plain else _LAYOUT_WITH_TERMS


def _check_terms(path: str | os.PathLike[str], manifest: Mapping[str, Any]) -> None:
    """A term that this covey can't compute is named now, rather than at the first match."""
    for name in {name for described in manifest["segments"] for name in described["names"] if not is_path(name)}:
        try:
            term_of(name)
        except FilterError as error:
            reason = str(error).partition("\n")[0]
            raise IndexFileError(f"{path}: the term {name[1:]} can't be computed here: {reason}") from None


def _checksum(array: NDArray[Any]) -> int:
    return zlib.crc32(array.reshape(-1).view(np.uint8).data)


def _pad(file: BinaryIO) -> None:
    file.write(b"\0" * (-file.tell() % _ALIGNMENT))


def read_index(
    path: str | os.PathLike[str], *, verify: bool = True, limits: Limits = DEFAULT_LIMITS
) -> tuple[dict[str, Any], list[tuple[Segment, NDArray[np.uint8]]]]:
    """Map a file; the header (`index_header`) and the segments with their bitmaps of deletions."""
    try:
        with open(path, "rb") as file:
            size = os.fstat(file.fileno()).st_size
            if size < _HEADER.size:
                raise IndexFileError(f"{path}: not a covey index (only {size} bytes)")
            mapped = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    except OSError as error:
        raise IndexFileError(f"{path}: {error.strerror or error}") from None
    magic, length, checksum, _ = _HEADER.unpack_from(mapped)
    if magic != MAGIC:
        raise IndexFileError(f"{path}: not a covey index, or one of a version that this covey can't read")
    body = _HEADER.size + length
    body += -body % _ALIGNMENT
    if size < body or zlib.crc32(mapped[_HEADER.size : _HEADER.size + length]) != checksum:
        raise IndexFileError(f"{path}: the manifest is damaged or cut off; build the index again")
    manifest = json.loads(mapped[_HEADER.size : _HEADER.size + length])
    if size < body + manifest["length"]:
        raise IndexFileError(
            f"{path}: cut off ({size:,} bytes of {body + manifest['length']:,}); build the index again"
        )
    if manifest.get("layout") not in (LAYOUT, _LAYOUT_WITH_TERMS, _LAYOUT_WITH_TEXTS):
        raise IndexFileError(f"{path}: written by a version of covey with another layout; build the index again")
    segments = []
    _check_terms(path, manifest)
    for described in manifest["segments"]:
        arrays = {}
        for name, (dtype, shape, offset, expected) in described["arrays"].items():
            count = int(np.prod(shape)) if shape else 1
            flat = (
                np.frombuffer(mapped, dtype=np.dtype(dtype), count=count, offset=body + offset)
                if count
                else np.empty(0, np.dtype(dtype))
            )
            if verify and _checksum(flat) != expected:
                raise IndexFileError(f"{path}: damaged (checksum of {name} is wrong); build the index again")
            arrays[name] = flat.reshape(shape)
        if described["patterns"] and manifest["layout"] < _LAYOUT_WITH_TEXTS:
            segments.append((_rebuilt(path, manifest, arrays, limits), arrays["deleted"]))
        else:
            segments.append((_segment(described, arrays, manifest.get("defaults", {})), arrays["deleted"]))
    return manifest, segments


def _rebuilt(
    path: str | os.PathLike[str], header: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]], limits: Limits
) -> Segment:
    """A segment of an older layout, compiled from its texts."""
    ids, texts = _texts("ids", arrays).to_pylist(), _texts("texts", arrays).to_pylist()
    log.warning(
        "%s has an older layout: its %s subscriptions are built anew; save the index again to keep that",
        path, f"{len(ids):,}",
    )  # fmt: skip
    schema = Schema.from_json(header["schema"]) if header.get("schema") is not None else None
    order = header.get("order", "selectivity")
    options = BuildOptions(
        header["semantics"], schema, schema.defaults if schema is not None else {}, limits,
        "attribute" if order == LEARNED else order, attributes=tuple(header.get("attributes", ())),
    )  # fmt: skip
    segment, errors = compile_rows(list(zip(ids, texts, strict=True)), options)
    if errors or segment is None:
        reason = f"subscription {errors[0].id!r}: {errors[0].error}" if errors else "it has no subscription"
        raise IndexFileError(f"{path}: of an older layout, and it can't be built anew: {reason}")
    return segment


def _arrays(segment: Segment) -> Iterator[tuple[str, NDArray[Any]]]:
    yield from _text_arrays("ids", segment.ids)
    yield from _text_arrays("texts", segment.texts)
    yield from _text_arrays("constants", segment.spaces.texts)
    for name in _SPACE_ARRAYS:
        yield f"space.{name}", getattr(segment.spaces, name)
    for field in fields(Tables):
        yield f"table.{field.name}", getattr(segment.tables, field.name)
    if segment.literals.slots:
        for field in fields(TextIndex):
            yield f"literals.{field.name}", getattr(segment.literals, field.name)


def _text_arrays(name: str, texts: pa.Array) -> Iterator[tuple[str, NDArray[Any]]]:
    """Offsets (32 bits where they fit) and bytes of an array of strings."""
    texts = texts.cast(pa.large_string())
    _, offsets, data = texts.buffers()
    starts = np.zeros(1, np.int64)
    if offsets is not None and len(texts):
        starts = np.frombuffer(offsets, dtype=np.int64)[texts.offset : texts.offset + len(texts) + 1]
    first, last = int(starts[0]), int(starts[-1])
    relative = starts - first
    yield f"{name}.offsets", relative.astype(np.int32) if last - first < 2**31 else relative
    yield f"{name}.data", np.frombuffer(data, dtype=np.uint8)[first:last] if data else np.empty(0, np.uint8)


def _texts(name: str, arrays: Mapping[str, NDArray[Any]]) -> pa.Array:
    offsets, data = arrays[f"{name}.offsets"], arrays[f"{name}.data"]
    kind = pa.string() if offsets.dtype == np.int32 else pa.large_string()
    return pa.Array.from_buffers(kind, len(offsets) - 1, [None, pa.py_buffer(offsets), pa.py_buffer(data)])


def _segment(
    described: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]], defaults: Mapping[str, Scalar]
) -> Segment:
    spaces = CodeSpaces(**{name: arrays[f"space.{name}"] for name in _SPACE_ARRAYS}, texts=_texts("constants", arrays))
    tables = Tables(**{field.name: arrays[f"table.{field.name}"] for field in fields(Tables)})
    literals = no_texts()
    if "literals.mode" in arrays:
        literals = TextIndex(**{field.name: arrays[f"literals.{field.name}"] for field in fields(TextIndex)})
    return Segment(
        ids=_texts("ids", arrays),
        texts=_texts("texts", arrays),
        names=described["names"],
        spaces=spaces,
        patterns=StoredPatterns(described["patterns"] or {}, len(literals.mode)),
        literals=literals,
        tables=tables,
        defaults=defaults,
    )
