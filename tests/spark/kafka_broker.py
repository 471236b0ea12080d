"""Kafka itself on loopback: one process in KRaft mode, from the jars that `tools.jars` keeps."""

from __future__ import annotations

import os
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pyspark
from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient, NewTopic
from tools.jars import jars

from covey.spark.session import find_java

SETTINGS = """
process.roles=broker,controller
node.id=1
listeners=PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{inner}
advertised.listeners=PLAINTEXT://127.0.0.1:{port}
controller.listener.names=CONTROLLER
controller.quorum.voters=1@127.0.0.1:{inner}
log.dirs={data}
offsets.topic.replication.factor=1
offsets.topic.num.partitions=1
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
transaction.state.log.num.partitions=1
group.initial.rebalance.delay.ms=0
auto.create.topics.enable=false
"""
OF_SPARK = ("scala-library", "scala-reflect", "slf4j-api", "snappy-java")
SECONDS = 120


def free_ports(count: int) -> list[int]:
    taken = [socket.socket() for _ in range(count)]
    for one in taken:
        one.bind(("127.0.0.1", 0))
    ports: list[int] = [one.getsockname()[1] for one in taken]
    for one in taken:
        one.close()
    return ports


@contextmanager
def broker(directory: Path) -> Iterator[str]:
    """The address of a broker that is ready."""
    port, inner = free_ports(2)
    settings = directory / "server.properties"
    settings.write_text(SETTINGS.format(port=port, inner=inner, data=directory / "data"))
    spark = Path(pyspark.__file__).parent / "jars"
    own = [str(jar) for name in OF_SPARK for jar in spark.glob(f"{name}*.jar")]
    path = os.pathsep.join([*map(str, jars("kafka")), *own])
    java = [f"{find_java()}/bin/java", "-Xmx512m", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-cp", path]
    subprocess.run(
        [*java, "kafka.tools.StorageTool", "format", "-t", "A" * 22, "-c", str(settings)],
        check=True, capture_output=True, timeout=SECONDS,
    )  # fmt: skip
    address = f"127.0.0.1:{port}"
    with (directory / "kafka.log").open("w") as log:
        process = subprocess.Popen([*java, "kafka.Kafka", str(settings)], stdout=log, stderr=log)
        try:
            AdminClient({"bootstrap.servers": address}).list_topics(timeout=SECONDS)
            yield address
        finally:
            process.kill()
            process.wait(30)


def make_topic(address: str, name: str, partitions: int = 1, **config: str) -> None:
    admin = AdminClient({"bootstrap.servers": address})
    made = admin.create_topics([NewTopic(name, partitions, 1, config=config)])
    try:
        made[name].result(SECONDS)
    except KafkaException as error:
        raise AssertionError(f"topic {name}: {error}") from error
