"""Another strategy, or other options of it, while a broker runs.

What may change is the strategy and the tables `merging`, `subsumption`, `pruning` and `adaptive`: what a broker makes
of others' entries by itself. Neighbours needn't have the same, so brokers may change one after the other. A broker's
tables follow when there is time, and until then they are what they were, so nothing is lost meanwhile. Whether a
broker floods can't change while it runs: one that does tells its neighbours nothing, so all of them must.

The file of a broker is followed when it is read again (`reloads.py`); a program calls `Server.reroute`. Nothing is
journalled, since the file says the same when the broker is started again.
"""

from __future__ import annotations

import logging
from dataclasses import replace
from typing import Any

from covey.network.configuration import ServerConfig
from covey.network.configuration_file import read_routing
from covey.network.engine import Engine
from covey.network.load_meter import LoadMeter
from covey.network.routing_options import REROUTED
from covey.routing.config import BrokerConfig, ConfigError
from covey.routing.strategies import PLANS

log = logging.getLogger("covey.network")


class Rerouting:
    """Changes how a broker routes."""

    def __init__(self, config: ServerConfig, engine: Engine, meter: LoadMeter) -> None:
        self._engine = engine
        self._meter = meter
        self._given = {name: getattr(config.broker, name) for name in REROUTED}
        """What was last asked for."""
        self._file = config
        try:
            self._listed: dict[str, Any] = read_routing(config)
        except ConfigError:
            self._listed = {}  # it was changed since it was read, and isn't whole now
        self._flags = {"strategy"} if self._listed.get("strategy", "covering") != config.broker.strategy else set()
        """Options that flags have given, which go before what the file says."""

    def read(self) -> dict[str, Any]:
        """What the file says by now, which can be followed; raises ConfigError."""
        listed = read_routing(self._file)
        self._checked(self._wanted(listed))
        return listed

    async def follow(self, listed: dict[str, Any]) -> None:
        """Route as the file says, if that has changed since it was last followed."""
        if listed != self._listed:
            await self.change(**self._wanted(listed))
            self._listed = listed

    def _wanted(self, listed: dict[str, Any]) -> dict[str, Any]:
        defaults = BrokerConfig("any")
        return {name: listed.get(name, getattr(defaults, name)) for name in REROUTED if name not in self._flags}

    async def change(self, **options: Any) -> None:
        """Route by these options and those that there are; raises ConfigError where they can't be."""
        config = self._checked(options)
        self._given |= options
        self._engine.reroute(config)
        await self._meter.follow(config)
        log.info("routes by %s from now on; tables follow", config.strategy)

    def _checked(self, options: dict[str, Any]) -> BrokerConfig:
        unknown = sorted(options.keys() - set(REROUTED))
        if unknown:
            raise ConfigError(f"{unknown[0]} can't change while a broker runs; what can is {', '.join(REROUTED)}")
        before = self._engine.broker.config
        config = replace(before, **{**self._given, **options})
        if PLANS[before.strategy].floods != PLANS[config.strategy].floods:
            raise ConfigError(
                f"the strategy can't change from {before.strategy} to {config.strategy} while a broker runs, since "
                "brokers flood all together or not at all; start all of them again"
            )
        return config
