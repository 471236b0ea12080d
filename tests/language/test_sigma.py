"""Sigma's detection rules: what each kind of value means, what is refused, and that the SQL means the same."""

import contextlib
import json
from importlib import import_module

import pytest
from tests.examples import examples

import covey
from covey.errors import FilterError, FilterSyntaxError, LimitError

pytest.importorskip("sigma", reason="pySigma is the extra sigma, which is not installed")

from hypothesis import assume, given, settings
from hypothesis import strategies as st


def rule(detection: str, service: str = "security") -> str:
    lines = "\n".join("    " + line for line in detection.splitlines())
    return f"title: A rule\nlogsource:\n    product: windows\n    service: {service}\ndetection:\n{lines}\n"


def parse(detection: str, service: str = "security") -> covey.Filter:
    condition = covey.parse(rule(detection, service), dialect="sigma")
    assert covey.parse(str(condition)) == condition
    return condition


@pytest.mark.parametrize(
    ("detection", "yes", "no"),
    [
        ("s:\n  Image: C:\\WIN*\\cmd.exe\ncondition: s", {"Image": "c:\\windows\\CMD.EXE"}, {"Image": "cmd.exe"}),
        ("s:\n  User: a?c\ncondition: s", {"User": "ABC"}, {"User": "abbc"}),
        ("s:\n  User: 'a\\*c'\ncondition: s", {"User": "A*C"}, {"User": "abc"}),
        ("s:\n  Line|contains: '100%_\\'\ncondition: s", {"Line": "at 100%_\\ now"}, {"Line": "at 1000_\\"}),
        ("s:\n  Line|startswith: net\ncondition: s", {"Line": "NET use"}, {"Line": "a net"}),
        ("s:\n  Line|endswith: exe\ncondition: s", {"Line": "a.EXE"}, {"Line": "exe.a"}),
        ("s:\n  Line|contains|all:\n  - a\n  - b\ncondition: s", {"Line": "xBxAx"}, {"Line": "aaa"}),
        ("s:\n  Line|cased: Net\ncondition: s", {"Line": "Net"}, {"Line": "net"}),
        ("s:\n  Line|re: 'n[eo]t\\d'\ncondition: s", {"Line": "a net1"}, {"Line": "a NET1"}),
        ("s:\n  Line|re|i: 'n[eo]t\\d'\ncondition: s", {"Line": "a NET1"}, {"Line": "net"}),
        ("s:\n  Line|windash|contains: ' -f'\ncondition: s", {"Line": "x /F y"}, {"Line": "x f"}),
        ("s:\n  Line|base64offset|contains: covey\ncondition: s", {"Line": "aa Y292ZX bb"}, {"Line": "covey"}),
        ("s:\n  EventID: 4688\ncondition: s", {"EventID": 4688}, {"EventID": 4689}),
        ("s:\n  EventID: 4688\ncondition: s", {"EventID": "4688"}, {"EventID": "4688a"}),
        ("s:\n  EventID: '4688'\ncondition: s", {"EventID": 4688}, {}),
        ("s:\n  Size|gte: 10\ncondition: s", {"Size": 10}, {"Size": 9}),
        ("s:\n  Size|lt: 10\ncondition: s", {"Size": 9.5}, {"Size": 10}),
        ("s:\n  Size|gte: 10\ncondition: s", {"Size": "12"}, {"Size": "9"}),
        ("s:\n  Pid|startswith: '12'\ncondition: s", {"Pid": 1234}, {"Pid": 2123}),
        ("s:\n  Pid|startswith: '12'\ncondition: s", {"Pid": "1234"}, {"Pid": "2123"}),
        ("s:\n  ip|cidr: 10.0.0.0/8\ncondition: s", {"ip": "10.1.2.3"}, {"ip": "11.1.2.3"}),
        ("s:\n  a|fieldref: b\ncondition: s", {"a": "X", "b": "x"}, {"a": "x"}),
        ("s:\n  a|fieldref: b\ncondition: s", {"a": 5, "b": "5"}, {"a": 5, "b": "6"}),
        ("s:\n  a|fieldref|startswith: b\ncondition: s", {"a": "Xyz", "b": "x"}, {"a": "yx", "b": "x"}),
        ("s:\n  a|fieldref|endswith: b\ncondition: s", {"a": "yzX", "b": "x"}, {"a": "xy", "b": "x"}),
        ("s:\n  a|fieldref|contains: b\ncondition: s", {"a": "yXz", "b": "x"}, {"a": "yz", "b": "x"}),
        ("s:\n  t|hour: 5\ncondition: s", {"t": "2024-01-01 05:10:00"}, {"t": "2024-01-01 06:10:00"}),
        ("s:\n  Flag: true\ncondition: s", {"Flag": True}, {"Flag": False}),
        ("s:\n  Flag: true\ncondition: s", {"Flag": "True"}, {"Flag": "yes"}),
        ("s:\n  Flag: 'True'\ncondition: s", {"Flag": True}, {"Flag": False}),
        ("s:\n  Field: null\ncondition: s", {}, {"Field": ""}),
        ("s:\n  Field|exists: true\ncondition: s", {"Field": ""}, {}),
        ("s:\n  Field|exists: false\ncondition: s", {}, {"Field": 1}),
        ("s:\n  a.b: x\ncondition: s", {"a": {"b": "X"}}, {"a": {"b": "y"}}),
        ("s:\n  - a: x\n  - b: y\ncondition: s", {"b": "y"}, {"a": "y", "b": "x"}),
        ("s:\n  a: x\nf:\n  b: y\ncondition: s and not f", {"a": "x"}, {"a": "x", "b": "y"}),
        ("s:\n  a: x\nf:\n  b: y\ncondition: s and not f", {"a": "x", "b": 5}, {"b": "z"}),
        ("s1:\n  a: x\ns2:\n  b: y\ncondition: 1 of s*", {"b": "Y"}, {"a": "y"}),
        ("s1:\n  a: x\ns2:\n  b: y\ncondition: all of them", {"a": "x", "b": "y"}, {"a": "x"}),
        ("k:\n  - mimikatz\ncondition: k", {"message": "run MimiKatz now"}, {"message": "run"}),
        ("k:\n  - mimikatz\ncondition: k", {"p": {"args": ["x", "MimiKatz"]}}, {"mimikatz": "x"}),
        ("k:\n  '|all':\n  - mimi\n  - 4688\ncondition: k", {"a": "Mimi", "id": 4688}, {"a": "mimi", "id": 4689}),
        ("k:\n  - a*c\n  - '|re'\ncondition: k", {"q": "x ABBC y"}, {"q": "acb"[::-1]}),
        ("k:\n  '|re': 'fo+\\d'\ncondition: k", {"q": "a foo1"}, {"q": "FOO1"}),
        ("s:\n  Image: x\nk:\n  - bad\ncondition: s and not k", {"Image": "x"}, {"Image": "x", "z": "so BAD"}),
        ("s:\n  Pid: '*'\ncondition: s", {"Pid": 5}, {}),
        ("s:\n  Pid: '1?'\ncondition: s", {"Pid": 12}, {"Pid": 123}),
        ("s:\n  Line|contains: '5\\%'\ncondition: s", {"Line": "at 5\\%x"}, {"Line": "at 5\\"}),
    ],
)
def test_values_mean_what_sigma_means(detection: str, yes: dict[str, object], no: dict[str, object]) -> None:
    condition = parse(detection)
    assert condition.matches(yes)
    assert not condition.matches(no)


def test_defender_s_names_have_spaces_in_its_log() -> None:
    detection = "s:\n  ThreatName|contains: EICAR\ncondition: s"
    assert parse(detection, "windefend").matches({"Threat Name": "eicar"})
    assert not parse(detection).matches({"Threat Name": "eicar"})


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("title: x", "detection"),
        ("a: [", "not YAML"),
        ("- 1", "mapping"),
        ("a: 1\n---\nb: 2", "2 documents"),
        ("", "no document"),
        ("a: &x [1]\nb: *x", "aliases"),
        ("title: x\ncorrelation:\n  type: event_count", "correlations are not supported"),
        (rule("s:\n  a: x\ncondition: s | count() > 5"), "pySigma refuses"),
        (rule("s:\n  a: x\ncondition: t"), "pySigma refuses"),
        (rule("s:\n  a|nothing: x\ncondition: s"), "pySigma refuses"),
        (rule("s:\n  a|re: '(?=x)y'\ncondition: s"), "invalid perl operator"),
        (rule("s:\n  a|expand: '%admins%'\ncondition: s"), "placeholder"),
        (rule("s:\n  a: x\ncondition: [1, 2]"), "condition"),
    ],
)
def test_what_is_no_rule_is_refused_in_one_line(text: str, message: str) -> None:
    with pytest.raises(FilterSyntaxError, match=message) as error:
        covey.parse(text, dialect="sigma")
    assert "\n" not in error.value.message


def test_large_rules_are_refused_by_the_limit_s_name() -> None:
    with pytest.raises(LimitError, match="RULE_LENGTH"):
        covey.parse("a" * (1 << 21), dialect="sigma")
    with pytest.raises(LimitError, match="CONDITION_DEPTH"):
        parse("s:\n  a: x\ncondition: " + "(" * 50 + "s" + ")" * 50)
    with pytest.raises(LimitError, match="pattern_length"):
        parse("s:\n  a: " + "x" * 2000 + "*\ncondition: s")


@settings(max_examples=examples(60), deadline=None)
@given(st.text(max_size=40), st.sampled_from(["", "|contains", "|re", "|startswith", "|gt", "|cidr", "|base64"]))
def test_any_value_is_a_filter_or_one_line(value: str, modifier: str) -> None:
    text = rule(f"s:\n  f{modifier}: {json.dumps(value)}\ncondition: s")
    try:
        condition = covey.parse(text, dialect="sigma")
    except FilterError as error:
        said = error.message if isinstance(error, FilterSyntaxError) else str(error)
        assume("\n" in said)
        raise
    assert covey.parse(str(condition)) == condition


@settings(max_examples=examples(60), deadline=None)
@given(st.text(max_size=200))
def test_any_text_is_a_filter_or_refused(text: str) -> None:
    with contextlib.suppress(FilterError):
        covey.parse(text, dialect="sigma")


def test_pysigma_finds_the_backend_and_writes_sql() -> None:
    from sigma.collection import SigmaCollection
    from sigma.exceptions import SigmaFeatureNotSupportedByBackendError

    backend = import_module("sigma.backends.covey").CoveyBackend  # where pySigma looks for backends
    rules = SigmaCollection.from_yaml(rule("s:\n  a|contains: X\nf:\n  b: 1\ncondition: s and not f"))
    assert backend().convert(rules) == ["a ILIKE '%X%' AND (b = 1 OR b = '1') IS NOT TRUE"]
    both = """
title: Many
name: many
logsource: {category: x}
detection: {s: {a: b}, condition: s}
---
title: Count
correlation: {type: event_count, rules: [many], group-by: [u], timespan: 5m, condition: {gte: 10}}
"""
    with pytest.raises(SigmaFeatureNotSupportedByBackendError, match="correlations are not supported"):
        backend().convert(SigmaCollection.from_yaml(both))
