"""Rules and events of the workload `sigma`.

The rules are 300 of SigmaHQ's, which are looked for where `tools.conformance` looks. Copy k of a rule has every word
of its texts put through the k-th exchange of letters, and an event that is meant for copy k the same; so copies are as
hard to tell apart as rules are, and an event's matches stay as many however many copies there are. A copy that came out
as the rule itself (numbers alone, or texts that an exchange would spoil) is left out, and others take its place; so are
copies of rules that match other copies' events, by what no exchange changes (`contains 'aaa'`, or what isn't there).
Rules on Defender's log are left out too: covey looks for their names with spaces as well, as that log has them, and
other engines don't.
"""

from __future__ import annotations

import json
import random
import re
import string
from collections.abc import Iterator
from copy import deepcopy
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import yaml
from tools.conformance import suites

SPOILED = ("base64", "utf16", "wide", "re", "cidr", "expand", "fieldref", "windash", "exists", "gt", "lt")
"""Modifiers whose values aren't searched for as they stand."""
_WORD = re.compile("[A-Za-z]{4,}")
_QUOTED = re.compile("'(?:[^']|'')*'")
NOISE = 0.5
"""The share of events that are meant for no rule."""
_TRIED = 4_000
"""Events that copies are tried on."""
_BINARIES = ("explorer", "chrome", "teams", "outlook", "svchost", "python", "code", "git", "java", "node", "backup")


@dataclass(frozen=True)
class Rule:
    """A rule as YAML has it, and as covey reads it."""

    document: dict[str, Any]
    sql: str


@lru_cache(maxsize=4096)
def exchange(copy: int) -> dict[int, int]:
    """The letters of a copy; those of copy 0 are as they are."""
    letters = list(string.ascii_lowercase)
    if copy:
        random.Random(copy).shuffle(letters)
    changed = "".join(letters)
    return str.maketrans(string.ascii_letters, changed + changed.upper())


def varied(text: str, copy: int) -> str:
    """A text with the letters of its words exchanged."""
    return _WORD.sub(lambda found: found[0].translate(exchange(copy)), text) if copy else text


def base_rules() -> list[Rule]:
    """SigmaHQ's rules that covey takes; none where they aren't on this machine."""
    from covey import CoveyError, parse

    place = suites()
    found = []
    for path in sorted((place / "sigma" / "rules").glob("*.yml")) if place is not None else ():
        text = path.read_text()
        document = yaml.safe_load(text)
        if document["logsource"].get("service") == "windefend":
            continue
        try:
            found.append(Rule(document, str(parse(text, dialect="sigma"))))
        except CoveyError:
            continue
    return found


def _is_spoiled(value: Any) -> bool:
    if isinstance(value, dict):
        return any(
            any(modifier.startswith(SPOILED) for modifier in str(key).split("|")[1:]) or _is_spoiled(inner)
            for key, inner in value.items()
        )
    return isinstance(value, list) and any(map(_is_spoiled, value))


def _varied_value(value: Any, copy: int) -> Any:
    if isinstance(value, dict):
        return {key: _varied_value(inner, copy) for key, inner in value.items()}
    if isinstance(value, list):
        return [_varied_value(inner, copy) for inner in value]
    return varied(value, copy) if isinstance(value, str) else value


def varied_sql(sql: str, copy: int) -> str:
    """A filter with the letters of its texts exchanged."""
    return _QUOTED.sub(lambda quoted: varied(quoted[0], copy), sql) if copy else sql


def _confused(base: list[Rule]) -> set[int]:
    """Which rules have a copy that matches events of the rules themselves."""
    from covey import Index

    index = Index()
    index.add_many((f"{n} {copy}", varied_sql(rule.sql, copy)) for n, rule in enumerate(base) for copy in (1, 2))
    fired = index.match_json_lines("\n".join(events(_TRIED, 1, seed=2)).encode()).fired()
    return {int(id.split()[0]) for id in fired}


def copies(base: list[Rule], count: int) -> Iterator[tuple[int, Rule, str]]:
    """Rules up to a count: the number of the copy, the rule, and its SQL."""
    confused = _confused(base)
    firm = [not _is_spoiled(rule.document["detection"]) and n not in confused for n, rule in enumerate(base)]
    copy = made = 0
    while made < count:
        for rule, varies in zip(base, firm, strict=True):
            sql = varied_sql(rule.sql, copy)
            if copy and (not varies or sql == rule.sql):
                continue
            if made == count:
                return
            yield copy, rule, sql
            made += 1
        copy += 1


def copied(rule: Rule, copy: int, number: int) -> dict[str, Any]:
    """A copy as a rule of its own in YAML's terms."""
    found = deepcopy(rule.document)
    found["id"] = f"00000000-0000-4000-8000-{number:012d}"
    found["title"] = f"rule {number}"
    condition = found["detection"].pop("condition")
    found["detection"] = {**_varied_value(found["detection"], copy), "condition": condition}
    for name in ("related", "references"):
        found.pop(name, None)
    return found


def events(count: int, most_copies: int, seed: int = 1) -> list[str]:
    """Events of about 1 KB as lines of JSON, half of them meant for a copy of some rule."""
    place = suites()
    assert place is not None
    with (place / "sigma" / "events.jsonl").open() as lines:
        given = [json.loads(line)["event"] for line in lines]
    rng = random.Random(seed)
    made = []
    for _ in range(count):
        if rng.random() < NOISE:
            event = _noise(rng)
        else:
            copy = rng.randrange(most_copies)
            event = {
                name: varied(value, copy) if isinstance(value, str) else value
                for name, value in rng.choice(given).items()
            }
            if isinstance(event.get("CommandLine"), str) and rng.random() < 0.7:
                event["CommandLine"] += " " + _words(rng, 4)
        event.setdefault("CommandLine", f'"C:\\Tools\\{_word(rng)}.exe" {_words(rng, 12)}')
        event["Hashes"] = f"SHA256={rng.getrandbits(256):064X},IMPHASH={rng.getrandbits(128):032X}"
        event["RecordNumber"] = rng.getrandbits(40)
        event["Message"] = _words(rng, 50)
        made.append(json.dumps(event))
    return made


def _noise(rng: random.Random) -> dict[str, Any]:
    binary = rng.choice(_BINARIES)
    folder = f"C:\\Program Files\\{_word(rng).capitalize()}\\{_word(rng)}"
    return {
        "EventID": 1,
        "Image": f"{folder}\\{binary}.exe",
        "OriginalFileName": f"{binary}.exe",
        "CommandLine": f'"{folder}\\{binary}.exe" --{_word(rng)} {_words(rng, 12)}',
        "ParentImage": f"C:\\Windows\\{_word(rng)}.exe",
        "ParentCommandLine": f"{_word(rng)}.exe -k {_words(rng, 4)}",
        "CurrentDirectory": f"C:\\Users\\{_word(rng)}\\",
        "User": f"CORP\\{_word(rng)}",
        "IntegrityLevel": "Medium",
        "ProcessId": rng.randrange(70_000),
    }


def _word(rng: random.Random) -> str:
    return "".join(rng.choices(string.ascii_lowercase, k=rng.randrange(4, 10)))


def _words(rng: random.Random, count: int) -> str:
    return " ".join(_word(rng) for _ in range(count))


def write_rules(directory: Path, base: list[Rule], count: int) -> None:
    """Copies as YAML, a thousand a file, for engines that read Sigma."""
    documents = [copied(rule, copy, number) for number, (copy, rule, _) in enumerate(copies(base, count))]
    for first in range(0, len(documents), 1000):
        part = documents[first : first + 1000]
        text = yaml.dump_all(
            part, sort_keys=False, allow_unicode=True, Dumper=getattr(yaml, "CSafeDumper", yaml.Dumper)
        )
        (directory / f"rules{first:07d}.yml").write_text(text)
