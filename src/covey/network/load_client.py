"""Loading from outside: what batch jobs left in files, sent to a broker that runs.

    load_subscriptions("ws://127.0.0.1:7400", "night", "mailer", "subscriptions.covey", compacted="entries.parquet")
    load_profile("ws://127.0.0.1:7400", "quotes.profile")

Subscriptions come from a saved index (`.covey`), from Parquet (a file, or the directory that Spark writes) or from
lines of JSON; a compacted table from the latter two. They are sent as lines of JSON while they are read, so a file of
any size needs little memory here. `covey.network.loading` is the other end.
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, TypeAlias
from urllib.parse import quote

import aiohttp
import msgspec
import pyarrow as pa
from pyarrow import dataset

from covey.errors import CoveyError
from covey.matching import Index
from covey.network.client_values import address_of
from covey.network.errors import ConnectionLostError, RefusedError
from covey.routing.loading import LoadView

SECONDS: Final = 600.0
"""How long a broker may take to settle a load."""
LINES: Final = 1_000
"""Lines sent at a time."""

Loaded: TypeAlias = LoadView
"""A load as the broker has it."""

_encoder = msgspec.json.Encoder()


@dataclass(frozen=True, slots=True)
class Operator:
    """Where a broker is, and who asks."""

    url: str
    token: str | None = None
    tls: ssl.SSLContext | None = None

    def ask(self, method: str, path: str, query: dict[str, str], lines: Iterable[bytes] | None = None) -> Any:
        """Make a request; the answer's JSON, or None."""
        return asyncio.run(self._ask(method, path, query, lines))

    async def _ask(self, method: str, path: str, query: dict[str, str], lines: Iterable[bytes] | None) -> Any:
        headers = {} if self.token is None else {"Authorization": f"Bearer {self.token}"}
        address = address_of(self.url).replace("ws", "http", 1).rstrip("/") + path
        body = None if lines is None else _sent(lines)
        try:
            async with (
                aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=SECONDS)) as http,
                http.request(
                    method,
                    address,
                    params=query,
                    data=body,
                    headers=headers,
                    ssl=True if self.tls is None else self.tls,
                ) as response,
            ):
                text = await response.text()
        except (aiohttp.ClientError, TimeoutError) as error:
            raise ConnectionLostError(f"{self.url}: {error or 'no answer'}; is a broker running there?") from None
        if response.status >= 300:
            raise RefusedError(f"{self.url}: {_problem(text)} (HTTP {response.status})")
        return msgspec.json.decode(text) if text else None


def load_subscriptions(
    url: str,
    name: str,
    client: str,
    subscriptions: str | Path | Index | Iterable[tuple[str, str]],
    *,
    compacted: str | Path | None = None,
    token: str | None = None,
    tls: ssl.SSLContext | None = None,
) -> Loaded:
    """Give a client these durable subscriptions, in the place of those that a load of this name gave before.
    `compacted` says what neighbours hear in their place."""
    given: Any = _index(subscriptions)
    query = {"client": client}
    if isinstance(given, Index):
        query["semantics"] = given.semantics
    found = Operator(url, token, tls).ask("PUT", f"/v1/loads/{_quoted(name)}", query, _lines(given, compacted))
    return msgspec.convert(found, Loaded)


def drop_load(url: str, name: str, *, token: str | None = None, tls: ssl.SSLContext | None = None) -> None:
    """End all that a load gave."""
    Operator(url, token, tls).ask("DELETE", f"/v1/loads/{_quoted(name)}", {})


def loads(url: str, *, token: str | None = None, tls: ssl.SSLContext | None = None) -> list[Loaded]:
    """All loads of a broker."""
    return msgspec.convert(Operator(url, token, tls).ask("GET", "/v1/loads", {}), list[Loaded])


def load_profile(url: str, path: str | Path, *, token: str | None = None, tls: ssl.SSLContext | None = None) -> None:
    """Let a broker judge by this profile from now on."""
    body = Path(path).read_bytes()
    Operator(url, token, tls).ask("PUT", "/v1/profile", {"name": Path(path).name}, [body])


def _index(given: Any) -> Any:
    return Index.open(given) if isinstance(given, str | Path) and Path(given).suffix == ".covey" else given


def _lines(subscriptions: Any, compacted: str | Path | None) -> Iterator[bytes]:
    if isinstance(subscriptions, Index):
        pairs: Iterable[tuple[Any, Any]] = ((id, subscriptions.text(id)) for id in subscriptions.ids())
    elif isinstance(subscriptions, str | Path):
        pairs = ((row["id"], row["filter"]) for row in _rows(Path(subscriptions), ("id", "filter")))
    else:
        pairs = subscriptions
    for id, text in pairs:
        yield _encoder.encode({"id": str(id), "filter": str(text)})
    if compacted is not None:
        for row in _rows(Path(compacted), ("id", "filter", "stands_for")):
            yield _encoder.encode({name: row[name] for name in ("id", "filter", "stands_for")})


def _rows(path: Path, names: tuple[str, ...]) -> Iterator[dict[str, Any]]:
    """Rows of Parquet, or of lines of JSON."""
    kind = "json" if path.suffix in (".jsonl", ".ndjson", ".json") else "parquet"
    try:
        table = dataset.dataset(path, format=kind)
        missing = [name for name in names if name not in table.schema.names]
        if missing:
            raise CoveyError(f"{path}: no column {missing[0]!r}; it has {', '.join(table.schema.names)}")
        for batch in table.to_batches(columns=list(names)):
            yield from batch.to_pylist()
    except (pa.ArrowException, OSError, ValueError) as error:
        raise CoveyError(f"{path}: {str(error).splitlines()[0]}") from None


async def _sent(lines: Iterable[bytes]) -> AsyncIterator[bytes]:
    """Many lines at a time."""
    waiting: list[bytes] = []
    for line in lines:
        waiting.append(line)
        if len(waiting) >= LINES:
            yield b"\n".join(waiting) + b"\n"
            waiting.clear()
    yield b"\n".join(waiting)


def _problem(text: str) -> str:
    try:
        return str(msgspec.json.decode(text)["error"])
    except (msgspec.DecodeError, KeyError, TypeError):
        return text


def _quoted(name: str) -> str:
    return quote(name, safe="")
