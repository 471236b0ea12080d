"""What can go wrong between a client, a broker and its disk, in words for people."""

from __future__ import annotations

from covey.errors import CoveyError


class NetworkError(CoveyError):
    """Base of the errors of servers and clients."""


class FrameError(NetworkError):
    """Bytes that aren't a message, or are too many. The connection that they came over is closed with the reason."""

    def __init__(self, reason: str, code: int = 1007) -> None:
        super().__init__(reason)
        self.code = code


class StorageError(NetworkError):
    """A broker's file that can't be used."""


class IdentityError(NetworkError):
    """Someone who didn't say who they are, or isn't believed."""


class OriginError(IdentityError):
    """A web page that may not use this broker."""


class RefusedError(NetworkError):
    """A request that the broker refused; says why."""


class ConflictError(RefusedError):
    """A request that would replace something, and wasn't asked to."""


class MissingError(RefusedError):
    """A request for something that isn't there."""


class ConnectionLostError(NetworkError):
    """The connection broke before the broker answered; what was asked may or may not have been done."""


class SessionTakenError(NetworkError):
    """Another connection uses this client's name now."""


class SubscriptionEndedError(NetworkError):
    """A subscription whose lease ended, or that was ended elsewhere."""


class ClosedError(NetworkError):
    """A client that was closed."""


class HeldBackError(NetworkError):
    """A publication that must wait, since the broker is above a mark of memory or disk."""
