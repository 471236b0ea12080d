"""A standalone cluster on loopback: a master and two workers in processes of their own, which don't see the driver's
directory, as on machines of their own."""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

pytest.importorskip("pyspark")

import pyspark

from covey.filters import matches
from covey.language import parse
from covey.spark.session import find_java
from tests.spark.cluster_driver import RULES

pytestmark = pytest.mark.long  # four JVMs

CLASSES = "org.apache.spark.deploy"
DRIVER = Path(__file__).with_name("cluster_driver.py")
EVENTS = [{"n": n, "price": n * 37 % 100 + 0.5, "symbol": "abc"[n % 3]} for n in range(200)]


def free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        port: int = one.getsockname()[1]
        return port


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[str]:
    """The address of a cluster whose workers see an empty directory in place of `own`."""
    if os.geteuid() != 0 or shutil.which("unshare") is None:
        pytest.skip("a worker that doesn't see the driver's files needs a mount namespace")
    home = Path(pyspark.__file__).parent
    environment = {
        **os.environ, "SPARK_HOME": str(home), "JAVA_HOME": find_java(), "SPARK_NO_DAEMONIZE": "1",
        "SPARK_LOCAL_IP": "127.0.0.1", "SPARK_DAEMON_MEMORY": "256m", "PYSPARK_PYTHON": sys.executable,
        "SPARK_MASTER_OPTS": "-Dspark.master.rest.enabled=false",
    }  # fmt: skip
    own = tmp_path / "own"
    own.mkdir()
    start = str(home / "bin" / "spark-class")
    port = free_port()
    address = f"spark://127.0.0.1:{port}"
    master = [start, f"{CLASSES}.master.Master", "--host", "127.0.0.1", "--port", str(port), "--webui-port", "0"]
    worker = [start, f"{CLASSES}.worker.Worker", address, "--host", "127.0.0.1", "--webui-port", "0",
              "--cores", "1", "--memory", "700m"]  # fmt: skip
    hidden = ["unshare", "-m", "sh", "-c", 'mount -t tmpfs tmpfs "$0" && exec "$@"', str(own)]
    commands = [master, *([*hidden, *worker, "--work-dir", str(tmp_path / f"worker-{n}")] for n in range(2))]
    with ExitStack() as stack:
        for number, command in enumerate(commands):
            log = stack.enter_context((tmp_path / f"process-{number}.log").open("w"))
            process = subprocess.Popen(command, env=environment, stdout=log, stderr=log)
            stack.callback(process.wait, 30)
            stack.callback(process.kill)
        yield address


def test_what_a_cluster_without_shared_disk_matches_is_what_one_machine_does(cluster: str, tmp_path: Path) -> None:
    shared, own = tmp_path / "shared", tmp_path / "own"
    (shared / "events").mkdir(parents=True)
    (shared / "events" / "1.json").write_text("".join(json.dumps(event) + "\n" for event in EVENTS))
    with (tmp_path / "driver.log").open("w+") as log:
        done = subprocess.run(
            [sys.executable, str(DRIVER), cluster, str(shared), str(own)], stdout=subprocess.PIPE, stderr=log,
            text=True, timeout=900, cwd=DRIVER.parents[2], env={**os.environ, "TMPDIR": str(own)}, check=False,
        )  # fmt: skip
        log.seek(0)
        assert done.returncode == 0, log.read()[-3000:]
    found = json.loads(done.stdout.splitlines()[-1])
    expected = sorted([event["n"], id] for event in EVENTS for id, text in RULES if matches(parse(text), event))
    assert found["events"] == expected
    assert found["files"] == expected
    assert found["one stream"] == {"matches": expected}
    assert found["another over the same changes"] == {"matches": expected}
    lost = found["sink that workers don't see"]
    assert "the driver finds 0 of them" in lost["error"]
    assert lost["committed"] == []
