"""Lines of JSON, or texts of JSON in a column, as a batch that a kernel reads (`byte_batches`)."""

from __future__ import annotations

import json
from typing import Any, Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from covey.events.byte_batches import ByteBatch, NameTree, Share
from covey.events.json_lines import BadLine, parse_json
from covey.events.pieces import Piece, pieces_of_values
from covey.filters.event_texts import text_of
from covey.filters.terms import EVENT_TEXT
from covey.kernels import on_demand

_kernels = on_demand("json_lines")
_texts = on_demand("event_texts")

_NO_ENDS: Final = np.zeros(1, np.int64)


class JsonLines(ByteBatch):
    """Lines of JSON in one buffer, an event each."""

    @classmethod
    def of_column(cls, texts: pa.Array, *, bad: list[BadLine] | None = None) -> JsonLines:
        """The events of an Arrow column of JSON texts, string or binary, each of which may have several lines. A row
        counts as a line, from 1; one that is null is skipped as a blank line is."""
        wide = texts.cast(pa.large_binary())
        _, offsets, content = wide.buffers()
        ends = np.frombuffer(offsets, np.int64)[wide.offset : wide.offset + len(wide) + 1] if len(wide) else _NO_ENDS
        starts, ends = ends[:-1].copy(), ends[1:].copy()
        if wide.null_count:
            nulls = wide.is_null().to_numpy(zero_copy_only=False)
            ends[nulls] = starts[nulls]
        return cls(b"" if content is None else content, bad=bad, bounds=(starts, ends))

    def _read(
        self, starts: NDArray[np.int64], ends: NDArray[np.int64], share: Share, tree: NameTree, found: Any
    ) -> None:
        seen = np.zeros(tree.nodes, np.int64)
        _kernels.read_lines(self._data, starts, ends, *share, tree.arrays, found, seen)

    def event_texts(self) -> tuple[Piece, ...]:
        """All that each event says, as one text; after `pieces`. Python writes those that the kernel leaves."""
        scanned = self._scanned
        assert scanned is not None
        lines = scanned.lines
        starts, ends = self._starts[lines], self._ends[lines]
        left = np.isin(lines, list(scanned.left)).astype(np.uint8) if scanned.left else np.zeros(len(lines), np.uint8)
        data, offsets = np.empty(int((ends - starts).sum()), np.uint8), np.empty(len(lines) + 1, np.int64)
        _texts.event_texts(self._data, starts, ends, data, offsets, left)
        buffers = [None, pa.py_buffer(offsets), pa.py_buffer(data)]
        texts = pa.Array.from_buffers(pa.large_string(), len(lines), buffers)
        if left.any():
            written = texts.to_pylist()
            for row in np.flatnonzero(left).tolist():
                event = self._parse(bytes(self._view[int(starts[row]) : int(ends[row])]), first=True)
                assert event is not None, "what is no event was left out"
                written[row] = text_of(event)
            return pieces_of_values(written, EVENT_TEXT)
        encoded = texts.dictionary_encode()
        return (Piece("string", None, encoded.indices.to_numpy(), encoded.dictionary),) if len(lines) else ()

    def _parse(self, text: bytes, *, first: bool) -> dict[str, Any] | None:
        return parse_json(text, first=first)

    def _value(self, text: bytes) -> Any:
        return json.loads(text)

    def _may_have(self, line: bytes, name: str) -> bool:
        return f'{name.rpartition(".")[2]}"'.encode() in line or b"\\" in line
