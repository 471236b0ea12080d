"""Starting the JVM with a standard error of its own.

A JVM writes to the standard error that it was started with, before anyone can ask it not to, and so do the scripts
that start it and the Python workers that it starts. Who wants all that elsewhere must say so when the process is made:
exchanging this process's own standard error meanwhile would take it from every other thread, and one that keeps what it
found there (Numba does while it compiles, by colorama) would put it back later, closed by then.

PySpark's `launch_gateway` takes arguments for the process that it starts, but nothing that makes a session hands any
on. So the gateway is made here, and the session finds it there.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import IO


def start_java(settings: Mapping[str, str], log: IO[bytes]) -> None:
    """Start the JVM that this process's sessions run in, if there is none yet; what it says goes to the log.

    The settings are those of the session to come: some, as the memory of the driver, count only when Java starts.
    """
    from pyspark import SparkConf, SparkContext
    from pyspark.java_gateway import launch_gateway

    if SparkContext._gateway is not None:
        return
    conf = SparkConf()
    for name, value in settings.items():
        conf.set(name, value)
    SparkContext._ensure_initialized(gateway=launch_gateway(conf, {"stderr": log}), conf=conf)
