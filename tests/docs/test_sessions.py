"""The ports that pages run on are nobody else's."""

from __future__ import annotations

import socket
from contextlib import closing
from urllib.parse import urlsplit

import pytest

from tests.docs.sessions import Ports


def test_a_port_is_kept_until_the_page_listens_there() -> None:
    with closing(Ports()) as ports:
        port = urlsplit(ports.broker).port
        assert port is not None
        with socket.socket() as other, pytest.raises(OSError, match="in use"):
            other.bind(("127.0.0.1", port))
        with pytest.raises(ConnectionRefusedError):
            socket.create_connection(("127.0.0.1", port))
        for _ in range(2):  # A broker that is started again, too.
            with socket.create_server(("127.0.0.1", port)), socket.create_connection(("127.0.0.1", port)):
                pass
    with socket.create_server(("127.0.0.1", port)):
        pass
