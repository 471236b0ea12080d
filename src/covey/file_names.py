"""What the names of files say: which format their rows have, or that they are an index."""

from __future__ import annotations

from pathlib import PurePath
from typing import Final, Literal, TypeAlias, get_args

Format: TypeAlias = Literal["jsonl", "csv", "parquet"]
FORMATS: Final[tuple[Format, ...]] = get_args(Format)
EventFormat: TypeAlias = Literal["jsonl", "csv", "parquet", "xml"]
EVENT_FORMATS: Final[tuple[EventFormat, ...]] = get_args(EventFormat)
"""Of events alone: rows of rules aren't written in XML."""

SUFFIXES: Final[dict[str, Format]] = {
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".json": "jsonl",
    ".csv": "csv",
    ".parquet": "parquet",
    ".pq": "parquet",
}
INDEX_SUFFIX: Final = ".covey"


def is_table(path: str) -> bool:
    """Whether a path is that of a file of rows."""
    return PurePath(path.removesuffix(".gz")).suffix.lower() in SUFFIXES


def is_index(path: str) -> bool:
    """Whether a name is that of a saved index."""
    return PurePath(path).suffix == INDEX_SUFFIX
