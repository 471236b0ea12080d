"""A standalone cluster on loopback: a master and two workers in processes of their own, which don't see the driver's
directory, as on machines of their own."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pyspark

from covey.spark.session import find_java

CLASSES = "org.apache.spark.deploy"
QUICK = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"


def free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        port: int = one.getsockname()[1]
        return port


@dataclass
class Cluster:
    """Its processes see an empty directory in place of `own`, where a mount namespace can be had."""

    work: Path
    own: Path
    address: str
    stack: ExitStack
    hides: bool
    environment: dict[str, str] = field(default_factory=dict)
    started: int = 0

    def start(self, *command: str, memory: str = "256m") -> subprocess.Popen[bytes]:
        """A class of Spark's in a process of its own."""
        hiding = ["unshare", "-m", "sh", "-c", 'mount -t tmpfs tmpfs "$0" && exec "$@"', str(self.own)]
        hiding = hiding if self.hides else []
        whole = [str(Path(pyspark.__file__).parent / "bin" / "spark-class"), *command]
        log = self.stack.enter_context((self.work / f"process-{self.started}.log").open("w"))
        self.started += 1
        environment = {**self.environment, "SPARK_DAEMON_MEMORY": memory}
        process = subprocess.Popen([*hiding, *whole], env=environment, stdout=log, stderr=log)
        self.stack.callback(process.wait, 30)
        self.stack.callback(process.kill)
        return process


def alone(work: Path, own: Path, stack: ExitStack) -> Cluster:
    """What starts Spark's classes, with none started."""
    hides = os.geteuid() == 0 and shutil.which("unshare") is not None
    environment = {
        **os.environ, "SPARK_HOME": str(Path(pyspark.__file__).parent), "JAVA_HOME": find_java(),
        "SPARK_NO_DAEMONIZE": "1", "SPARK_LOCAL_IP": "127.0.0.1",
        "SPARK_DAEMON_JAVA_OPTS": QUICK, "PYSPARK_PYTHON": sys.executable,
        "SPARK_MASTER_OPTS": "-Dspark.master.rest.enabled=false",
    }  # fmt: skip
    return Cluster(work, own, f"spark://127.0.0.1:{free_port()}", stack, hides, environment)


@contextmanager
def running(work: Path) -> Iterator[Cluster]:
    """A cluster whose files are in a directory."""
    own = work / "own"
    own.mkdir()
    with ExitStack() as stack:
        made = alone(work, own, stack)
        port = made.address.rpartition(":")[2]
        made.start(f"{CLASSES}.master.Master", "--host", "127.0.0.1", "--port", port, "--webui-port", "0")
        for number in range(2):
            made.start(
                f"{CLASSES}.worker.Worker", made.address, "--host", "127.0.0.1", "--webui-port", "0", "--cores", "1",
                "--memory", "700m", "--work-dir", str(work / f"worker-{number}"),
            )  # fmt: skip
        yield made
