"""How a broker routes, from a configuration file: the tables beside the name of the strategy.

profile = "stocks.profile"    # how likely filters are to match (`covey spark profile`)

[merging]                     # strategy = "merging"
imt = 0.1                     # imperfect merging threshold
measure = "traffic"           # it bounds degree times chance; "degree": the degree alone
every = 60.0                  # when to merge: the rules of covey.relations.merging.MergingPolicy
[merging.advertisements]      # when to merge advertisements
at_arrivals = 16

[subsumption]                 # strategy = "subsumption"
approximate = false           # true: at most k rectangles more a filter; also metric, dynamic_threshold
rebuild_after = 1000          # filters that went after which all is computed anew
[subsumption.space]           # the attributes that count; without bounds they hold all values of their kind
price = {kind = "number"}   # also low, high and optional
company = {values = ["IBM", "Dell"]}

[pruning]                     # needs a profile
dimension = "network"         # or memory, throughput; auto: what the broker has least left of
share = 0.5                   # of all prunings; with auto it is searched for

[adaptive]                    # adaptive filtering; empty for the defaults
stop_above = 0.9
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import fields, replace
from pathlib import Path
from typing import Any, Final, TypeVar, get_type_hints

import msgspec

from covey.history import Profile
from covey.relations.merging import MergingPolicy
from covey.relations.subsumption import Dimension, Instant, Integer, Nominal, Number, Space
from covey.routing.config import AdaptiveFiltering, ConfigError, MergingOptions, PruningOptions, SubsumptionOptions

NAMES: Final = ("strategy", "semantics", "advertisements", "meta_events")
"""Options that are taken as they are."""
TABLES: Final = ("merging", "subsumption", "pruning", "adaptive", "profile")
REROUTED: Final = ("strategy", "merging", "subsumption", "pruning", "adaptive")
"""Options that may change while a broker runs."""

_KINDS: Final[Mapping[str, Callable[..., Dimension]]] = {"number": Number, "integer": Integer, "instant": Instant}
Option = TypeVar("Option")


def routing_options(tables: Mapping[str, Any], directory: Path) -> dict[str, Any]:
    """What a file says on routing, as arguments of `BrokerConfig`."""
    options: dict[str, Any] = {name: tables[name] for name in NAMES if name in tables}
    if "profile" in tables:
        options["chances"] = Profile.open(directory / tables["profile"])
    if "merging" in tables:
        options["merging"] = _merging(tables["merging"])
    if "subsumption" in tables:
        options["subsumption"] = _subsumption(tables["subsumption"])
    if "pruning" in tables:
        options["pruning"] = _option(tables["pruning"], PruningOptions, "pruning")
    if "adaptive" in tables:
        options["adaptive"] = _option(tables["adaptive"], AdaptiveFiltering, "adaptive")
    return options


def _merging(given: Any) -> MergingOptions:
    policies = {"policy", "advertisements"}
    own = names_of(MergingOptions) - policies
    check_names(given, {*own, "advertisements", *names_of(MergingPolicy)}, "merging.")
    rules = {name: value for name, value in given.items() if name not in own | policies}
    options = _option({name: value for name, value in given.items() if name in own}, MergingOptions, "merging")
    if rules:
        options = replace(options, policy=_option(rules, MergingPolicy, "merging"))
    if "advertisements" in given:
        told = _option(given["advertisements"], MergingPolicy, "merging.advertisements")
        options = replace(options, advertisements=told)
    return options


def _subsumption(given: Any) -> SubsumptionOptions:
    check_names(given, names_of(SubsumptionOptions), "subsumption.")
    space = given.get("space")
    if not isinstance(space, dict):
        raise ConfigError("[subsumption] needs a table space: the attributes that count, each with kind or values")
    hints = get_type_hints(SubsumptionOptions)
    options: dict[str, Any] = {}
    for name in sorted(given.keys() - {"space"}):
        try:
            options[name] = msgspec.convert(given[name], hints[name])
        except msgspec.ValidationError as error:
            raise ConfigError(f"subsumption.{name} is {given[name]!r}: {error}") from None
    dimensions = [_dimension(attribute, one) for attribute, one in space.items()]
    return SubsumptionOptions(Space(dimensions), **options)


def _dimension(attribute: str, given: Any) -> Dimension:
    where = f"subsumption.space.{attribute}."
    if isinstance(given, dict) and "values" in given:
        check_names(given, {"values", "other", "optional"}, where)
        return Nominal(attribute, **given)
    check_names(given, {"kind", "low", "high", "optional"}, where)
    bounds = dict(given)
    kind = bounds.pop("kind", None)
    if kind not in _KINDS:
        raise ConfigError(f"{where}kind is {kind!r}; use one of {', '.join(_KINDS)}, or give values")
    return _KINDS[kind](attribute, **bounds)


def _option(given: Any, kind: type[Option], table: str) -> Option:
    check_names(given, names_of(kind), f"{table}.")
    try:
        return msgspec.convert(given, kind)
    except msgspec.ValidationError as error:
        raise ConfigError(f"[{table}]: {error}") from None


def check_names(given: Any, names: Iterable[str], prefix: str) -> None:
    """Raises ConfigError where a table is none, or has names that nobody knows."""
    if not isinstance(given, dict):
        raise ConfigError(f"[{prefix[:-1]}] must be a table")
    known = frozenset(names)
    unknown = sorted(given.keys() - known)
    if unknown:
        raise ConfigError(
            f"{prefix}{unknown[0]} is not known; {prefix[:-1] or 'a broker'} has {', '.join(sorted(known))}"
        )


def names_of(kind: Any) -> frozenset[str]:
    """The names of a dataclass's fields."""
    return frozenset(field.name for field in fields(kind))
