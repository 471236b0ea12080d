"""`python -m tools.jars`: Kafka, Spark's connector for it, and Hadoop's for S3, from their Maven coordinates, once,
into the environment.

Spark's own resolver fetches them, so no Maven is needed. A broker is started from what is in `kafka`. The connector is
that of the Spark that is installed; where that isn't to be had, the newest that is and that runs with it.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pyspark

from covey.spark.session import find_java

KEPT = Path(sys.prefix) / "jars"
SECONDS = 300
KAFKA = "org.apache.kafka:kafka_2.13:3.9.1"
CONNECTOR = "org.apache.spark:spark-sql-kafka-0-10_2.13"
TOKENS = "org.apache.spark:spark-token-provider-kafka-0-10_2.13"


class NotFetchedError(Exception):
    """What can't be had here."""


@dataclass(frozen=True)
class Request:
    """Coordinates that are resolved together; only jars with one of these words in their names are wanted."""

    coordinates: tuple[str, ...]
    excluded: tuple[str, ...] = ()
    wanted: tuple[str, ...] = ("",)


AWS_SDK = "2.35.4"
"""That of Hadoop 3.5, as the parts that S3 takes: the bundle of all is 50 times as large."""


def _hadoop() -> str:
    """The version of the Hadoop that is in Spark."""
    found = next((Path(pyspark.__file__).parent / "jars").glob("hadoop-client-api-*.jar"))
    return found.stem.rpartition("-")[2]


_OF_CONNECTOR = ("spark-sql-kafka", "spark-token-provider-kafka", "kafka-clients", "commons-pool2")
"""The others are Spark's own already."""
REQUESTS: dict[str, Sequence[Sequence[Request]]] = {
    "kafka": [[Request((KAFKA,))]],
    "connector": [
        [Request((f"{CONNECTOR}:{pyspark.__version__}",), wanted=_OF_CONNECTOR)],
        # Parts of one release may be missing from a mirror; the small one changes little between releases.
        [Request((f"{CONNECTOR}:4.2.0",), (TOKENS,), _OF_CONNECTOR),
         Request((f"{TOKENS}:4.0.0",), wanted=("spark-token-provider",))],
    ],
    "s3a": [[
        Request(
            (f"org.apache.hadoop:hadoop-aws:{_hadoop()}",
             *(f"software.amazon.awssdk:{part}:{AWS_SDK}" for part in ("s3", "s3-transfer-manager", "sts"))),
            ("software.amazon.awssdk:bundle",),
            ("hadoop-aws", "awssdk", "eventstream", "analyticsaccelerator", "reactive-streams", "httpc", "wildfly"),
        )
    ]],
}  # fmt: skip
"""By name, what to try one after the other."""


_refused: dict[str, str] = {}
"""By name, why a set couldn't be had in this process."""


def jars(name: str) -> list[Path]:
    """The jars of a set, fetched if they aren't there yet."""
    place = KEPT / f"{name}-{pyspark.__version__}"
    if not place.is_dir():
        if name in _refused:  # so that tests without a network wait for it once
            raise NotFetchedError(_refused[name])
        said = ""
        for attempt in REQUESTS[name]:
            with tempfile.TemporaryDirectory() as directory:
                said = _fetch(attempt, Path(directory), place)
            if place.is_dir():
                break
        else:
            _refused[name] = f"{name} can't be fetched by Spark's resolver: {said}"
            raise NotFetchedError(_refused[name])
    return sorted(place.glob("*.jar"))


def _fetch(attempt: Sequence[Request], directory: Path, place: Path) -> str:
    """Put an attempt's jars in their place, or say what went wrong."""
    found = directory / "found"
    found.mkdir()
    script = directory / "nothing.py"
    script.write_text("")
    for number, request in enumerate(attempt):
        ivy = directory / f"ivy-{number}"
        command = [str(Path(pyspark.__file__).parent / "bin" / "spark-submit"), "--conf", f"spark.jars.ivy={ivy}",
                   "--packages", ",".join(request.coordinates)]  # fmt: skip
        command += ["--exclude-packages", ",".join(request.excluded)] if request.excluded else []
        environment = {**os.environ, "JAVA_HOME": find_java(), "PYSPARK_PYTHON": sys.executable,
                       "PYSPARK_DRIVER_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1"}  # fmt: skip
        try:
            done = subprocess.run(
                [*command, str(script)], env=environment, capture_output=True, text=True, timeout=SECONDS, check=False
            )
        except subprocess.TimeoutExpired:
            return f"no answer within {SECONDS} s"
        if done.returncode != 0:
            wrong = [line for line in done.stderr.splitlines() if "unresolved dependency" in line]
            return (wrong or done.stderr.splitlines() or ["no reason"])[-1].strip()
        for jar in (ivy / "jars").glob("*.jar"):
            if any(word in jar.name for word in request.wanted):
                shutil.copy(jar, found)
    place.parent.mkdir(exist_ok=True)
    beside = place.with_name(f".{place.name}-{os.getpid()}")
    shutil.copytree(found, beside)
    try:
        beside.rename(place)
    except OSError:  # another process was first
        shutil.rmtree(beside)
    return ""


def main() -> None:
    """Fetch what isn't there."""
    for name in REQUESTS:
        try:
            print(f"{name}: {len(jars(name))} jars in {KEPT}")
        except NotFetchedError as error:
            print(error, file=sys.stderr)


if __name__ == "__main__":
    main()
