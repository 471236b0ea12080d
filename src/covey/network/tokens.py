"""Tokens: who a client is and what it may do, signed, or listed in a file.

A signed token is `covey1.PAYLOAD.SIGNATURE`: JSON in base64url, and its HMAC-SHA-256 by a secret that brokers share.
Whoever has the secret can make tokens and no broker has to be told of them, so all carry an end. A listed token is any
text; the file holds its SHA-256 only, so that reading the file doesn't let one in, and removing the entry ends it.

Permissions are filters: what may be published, subscribed to and advertised; None for everything. Rights are for
operators: `monitor` looks at the broker's tables and figures, `load` brings subscriptions in bulk, `admin` has both and
changes the broker itself. None of them widens a permission: what is loaded must be within `subscribe`.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import tomllib
from collections.abc import Mapping
from datetime import date, datetime
from math import isfinite
from pathlib import Path
from typing import Any, Final, Literal, TypeAlias

import msgspec

from covey.errors import CoveyError
from covey.filters.values import normalise
from covey.language import parse
from covey.network.errors import IdentityError, NetworkError
from covey.routing.messages import Permissions

PREFIX: Final = "covey1"
SHORTEST_SECRET: Final = 32
"""Bytes: as many as the signature has."""
LONGEST_TOKEN: Final = 8_192
"""Characters: a token is a header of each request."""


Right: TypeAlias = Literal["monitor", "load", "admin"]


class Principal(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """Someone who may use a broker, and what they may do."""

    name: str
    expires: float | None = None
    """Seconds since 1970; None for no end."""
    publish: str | None = None
    subscribe: str | None = None
    advertise: str | None = None
    admin: bool = False
    """May change the broker itself, and has all other rights."""
    broker: bool = False
    """Is a neighbour of this name, not a client."""
    monitor: bool = False
    """May see the broker's tables and figures."""
    load: bool = False
    """May give clients subscriptions in bulk."""

    def may(self, right: Right) -> bool:
        """Whether it has a right of operators."""
        return self.admin or (right == "monitor" and self.monitor) or (right == "load" and self.load)

    @property
    def permissions(self) -> Permissions:
        """What the broker is told."""
        return Permissions(self.publish, self.subscribe, self.advertise)


ANYONE: Final = Principal("", admin=True)
"""Whoever connects to a broker without security, which listens on this machine only."""


def checked(principal: Principal) -> Principal:
    """A principal whose name and filters can be used; raises NetworkError."""
    if not principal.name or "/" in principal.name or not principal.name.isprintable():
        raise NetworkError(f"{principal.name!r} can't be a client's name; use printable text without a slash")
    if principal.expires is not None and not isfinite(principal.expires):
        raise NetworkError(
            f"{principal.expires} is no moment at which {principal.name!r} expires; leave it out for none"
        )
    for action in ("publish", "subscribe", "advertise"):
        text = getattr(principal, action)
        if text is not None:
            try:
                parse(text)
            except CoveyError as error:
                raise NetworkError(f"what {principal.name!r} may {action}: {error}") from None
    return principal


def sign(principal: Principal, secret: bytes) -> str:
    """A token."""
    check_secret(secret)
    payload = _base64(msgspec.json.encode(checked(principal)))
    return f"{PREFIX}.{payload}.{_base64(_signature(payload, secret))}"


def verify(token: str, secret: bytes, now: float) -> Principal:
    """The principal of a signed token; raises IdentityError."""
    prefix, _, rest = token.partition(".")
    payload, _, signature = rest.partition(".")
    if prefix != PREFIX or len(token) > LONGEST_TOKEN or not token.isascii():
        raise IdentityError("this isn't a token that this broker knows")
    if not hmac.compare_digest(signature, _base64(_signature(payload, secret))):
        raise IdentityError("this isn't a token that this broker knows")
    try:
        principal = msgspec.json.decode(base64.urlsafe_b64decode(payload + "=" * (-len(payload) % 4)), type=Principal)
    except (msgspec.DecodeError, binascii.Error, ValueError):
        raise IdentityError("this token was signed by another version of covey") from None
    return alive(principal, now)


def alive(principal: Principal, now: float) -> Principal:
    """A principal whose token hasn't ended; raises IdentityError."""
    if principal.expires is not None and principal.expires <= now:
        raise IdentityError(f"the token of {principal.name!r} has expired; ask for a new one")
    return principal


def check_secret(secret: bytes) -> None:
    """Raises where a secret can be guessed."""
    if len(secret) < SHORTEST_SECRET:
        raise NetworkError(f"a secret of {len(secret)} bytes is too short; use {SHORTEST_SECRET} or more random bytes")


def read_secret(path: Path) -> bytes:
    """The secret in a file, without white space around it."""
    try:
        secret = path.read_bytes().strip()
    except OSError as error:
        raise NetworkError(f"{path}: {error.strerror}") from None
    try:
        check_secret(secret)
    except NetworkError as error:
        raise NetworkError(f"{path}: {error}") from None
    return secret


def read_listed(path: Path) -> dict[str, Principal]:
    """The principals in a file of tokens, by the token's SHA-256: tables `[NAME]` with `sha256` and permissions."""
    try:
        tables = tomllib.loads(path.read_text())
    except OSError as error:
        raise NetworkError(f"{path}: {error.strerror}") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise NetworkError(f"{path}: not TOML: {error}") from None
    found: dict[str, Principal] = {}
    for name, table in tables.items():
        if not isinstance(table, dict) or not _is_sha256(table.get("sha256")):
            raise NetworkError(f"{path}: [{name}] needs sha256, the 64 hexadecimal digits of its token's SHA-256")
        fields = {key: value for key, value in table.items() if key != "sha256"}
        digest = table["sha256"].lower()
        if digest in found:
            raise NetworkError(f"{path}: [{name}] has the token of [{found[digest].name}]; each needs one of its own")
        found[digest] = principal_of(name, fields, str(path))
    return found


def principal_of(name: str, fields: Mapping[str, Any], where: str) -> Principal:
    """A principal from a table of a configuration file."""
    plain = dict(fields)
    if isinstance(plain.get("expires"), date):
        moment = normalise(plain["expires"])
        assert isinstance(moment, datetime)
        plain["expires"] = moment.timestamp()
    try:
        return checked(msgspec.convert({"name": name, **plain}, type=Principal))
    except (msgspec.ValidationError, NetworkError) as error:
        raise NetworkError(f"{where}: [{name}]: {error}") from None


def sha256(token: str) -> str:
    """What a file of tokens holds of one."""
    return hashlib.sha256(token.encode()).hexdigest()


def _is_sha256(value: Any) -> bool:
    return isinstance(value, str) and len(value) == 64 and all(digit in "0123456789abcdefABCDEF" for digit in value)


def _signature(payload: str, secret: bytes) -> bytes:
    return hmac.new(secret, f"{PREFIX}.{payload}".encode(), hashlib.sha256).digest()


def _base64(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()
