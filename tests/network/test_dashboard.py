"""Every query of the Grafana dashboard, held against what running brokers say at /metrics."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import aiohttp
import pytest
from prometheus_client.parser import text_string_to_metric_families

from covey.network import Server, connect
from covey.routing.config import PruningOptions
from covey.simulation.uniform_chances import UniformChances
from tests.docs.pages import ROOT
from tests.docs.tables import tables
from tests.network.running import broker, http, in_loop, linked, until

DASHBOARD = ROOT / "deploy" / "grafana.json"
ADDED = {"instance", "job"}
"""Labels that Prometheus gives what it reads."""
RATES = {"rate", "increase"}
TOKEN = re.compile(
    r"""\s*(?:(?P<number>[0-9.]+)|(?P<name>[a-z_]\w*)|(?P<labels>\{[^}]*\})|(?P<range>\[\$__rate_interval\])"""
    r"""|(?P<sign>[-+*/(),]))"""
)


@dataclass(frozen=True)
class Asked:
    """A metric in a query: by which function it is taken, and which labels are asked for."""

    metric: str
    function: str
    labels: frozenset[str]


def asked_in(query: str) -> Iterator[Asked]:
    """The metrics of a query; raises ValueError for what isn't one of the few forms that the dashboard has."""
    tokens: list[tuple[str, str]] = []
    at = 0
    while at < len(query):
        found = TOKEN.match(query, at)
        if found is None or not found.lastgroup:
            raise ValueError(f"{query}: can't be read at {query[at:]!r}")
        tokens.append((found.lastgroup, found[found.lastgroup]))
        at = found.end()
    if [text for _, text in tokens].count("(") != [text for _, text in tokens].count(")"):
        raise ValueError(f"{query}: brackets")
    by: set[str] = set()
    functions: list[str] = []
    tokens.append(("end", ""))
    places = iter(range(len(tokens) - 1))
    for place in places:
        kind, text = tokens[place]
        if kind != "name":
            if text == "(":
                functions.append("")
            elif text == ")":
                functions.pop()
            continue
        following = tokens[place + 1]
        if text == "by":
            end = next(later for later in range(place, len(tokens)) if tokens[later][1] == ")")
            by |= {name for named, name in tokens[place:end] if named == "name"} - {"by"}
            for _ in range(place, end):
                next(places)
        elif text == "sum" and following == ("name", "by"):
            continue
        elif following[1] == "(":
            if text not in {*RATES, "histogram_quantile"}:
                raise ValueError(f"{query}: {text} isn't a function that is known here")
            functions.append(text)
            next(places)
        else:
            if following[0] != "labels":
                raise ValueError(f"{query}: {text} is of all brokers, whatever is chosen")
            matched = {part.split("=", 1)[0].strip() for part in following[1][1:-1].split(",")}
            if "instance" not in matched:
                raise ValueError(f"{query}: {text} is of all brokers, whatever is chosen")
            ranged = tokens[place + 2][0] == "range"
            function = functions[-1] if functions else ""
            if ranged != (function in RATES):
                raise ValueError(f"{query}: {text} needs {'a rate' if ranged else 'a range'}")
            yield Asked(text, function, frozenset(matched | by))


def queries() -> list[tuple[str, str, str]]:
    """Panel, query and legend."""
    found = json.loads(DASHBOARD.read_text(encoding="utf-8"))
    return [
        (panel["title"], target["expr"], target["legendFormat"])
        for panel in found["panels"]
        for target in panel.get("targets", ())
    ]


async def families(server: Server) -> dict[str, tuple[str, set[str]]]:
    """What /metrics says: of each sample's name, its type and its labels."""
    async with aiohttp.ClientSession() as session, session.get(f"{http(server)}/metrics") as response:
        text = await response.text()
    return {
        sample.name: (family.type, set(sample.labels))
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


@in_loop
async def test_every_query_of_the_dashboard_is_about_what_brokers_say() -> None:
    pruning = {"pruning": PruningOptions("auto"), "chances": UniformChances()}
    async with broker("a", {"b": ""}, **pruning) as a, broker("b", {"a": a.url}) as b:
        await until(lambda: linked(a, b))
        async with connect(b.url) as ann, connect(a.url) as pub:
            await ann.subscribe("x >= 0")
            await pub.publish([{"x": 1}])
            said = await families(a)
    asked = queries()
    assert len(asked) > 20
    for panel, query, legend in asked:
        found = list(asked_in(query))
        assert found, (panel, query)
        for one in found:
            assert one.metric in said, (panel, one.metric)
            kind, labels = said[one.metric]
            assert one.labels <= labels | ADDED, (panel, query)
            assert (one.function in RATES) == (kind in ("counter", "histogram")), (panel, query)
        shown = set(re.findall(r"\{\{(\w+)\}\}", legend))
        assert shown <= set.intersection(*(said[one.metric][1] for one in found)) | ADDED, (panel, legend)
    watched = {
        re.sub("_seconds$", "_seconds_bucket", row["metric"].strip("`"))
        for table in tables(ROOT / "docs" / "operations.md")
        for row in table
        if "metric" in row
    }
    assert watched == {one.metric for _, query, _ in asked for one in asked_in(query)}


def test_the_dashboard_asks_the_chosen_source_for_the_chosen_brokers() -> None:
    found: dict[str, Any] = json.loads(DASHBOARD.read_text(encoding="utf-8"))
    variables = {one["name"]: one for one in found["templating"]["list"]}
    assert variables["broker"]["query"]["query"] == "label_values(covey_clients, instance)"
    panels = [panel for panel in found["panels"] if panel["type"] != "row"]
    assert len({panel["id"] for panel in found["panels"]}) == len(found["panels"])
    for panel in panels:
        assert panel["datasource"] == {"type": "prometheus", "uid": "${datasource}"}
        place = panel["gridPos"]
        assert place["x"] + place["w"] <= 24


@pytest.mark.parametrize(
    "query",
    [
        "covey_clients",
        'rate(covey_clients{instance=~"$broker"})',
        'covey_clients{instance=~"$broker"}[$__rate_interval]',
        'avg(covey_clients{instance=~"$broker"})',
        'rate(covey_sent_total{peer="b"}[$__rate_interval])',
        'sum by (peer (covey_clients{instance=~"$broker"})',
        "covey_clients{instance=~'$broker'} @ 3",
    ],
)
def test_what_is_no_query_is_told_from_one(query: str) -> None:
    with pytest.raises(ValueError, match="covey_"):
        list(asked_in(query))
