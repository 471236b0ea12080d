"""All of a stream in a bucket: Spark's own part by Hadoop's AWS module, covey's by Arrow, beside an S3 server on
loopback; and a driver that dies before it commits."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pyspark")

from pyarrow import fs

pytestmark = pytest.mark.long
DRIVER = Path(__file__).with_name("s3a_driver.py")
PATIENCE = 600.0


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    """Where an S3 server with a bucket listens."""
    from tools.jars import NotFetchedError, jars

    try:
        jars("s3a")
    except NotFetchedError as error:
        pytest.skip(str(error))
    running = pytest.importorskip("moto.server").ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    running.start()
    _, port = running.get_host_and_port()
    options = {"access_key": "key", "secret_key": "secret", "scheme": "http", "region": "us-east-1"}
    fs.S3FileSystem(endpoint_override=f"127.0.0.1:{port}", allow_bucket_creation=True, **options).create_dir("bucket")
    yield f"127.0.0.1:{port}"
    running.stop()


def drive(server: str, log: Path, *steps: str) -> list[Any]:
    with log.open("w+") as errors:
        done = subprocess.run(
            [sys.executable, "-m", "tests.spark.s3a_driver", server, *steps], stdout=subprocess.PIPE, stderr=errors,
            text=True, timeout=PATIENCE, cwd=DRIVER.parents[2], check=False,
        )  # fmt: skip
        errors.seek(0)
        assert done.returncode == 0, errors.read()[-3000:]
    return [json.loads(line) for line in done.stdout.splitlines() if line.startswith("[")]


def test_a_stream_in_a_bucket_has_every_match_once(server: str, tmp_path: Path) -> None:
    before = [[3, "x3", [], 1, 0], [4, "x4", ["a", "b"], 1, 0]]
    assert drive(server, tmp_path / "first.log", "first") == [before]
    assert drive(server, tmp_path / "crash.log", "crash") == [["batch=1", 2]]
    again, matched = drive(server, tmp_path / "again.log", "again", "index")
    assert again == [*before, [5, "x5", ["a", "c"], 2, 1], [6, "x6", ["a", "c", "d"], 3, 2]]
    assert matched == [[3, []], [4, ["a", "b"]], [5, ["a"]], [6, ["a"]]]
