"""TLS contexts. Between brokers both ends show a certificate of the same authority, and the name in it is the broker's
id: a neighbour is known by its certificate wherever it listens, so the host's name isn't looked at."""

from __future__ import annotations

import ssl
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from covey.network.configuration import TlsFiles
from covey.network.errors import NetworkError


def server_context(files: TlsFiles) -> ssl.SSLContext:
    """For connections that come in. Certificates of clients are asked for where there is an authority for them; who
    shows none needs a token."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    _load(context, files)
    if files.authority is not None:
        context.verify_mode = ssl.CERT_OPTIONAL
    return context


class ServerTls:
    """The context of connections that come in, whose files can be read again.

    A context that is in use can be given another certificate, and can't be rid of an authority. So connections are
    accepted by one that hands each of them over to the present one. Sessions aren't resumed: nobody is asked for a
    certificate again then, whatever the authority is by that time.
    """

    def __init__(self, files: TlsFiles) -> None:
        self.files = files
        self._present = server_context(files)
        self.context = server_context(files)
        self.context.num_tickets = 0
        self.context.options |= ssl.OP_NO_TICKET
        self.context.sni_callback = self._hand_over

    def _hand_over(self, connection: ssl.SSLSocket | ssl.SSLObject, name: str | None, by: ssl.SSLContext) -> None:  # noqa: ARG002
        connection.context = self._present

    def read(self) -> ssl.SSLContext:
        """What the files are now; raises NetworkError where they can't be used."""
        return server_context(self.files)

    def use(self, context: ssl.SSLContext) -> None:
        """Take it for all connections from now on."""
        self._present = context


def link_context(files: TlsFiles | None) -> ssl.SSLContext:
    """For links to neighbours."""
    context = ssl.create_default_context()
    if files is not None:
        if files.authority is not None:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
            context.minimum_version = ssl.TLSVersion.TLSv1_2
            context.check_hostname = False
        _load(context, files)
    return context


def client_context(
    authority: Path | str | None = None, certificate: Path | str | None = None, key: Path | str | None = None
) -> ssl.SSLContext:
    """For clients: the authority that a broker's certificate must be of (the system's if None), and a certificate."""
    try:
        context = ssl.create_default_context(cafile=authority)
        if certificate is not None:
            context.load_cert_chain(certificate, key)
    except (OSError, ssl.SSLError) as error:
        raise NetworkError(f"TLS: {error}") from None
    return context


def names_in(certificate: Mapping[str, Any] | None) -> list[str]:
    """The names that a checked certificate is for: those of its subjectAltName. The common name counts only where there
    is none (RFC 6125, section 6.4.4), since authorities check what they put there and often nothing else."""
    if not certificate:
        return []
    alternatives = certificate.get("subjectAltName", ())
    if alternatives:
        return list(dict.fromkeys(value for kind, value in alternatives if kind == "DNS"))
    return [value for part in certificate.get("subject", ()) for kind, value in part if kind == "commonName"]


def _load(context: ssl.SSLContext, files: TlsFiles) -> None:
    try:
        context.load_cert_chain(files.certificate, files.key)
        if files.authority is not None:
            context.load_verify_locations(files.authority)
    except (OSError, ssl.SSLError) as error:
        raise NetworkError(f"{files.certificate} and {files.key}: {error}") from None
