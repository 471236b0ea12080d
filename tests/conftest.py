"""Hypothesis: the same examples in every `make test`, other ones in `make fuzz`; a busy machine is no failure.

Every Spark that a test starts, in whatever process, lives for seconds only: its Java needn't optimise what it runs.
"""

from __future__ import annotations

import os

from hypothesis import HealthCheck, settings

settings.register_profile("test", derandomize=True, deadline=None, suppress_health_check=list(HealthCheck))
settings.register_profile("fuzz", deadline=None, suppress_health_check=list(HealthCheck), print_blob=True)
settings.load_profile("fuzz" if "COVEY_FUZZ_EXAMPLES" in os.environ else "test")

os.environ.setdefault("SPARK_SUBMIT_OPTS", "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC")
