"""Sigma's rules beside an evaluator of pySigma's own tree: no event too few, and none too many."""

from __future__ import annotations

import ipaddress
import json
import random
import re
from collections.abc import Iterator
from typing import Any

import pytest
from tools.conformance import suites

import covey
from covey.errors import FilterError

pytest.importorskip("sigma", reason="pySigma is the extra sigma, which is not installed")

from sigma.conditions import (
    ConditionAND,
    ConditionFieldEqualsValueExpression,
    ConditionNOT,
    ConditionOR,
    ConditionValueExpression,
)
from sigma.rule import SigmaRule
from sigma.types import (
    CompareOperators,
    SigmaBool,
    SigmaCasedString,
    SigmaCIDRExpression,
    SigmaCompareExpression,
    SigmaExists,
    SigmaExpansion,
    SigmaFieldReference,
    SigmaNull,
    SigmaNumber,
    SigmaRegularExpression,
    SigmaRegularExpressionFlag,
    SigmaString,
    SpecialChars,
)

OWN = """
s:
  Image|endswith: ['\\\\cmd.exe', '\\\\pwsh.exe']
  CommandLine|contains|all: [' -enc ', 'a*b?c']
f:
  User: [SYSTEM, null, 'NT*\\\\*']
condition: s and not f
---
s1: {EventID: [4688, 1], Port|gte: 1024}
s2: {EventID: '4624', LogonType: 3}
s3: {Address|cidr: ['10.0.0.0/8', 'fe80::/10']}
condition: 1 of s* and not all of s*
---
s:
  Name|re: '^[a-f]+\\d?$'
  Other|re|i: 'x.y'
t: {Name|cased: Abc, Other|exists: true}
condition: s or t
---
k: [mimikatz, 'se*sa']
'n': {Flag: true, Count|lt: 5}
condition: k or (n and not k)
---
s: {A|fieldref: B, C|neq: x, D: '*', E: ''}
condition: s
---
s: {A|windash|contains: ' -f', B|base64offset|contains: secret, C|startswith: 'a\\*'}
condition: 1 of s* or not s
---
s:
  - {A: x, B|endswith: y}
  - C|contains: [50%, 'under_score', 'back\\\\slash']
condition: s
"""
HEAD = "title: A rule\nlogsource: {product: any}\ndetection:\n"


def text_of(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def pattern(value: SigmaString, *, around: bool = False) -> str:
    parts = [
        re.escape(part) if isinstance(part, str) else ".*" if part == SpecialChars.WILDCARD_MULTI else "."
        for part in value.s
    ]
    return f".*{''.join(parts)}.*" if around else "".join(parts)


def said(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        for inner in value.values():
            yield from said(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from said(inner)
    elif value is not None:
        yield text_of(value)


def meets(value: Any, wanted: Any, event: dict[str, Any]) -> bool:
    """Whether a field's value is one that is asked for."""
    if isinstance(wanted, SigmaExpansion):
        return any(meets(value, one, event) for one in wanted.values)
    if isinstance(wanted, SigmaNull):
        return value is None
    if isinstance(wanted, SigmaExists):
        return (value is not None) is bool(wanted.exists)
    if value is None:
        return False
    if isinstance(wanted, SigmaFieldReference):
        other = event.get(wanted.field)
        return other is not None and text_of(other).lower() == text_of(value).lower()
    if isinstance(wanted, SigmaString):
        flags = re.DOTALL if isinstance(wanted, SigmaCasedString) else re.DOTALL | re.IGNORECASE
        return re.fullmatch(pattern(wanted), text_of(value), flags) is not None
    if isinstance(wanted, SigmaNumber):
        return text_of(value) == text_of(wanted.number)
    if isinstance(wanted, SigmaBool):
        return text_of(value).lower() == text_of(wanted.boolean)
    if isinstance(wanted, SigmaRegularExpression):
        flags = re.IGNORECASE if SigmaRegularExpressionFlag.IGNORECASE in wanted.flags else 0
        return isinstance(value, str) and re.search(str(wanted.regexp), value, flags) is not None
    if isinstance(wanted, SigmaCIDRExpression):
        try:
            return ipaddress.ip_address(str(value)) in ipaddress.ip_network(wanted.cidr)
        except ValueError:
            return False
    assert isinstance(wanted, SigmaCompareExpression)
    try:
        number = float(value)
    except ValueError:
        return False
    limit = float(wanted.number.number)
    return {
        CompareOperators.LT: number < limit,
        CompareOperators.LTE: number <= limit,
        CompareOperators.GT: number > limit,
        CompareOperators.GTE: number >= limit,
    }[wanted.op]


def holds(node: Any, event: dict[str, Any]) -> bool:
    match node:
        case ConditionAND():
            return all(holds(part, event) for part in node.args)
        case ConditionOR():
            return any(holds(part, event) for part in node.args)
        case ConditionNOT():
            return not holds(node.args[0], event)
        case ConditionFieldEqualsValueExpression():
            return meets(field_of(event, node.field), node.value, event)
    assert isinstance(node, ConditionValueExpression)
    if isinstance(node.value, SigmaString):
        found = [re.compile(pattern(node.value, around=True), re.DOTALL | re.IGNORECASE)]
    else:
        found = [re.compile(f".*{node.value.number}.*", re.DOTALL)]
    return any(one.fullmatch("\n".join(said(event))) for one in found)


def field_of(event: dict[str, Any], name: str) -> Any:
    value: Any = event.get(name)
    if value is None and "." in name:
        head, _, rest = name.partition(".")
        inner = event.get(head)
        return field_of(inner, rest) if isinstance(inner, dict) else None
    return value


def leaves(node: Any) -> Iterator[Any]:
    if hasattr(node, "args"):
        for part in node.args:
            yield from leaves(part)
    else:
        yield node


def example(value: Any, draw: random.Random) -> Any:
    """A value that may meet what is asked for."""
    if isinstance(value, SigmaExpansion):
        return example(draw.choice(value.values), draw)
    if isinstance(value, SigmaString):
        filled = "".join(part if isinstance(part, str) else draw.choice(["", "q", "zz", "1"]) for part in value.s)
        return draw.choice([filled, filled.upper(), filled.lower(), filled + draw.choice("x1"), filled[1:]])
    if isinstance(value, SigmaNumber):
        return draw.choice([value.number, str(value.number), value.number + 1])
    if isinstance(value, SigmaCompareExpression):
        return draw.choice([value.number.number, value.number.number + 1, str(value.number.number)])
    if isinstance(value, SigmaCIDRExpression):
        return str(ipaddress.ip_network(value.cidr)[draw.randrange(2)])
    return draw.choice(["abc", "abc1", "aXcy", True, False, "true", "", 7, "x"])


def drawn(condition: Any, draw: random.Random) -> dict[str, Any]:
    """An event that has some of what a rule asks for."""
    event: dict[str, Any] = {}
    for leaf in leaves(condition):
        name = getattr(leaf, "field", None) or "said"
        if draw.random() < 0.75 and (name not in event or draw.random() < 0.3):
            event[name] = example(leaf.value, draw)
        other = getattr(leaf.value, "field", None)
        if other is not None and name in event:
            event[other] = draw.choice([event[name], str(event[name]).upper(), "else"])
    return event


def compare(texts: list[str], events: list[dict[str, Any]], draws: int) -> int:
    """Hold rules against the evaluator, on these events and on some made for each; how often they matched."""
    draw = random.Random(11)
    matched = 0
    index, kept = covey.Index(dialect="sigma"), []
    for number, text in enumerate(texts):
        condition = covey.parse(text, dialect="sigma")
        assert covey.parse(str(condition)) == condition
        conditions = [one.parsed for one in SigmaRule.from_yaml(text).detection.parsed_condition]
        kept.append(conditions)
        index.add(str(number), text)
        for event in [drawn(conditions[0], draw) for _ in range(draws)]:
            wanted = any(holds(one, event) for one in conditions)
            matched += wanted
            assert condition.matches(event) is wanted, (text, event, str(condition))
            events.append(event)
    wanted_ids = [
        {str(number) for number, conditions in enumerate(kept) if any(holds(one, event) for one in conditions)}
        for event in events
    ]
    assert [set(ids) for ids in index.match_batch(events).to_pylist()] == wanted_ids
    return matched


def test_own_rules_find_the_events_that_the_tree_finds() -> None:
    texts = [HEAD + "".join(f"  {line}\n" for line in one.strip().splitlines()) for one in OWN.split("---")]
    assert compare(texts, [], 60) > 50


@pytest.mark.thorough
def test_the_suite_s_rules_find_the_events_that_the_tree_finds() -> None:
    place = suites()
    if place is None:
        pytest.skip("SigmaHQ's rules are not here; COVEY_SUITES says where they are")
    texts = []
    for path in sorted((place / "sigma" / "rules").glob("*.yml")):
        text = path.read_text(encoding="utf-8")
        try:
            covey.parse(text, dialect="sigma")
        except FilterError:
            continue
        if "windefend" not in text:  # whose fields have names with spaces too
            texts.append(text)
    lines = (place / "sigma" / "events.jsonl").read_text(encoding="utf-8").splitlines()
    assert len(texts) > 280
    assert compare(texts, [json.loads(line)["event"] for line in lines], 1) > 30
