from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from covey.network.configuration import load
from covey.routing.config import ConfigError

SECRET = "0123456789abcdef0123456789abcdef"


def written(directory: Path, text: str) -> Path:
    path = directory / "broker.toml"
    path.write_text(text)
    return path


def test_a_file_says_all_there_is_to_say(tmp_path: Path) -> None:
    (tmp_path / "secret").write_text(SECRET)
    path = written(
        tmp_path,
        """
        id = "a"
        host = "10.0.0.1"
        port = 7401
        data = "kept"
        strategy = "simple"
        advertisements = true
        [peers]
        b = "ws://10.0.0.2:7400"
        c = ""
        [merging]
        imt = 0.1
        [security]
        secret_file = "secret"
        plain = true
        [limits]
        message_bytes = 1000
        queue = 7
        depth = 9
        [timing]
        failed = 3.0
        """,
    )
    config = load(path, {})
    assert (config.broker.broker, config.host, config.port) == ("a", "10.0.0.1", 7401)
    assert config.data == tmp_path / "kept"
    assert config.broker.peers == ("b", "c")
    assert config.peers == {"b": "ws://10.0.0.2:7400", "c": ""}
    assert (config.broker.strategy, config.broker.advertisements, config.broker.merging.imt) == ("simple", True, 0.1)
    assert config.security.secret == SECRET.encode()
    assert (config.limits.message_bytes, config.broker.limits.queue, config.broker.limits.filters.depth) == (1000, 7, 9)
    assert config.broker.timing.failed == 3.0


def test_flags_go_before_the_file(tmp_path: Path) -> None:
    path = written(tmp_path, 'id = "a"\nport = 1\n[peers]\nb = ""\n')
    config = load(path, {"port": 2, "id": None, "peers": {"c": "ws://x:1"}, "data": "d"})
    assert (config.broker.broker, config.port, config.broker.peers) == ("a", 2, ("b", "c"))
    assert config.data == Path("d")


def test_flags_alone_are_enough() -> None:
    config = load(None, {"id": "a", "peers": {}})
    assert (config.host, config.port, config.data) == ("127.0.0.1", 7400, None)


@pytest.mark.parametrize("host", ["0.0.0.0", "192.168.1.2", "::", "example.org"])
def test_without_security_a_broker_listens_on_this_machine_only(host: str) -> None:
    with pytest.raises(
        ConfigError, match=r"without security a broker listens on this machine only.*--host 127\.0\.0\.1"
    ):
        load(None, {"id": "a", "host": host})


@pytest.mark.parametrize("host", ["127.0.0.1", "127.8.8.8", "::1", "localhost"])
def test_all_names_of_this_machine_will_do(host: str) -> None:
    assert load(None, {"id": "a", "host": host}).host == host


def test_tokens_do_not_travel_in_the_clear_to_other_machines(tmp_path: Path) -> None:
    (tmp_path / "secret").write_text(SECRET)
    path = written(tmp_path, 'id = "a"\nhost = "0.0.0.0"\n[security]\nsecret_file = "secret"\n')
    with pytest.raises(ConfigError, match="in the clear"):
        load(path, {})


@pytest.mark.parametrize(
    ("text", "flags", "problem"),
    [
        ("", {}, "needs a name"),
        ('id = "a"\nprot = 1\n', {}, "prot is not known; a broker has"),
        ('id = "a"\n[limits]\nqueues = 1\n', {}, r"limits\.queues is not known"),
        ('id = "a"\n[limits]\nqueue = -1\n', {}, "must be a number above 0"),
        ('id = "a"\n[peers]\nb = "http://x"\n', {}, "must start with ws:// or wss://"),
        ('id = "a"\n[tls]\ncertificate = "x"\nkey = "y"\n', {}, "no such file"),
        ('id = "a"\n[tls]\nkey = "y"\n', {}, "needs certificate"),
        ('id = "a"\n[security]\nsecret_file = "none"\n', {}, "No such file"),
        ('id = "a"\nstrategy = "magic"\n', {}, "strategy 'magic' is not known"),
        ('id = "a"\n[peers]\na = ""\n', {}, "its own neighbour"),
        ('id = "a"\n[peers]\nb = ""\n[clients.b]\n', {}, "neighbour and a client"),
        ('id = "a"\n[clients.ann]\nsubscribe = "x <"\n', {}, "may subscribe"),
        ("id", {}, "not TOML"),
    ],
)
def test_a_mistake_is_named_with_its_file(tmp_path: Path, text: str, flags: dict[str, Any], problem: str) -> None:
    path = written(tmp_path, text)
    with pytest.raises(ConfigError, match=problem) as raised:
        load(path, flags)
    assert str(path) in str(raised.value)
