"""A standalone cluster on loopback: a master and two workers in processes of their own, which don't see the driver's
directory, as on machines of their own; a Connect server on that cluster, which doesn't see it either; and one whose
workers are its own."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pyspark")

from covey.filters import matches
from covey.language import parse
from tests.spark.cluster import CLASSES, QUICK, Cluster, alone, free_port, running
from tests.spark.cluster_driver import RULES
from tests.spark.test_source import Broker

pytestmark = pytest.mark.long  # a master, workers, executors and a driver are started for each

SERVER = "org.apache.spark.sql.connect.service.SparkConnectServer"
DRIVER = Path(__file__).with_name("cluster_driver.py")
EVENTS = [{"n": n, "price": n * 37 % 100 + 0.5, "symbol": "abc"[n % 3]} for n in range(200)]
MATCHES = sorted([event["n"], id] for event in EVENTS for id, text in RULES if matches(parse(text), event))
PATIENCE = 600.0
ALONE = ("events", "files", "saved index", "one stream", "file that workers don't see")


def drive(cluster: Cluster, address: str, shared: Path, *steps: str) -> dict[str, Any]:
    """What a driver finds there, in these steps or in all."""
    (shared / "events").mkdir(parents=True)
    (shared / "events" / "1.json").write_text("".join(json.dumps(event) + "\n" for event in EVENTS))
    own = cluster.own / shared.name
    own.mkdir()
    broker = Broker(cluster.work / f"broker-{shared.name}")
    broker.start()
    try:
        with (cluster.work / f"{shared.name}.log").open("w+") as log:
            done = subprocess.run(
                [sys.executable, str(DRIVER), address, str(shared), str(own), broker.url, *steps],
                stdout=subprocess.PIPE, stderr=log, text=True, timeout=PATIENCE, cwd=DRIVER.parents[2],
                env={**os.environ, "TMPDIR": str(own), "PYTHONPATH": str(DRIVER.parents[2])}, check=False,
            )  # fmt: skip
            log.seek(0)
            assert done.returncode == 0, log.read()[-3000:]
    finally:
        broker.kill()
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    with running(tmp_path_factory.mktemp("cluster")) as made:
        yield made


def wait_until_listening(port: int, process: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline and process.poll() is None:
        with socket.socket() as one:
            if one.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.2)
    raise AssertionError("the Connect server did not start")


@pytest.fixture(scope="module")
def classic(cluster: Cluster) -> dict[str, Any]:
    return drive(cluster, cluster.address, cluster.work / "classic")


@contextmanager
def connect_server(cluster: Cluster, master: str) -> Iterator[str]:
    """The address of a Connect server that sees no file of the driver's own."""
    port = free_port()
    settings = {
        "spark.connect.grpc.binding.address": "127.0.0.1", "spark.connect.grpc.binding.port": str(port),
        "spark.driver.host": "127.0.0.1", "spark.driver.bindAddress": "127.0.0.1", "spark.executor.memory": "512m",
        "spark.cores.max": "2", "spark.sql.shuffle.partitions": "2", "spark.ui.enabled": "false",
        "spark.pyspark.python": sys.executable, "spark.driver.memory": "512m",
        "spark.driver.extraJavaOptions": QUICK, "spark.executor.extraJavaOptions": QUICK,
    }  # fmt: skip
    given = [part for name, value in settings.items() for part in ("--conf", f"{name}={value}")]
    server = cluster.start(
        f"{CLASSES}.SparkSubmit", "--master", master, *given, "--class", SERVER, "spark-internal", memory="700m"
    )
    wait_until_listening(port, server)
    try:
        yield f"sc://127.0.0.1:{port}"
    finally:
        server.kill()


@pytest.fixture(scope="module")
def connect(cluster: Cluster) -> Iterator[dict[str, Any]]:
    with connect_server(cluster, cluster.address) as address:
        yield drive(cluster, address, cluster.work / "connect")


@pytest.fixture(params=["classic", "connect"], scope="module")
def found(request: pytest.FixtureRequest) -> dict[str, Any]:
    """All that a driver finds. A Connect server holds the cluster's cores while it runs, so it comes last."""
    result: dict[str, Any] = request.getfixturevalue(request.param)
    return result


def test_what_a_cluster_without_shared_disk_matches_is_what_one_machine_does(found: dict[str, Any]) -> None:
    assert found["events"] == MATCHES


def test_an_executor_that_is_killed_in_the_middle_costs_nothing(found: dict[str, Any]) -> None:
    assert found["executor killed"] == {"killed": True, "matches": MATCHES}


def test_a_stream_writes_every_match(found: dict[str, Any]) -> None:
    assert found["one stream"] == {"matches": MATCHES}


def test_what_workers_do_not_see_is_refused_before_it_starts(cluster: Cluster, found: dict[str, Any]) -> None:
    if not cluster.hides:
        pytest.skip("a worker that doesn't see the driver's files needs a mount namespace")
    lost = found["sink that workers don't see"]
    assert "is seen by the driver and not by Spark's workers" in lost["error"]
    assert lost["committed"] == []
    kind, reason = found["file that workers don't see"]
    assert kind == "CoveyError"
    assert "not by Spark's workers" in reason


def test_files_and_saved_indexes_give_the_same(found: dict[str, Any]) -> None:
    assert found["files"] == MATCHES
    assert found["saved index"] == MATCHES


def test_profiles_and_compactions_come_from_the_workers(found: dict[str, Any]) -> None:
    assert found["profile"] == {"events": len(EVENTS), "attributes": ["price", "symbol"]}
    assert found["compaction"] == [["a", "a"], ["dear", "dear", "dearer", "none"]]


def test_two_streams_over_the_same_changes_write_every_match(found: dict[str, Any]) -> None:
    assert found["one stream"] == {"matches": MATCHES}
    assert found["another over the same changes"] == {"matches": MATCHES}


def test_a_table_goes_to_a_broker_and_comes_back_as_a_stream(found: dict[str, Any]) -> None:
    assert found["through a broker"] == [2 * n for n in range(20)]


def test_a_connect_server_on_a_machine_of_its_own_is_sent_what_it_does_not_see(tmp_path: Path) -> None:
    """Its master is `local`, so its workers see what it sees, which isn't what the client does."""
    with ExitStack() as stack:
        (tmp_path / "own").mkdir()
        machine = alone(tmp_path, tmp_path / "own", stack)
        if not machine.hides:
            pytest.skip("no mount namespace can be had here, so the server would see the client's files")
        with connect_server(machine, "local[2]") as address:
            found = drive(machine, address, tmp_path / "shared", *ALONE)
    assert found["events"] == found["files"] == found["saved index"] == MATCHES
    assert found["one stream"]["matches"] == MATCHES
    assert found["file that workers don't see"][0] == "CoveyError"
    assert "is seen here and not by Spark's workers" in found["file that workers don't see"][1]
