"""Brokers as processes of this benchmark: started on a free port with data of their own, stopped by their pid."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

PATHS = "/usr/local/sbin:/usr/sbin:/sbin"
"""Where servers are that a user's PATH doesn't have."""
START_SECONDS = 90.0
STOP_SECONDS = 15.0


class NotInstalledError(Exception):
    """This broker, or what its clients need, isn't there."""


@contextmanager
def covey(directory: Path, *, durable: bool) -> Iterator[tuple[str, int]]:
    """The address, and the process."""
    config = directory / "broker.toml"
    config.write_text(
        "[limits]\nmessage_rate = 1e9\nevent_rate = 1e9\nsubscriptions = 2000000\ncredit = 20000\nbuffer = 20000\n"
    )
    options = ["--data", str(directory / "data")] if durable else []
    command = [
        sys.executable, "-m", "covey.cli", "broker", "--config", str(config), "--id", "a", "--port", "0",
        "--log-level", "error", *options,
    ]  # fmt: skip
    with _running(command, directory) as process:
        assert process.stdout is not None
        line = process.stdout.readline()
        if not line:
            raise RuntimeError(f"the broker didn't start: {(directory / 'errors').read_text()[-500:]}")
        yield line.split()[-1], process.pid


@contextmanager
def mosquitto(directory: Path) -> Iterator[tuple[str, int]]:
    """Without persistence, without a limit on what waits for a subscriber."""
    port = _free_port()
    config = directory / "mosquitto.conf"
    config.write_text(
        f"listener {port} 127.0.0.1\nallow_anonymous true\npersistence false\nmax_queued_messages 0\n"
        f"max_queued_bytes 0\nuser {os.environ.get('USER', 'root')}\nlog_type error\n"
    )
    with _running([_found("mosquitto"), "-c", str(config)], directory) as process:
        _wait_for(port, process)
        yield f"127.0.0.1:{port}", process.pid


@contextmanager
def nats(directory: Path) -> Iterator[tuple[str, int]]:
    """As it is installed."""
    port = _free_port()
    with _running([_found("nats-server"), "-a", "127.0.0.1", "-p", str(port)], directory) as process:
        _wait_for(port, process)
        yield f"127.0.0.1:{port}", process.pid


@contextmanager
def rabbitmq(directory: Path) -> Iterator[tuple[str, int]]:
    """With a port mapper of its own, which would else stay behind."""
    server = Path("/usr/lib/rabbitmq/bin/rabbitmq-server")
    binary = str(server) if server.exists() else _found("rabbitmq-server")
    mapper, port = _free_port(), _free_port()
    (directory / "plugins").write_text("[].\n")
    (directory / "rabbit.conf").write_text(f"listeners.tcp.1 = 127.0.0.1:{port}\nlog.console = false\n")
    environment = {
        **os.environ, "HOME": str(directory), "ERL_EPMD_PORT": str(mapper), "ERL_EPMD_ADDRESS": "127.0.0.1",
        "RABBITMQ_NODENAME": f"bench{port}@localhost", "RABBITMQ_MNESIA_BASE": str(directory / "data"),
        "RABBITMQ_LOG_BASE": str(directory / "logs"), "RABBITMQ_ENABLED_PLUGINS_FILE": str(directory / "plugins"),
        "RABBITMQ_CONFIG_FILE": str(directory / "rabbit"), "RABBITMQ_DIST_PORT": str(_free_port()),
        "RABBITMQ_PID_FILE": str(directory / "pid"),
    }  # fmt: skip
    with (
        _running([_found("epmd"), "-port", str(mapper), "-address", "127.0.0.1"], directory, environment),
        _running([binary], directory, environment) as process,
    ):
        _wait_for(port, process)
        yield f"127.0.0.1:{port}", process.pid


def processor_seconds(pid: int) -> float:
    """Processor time of a process and of those that it started."""
    children: dict[int, list[int]] = {}
    seconds: dict[int, float] = {}
    for path in Path("/proc").iterdir():
        if not path.name.isdigit():
            continue
        try:
            fields = (path / "stat").read_text().rpartition(")")[2].split()
        except OSError:
            continue
        children.setdefault(int(fields[1]), []).append(int(path.name))
        seconds[int(path.name)] = (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
    total, waiting = 0.0, [pid]
    while waiting:
        one = waiting.pop()
        total += seconds.get(one, 0.0)
        waiting += children.get(one, [])
    return total


@contextmanager
def _running(
    command: list[str], directory: Path, environment: dict[str, str] | None = None
) -> Iterator[subprocess.Popen[str]]:
    with (directory / "errors").open("a") as errors:
        process = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=errors, text=True, env=environment, start_new_session=True
        )
    try:
        yield process
    finally:
        # Each leads a group of its own: a server that is a script, and what it started.
        _signal(process, signal.SIGTERM)
        try:
            process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            _signal(process, signal.SIGKILL)
            process.wait()


def _signal(process: subprocess.Popen[str], number: int) -> None:
    try:
        os.killpg(process.pid, number)
    except ProcessLookupError:
        return


def _found(name: str) -> str:
    path = shutil.which(name) or shutil.which(name, path=PATHS)
    if path is None:
        raise NotInstalledError(f"{name} is not installed")
    return path


def _free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        port: int = one.getsockname()[1]
        return port


def _wait_for(port: int, process: subprocess.Popen[str]) -> None:
    end = time.monotonic() + START_SECONDS
    while time.monotonic() < end and process.poll() is None:
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
            return
        except OSError:
            time.sleep(0.1)
    raise RuntimeError(f"{process.args!r:.80} doesn't listen")
