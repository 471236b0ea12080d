"""Rules that are files: a directory, or a file of YAML, has one rule a file, as Sigma's and EventBridge's are kept. A
rule's id is the file's path in the directory."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Final

from covey.errors import CoveyError

LARGEST_RULE: Final = 1 << 20
"""Bytes of a file that is a rule."""
_YAML: Final = (".yml", ".yaml")


def are_files(path: str) -> bool:
    """Whether a path has one rule a file."""
    return path != "-" and (Path(path).is_dir() or Path(path).suffix in _YAML)


def rule_texts(path: str) -> Iterator[tuple[str, Path, str | CoveyError]]:
    """The rules by their ids, in order of path: where each is, and its text or why it can't be read."""
    root = Path(path)
    files = sorted(one for one in root.rglob("*") if one.is_file()) if root.is_dir() else [root]
    for file in files:
        yield str(file.relative_to(root)) if root.is_dir() else file.name, file, _text(file)


def _text(file: Path) -> str | CoveyError:
    size = file.stat().st_size
    if size > LARGEST_RULE:
        return CoveyError(f"the file has {size:,} bytes; a rule has at most {LARGEST_RULE:,}")
    try:
        return file.read_bytes().decode()
    except UnicodeDecodeError as error:
        return CoveyError(f"the file is not UTF-8 at byte {error.start}")
