"""Files behind an address, such as `s3://bucket/directory`, through Arrow's file systems.

Object stores have no rename, and none is used: an object appears whole when it has been written, and what must not be
half there is decided by one small object that is put last. Whoever needs a file on this machine gets a copy of it.
What Arrow reaches without Hadoop's classes is reached: `s3://`, or `s3a://` as Hadoop calls it, `gs://`, `abfs://`;
`hdfs://` with libhdfs. Options stand in the address, as `s3://bucket/x?endpoint_override=…&scheme=http&region=…`, and
credentials in the environment of whoever connects, workers included.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyarrow import fs

from covey.errors import CoveyError


def is_address(path: object) -> bool:
    """Whether a path is one of another file system than this machine's."""
    return isinstance(path, str) and "://" in path and not path.startswith("file:")


@lru_cache(maxsize=16)
def _connected(address: str) -> tuple[fs.FileSystem, str]:
    called = _for_arrow(address)
    try:
        system, inner = fs.FileSystem.from_uri(called)
    except (pa.ArrowInvalid, OSError, ValueError) as error:
        reason = " ".join(str(error).replace(called, shown(called)).split())  # without credentials
        raise CoveyError(f"{shown(address)}: {reason}") from None
    return system, inner.rstrip("/")


def _for_arrow(address: str) -> str:
    """The same place as Arrow calls it: Hadoop has other names for S3."""
    scheme, mark, rest = address.partition("://")
    return f"s3{mark}{rest}" if scheme in ("s3a", "s3n") else address


def shown(address: str) -> str:
    """An address for people: without its options and credentials."""
    scheme, _, rest = address.partition("://")
    return f"{scheme}://{rest.partition('?')[0].rpartition('@')[2]}"


@dataclass(frozen=True)
class RemoteDirectory:
    """A directory behind an address. It travels to workers as that address, and connects where it is used."""

    address: str

    def __str__(self) -> str:
        return shown(self.address)

    def read(self, name: str) -> bytes:
        """A whole file; a FileNotFoundError where there is none."""
        system, inner = _connected(self.address)
        with self._told(), system.open_input_stream(self._path(inner, name)) as file:
            data: bytes = file.read()
            return data

    def read_json(self, name: str) -> Any | None:
        """A note; None where there is none, or where its writer died before it was whole."""
        try:
            return json.loads(self.read(name))
        except (FileNotFoundError, ValueError):
            return None

    def put(self, name: str, data: bytes) -> None:
        """Write a whole file; on an object store it appears when all of it is there."""
        with self._told(), self.open_output(name) as file:
            file.write(data)

    def upload(self, name: str, path: Path) -> None:
        """A file of this machine's under a name there."""
        with path.open("rb") as source, self._told(), self.open_output(name) as file:
            while part := source.read(1 << 22):
                file.write(part)

    def download(self, name: str, path: Path) -> None:
        """A file from there to this machine."""
        system, inner = _connected(self.address)
        with (
            path.open("wb") as target, self._told(), system.open_input_stream(self._path(inner, name)) as file,
        ):  # fmt: skip
            while part := file.read(1 << 22):
                target.write(part)

    def open_output(self, name: str) -> pa.NativeFile:
        """A file to write; it is there when it has been closed."""
        system, inner = _connected(self.address)
        path = self._path(inner, name)
        if not isinstance(system, fs.S3FileSystem):  # which has no directories
            system.create_dir(path.rpartition("/")[0], recursive=True)
        return system.open_output_stream(path)

    def open_input(self, name: str) -> pa.NativeFile:
        """A file to read in whatever order."""
        system, inner = _connected(self.address)
        with self._told():
            return system.open_input_file(self._path(inner, name))

    def names(self, within: str = "") -> list[tuple[str, bool]]:
        """(name, whether it is a directory) of what stands directly in it, or in a directory within."""
        system, inner = _connected(self.address)
        with self._told():
            found = system.get_file_info(fs.FileSelector(self._path(inner, within), allow_not_found=True))
        return sorted((one.base_name, one.type == fs.FileType.Directory) for one in found)

    def remove(self, name: str) -> None:
        """Remove a file, if it is there."""
        system, inner = _connected(self.address)
        try:
            system.delete_file(self._path(inner, name))
        except FileNotFoundError:
            return

    def _path(self, inner: str, name: str) -> str:
        return f"{inner}/{name}" if name else inner

    def _told(self) -> _Told:
        return _Told(self.address)


class _Told:
    """Errors of a store in one line that names it."""

    def __init__(self, address: str) -> None:
        self._address = address

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: object) -> None:
        if isinstance(error, (OSError, pa.ArrowException)) and not isinstance(error, FileNotFoundError):
            raise CoveyError(f"{shown(self._address)}: {' '.join(str(error).split())}") from None


def split(address: str) -> tuple[RemoteDirectory, str]:
    """A file's directory and its name."""
    path, mark, options = address.partition("?")
    directory, _, name = path.rpartition("/")
    if not name or directory.endswith(":/"):
        raise CoveyError(f"{shown(address)!r} names no file")
    return RemoteDirectory(directory + mark + options), name


def files_below(directory: RemoteDirectory, within: str = "") -> Iterator[str]:
    """Names of all files in a directory and those in it, relative to it."""
    for name, is_directory in directory.names(within):
        path = f"{within}/{name}" if within else name
        if is_directory:
            yield from files_below(directory, path)
        else:
            yield path
