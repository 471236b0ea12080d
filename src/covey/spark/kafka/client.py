"""Kafka's client library, which is asked for only where it is used."""

from __future__ import annotations

import importlib
from typing import Any, Final

from covey.errors import CoveyError

SECONDS: Final = 30.0
"""How long a broker may take to answer."""


def kafka_client() -> Any:
    """The module `confluent_kafka`."""
    try:
        return importlib.import_module("confluent_kafka")
    except ImportError:
        raise CoveyError("confluent_kafka is not installed; pip install 'covey[kafka]'") from None


def failed(what: str, error: object) -> CoveyError:
    """One line for what Kafka's client says."""
    return CoveyError(f"Kafka, {what}: {' '.join(str(error).split())}")
