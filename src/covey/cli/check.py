"""`covey check`: which rules of a file load, which don't and why, and which are odd.

A file has rows with an id and a filter, as everywhere. A directory, and a file of YAML, has one rule a file, as Sigma's
and EventBridge's rules are kept; its id is the file's path.
"""

from __future__ import annotations

import json
import re
from collections.abc import Hashable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from covey.cli.arguments import BATCH_SIZE, CheckOptions
from covey.cli.events import EventFile
from covey.cli.subscriptions import SubscriptionFile, is_held, schema_of
from covey.cli.terminal import complain, one_line, unwatched
from covey.errors import CoveyError, FilterSyntaxError
from covey.events import Schema
from covey.events.files import source, sources, table_columns
from covey.events.meaning import Meaning
from covey.filters import Filter
from covey.filters.fitting import UNTYPED
from covey.language import from_json, parse
from covey.matching import Index
from covey.matching.against import Seen, findings
from covey.matching.bulk.rule_files import are_files, rule_texts
from covey.matching.table_columns import TableColumns, converted

_REPAIRS: Final = 16
"""Mistakes that are mended in one rule."""
_MENDED: Final = frozenset({"sql", "cesql", "jms", "amqp"})
"""Dialects whose mistakes are mended: those that are like SQL."""
_WORDS: Final = {"=>": ">=", "=<": "<=", "===": "=", "!==": "!=", "==": "=", "&&": "AND"}
_EQUAL: Final = "is equal"
MOST_EQUAL: Final = 20
"""Rules that are equal to another, of which a line says so."""
_LONGEST: Final = max(map(len, _WORDS))
_QUOTES: Final = str.maketrans({"‘": "'", "’": "'", "“": "'", "”": "'"})


@dataclass(slots=True)
class Rule:
    """A rule as it was found, and what came of it."""

    id: str
    place: str
    given: Any
    condition: Filter | None = None
    error: str | None = None
    mended: str | None = None
    notes: list[str] = field(default_factory=list)

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        sql = None if self.condition is None else str(self.condition)
        shown = {"id": self.id, "place": self.place, "loads": self.condition is not None, "sql": sql}
        more = {"error": self.error, "mended": self.mended, "notes": self.notes or None}
        return shown | {name: value for name, value in more.items() if value is not None}


def run(options: CheckOptions) -> int:
    """Check rules; 1 if some don't load."""
    schema = _table(options.table) if options.table is not None else schema_of(options)
    checker = Index(semantics=options.semantics or "sql", schema=schema)
    rules = list(_rules(options))
    for rule in rules:
        _load(rule, options, checker, schema)
    _mark_twice(rules)
    undecided = _examine(rules, Meaning(options.semantics or "sql", None, schema))
    if options.events:
        _hold_against(rules, options, schema)
    for line in (json.dumps(rule.to_dict(), ensure_ascii=False) for rule in rules) if options.json else _lines(rules):
        print(line)
    if options.fix is not None:
        _write(rules, options.fix)
    bad = sum(rule.condition is None for rule in rules)
    if not options.json:
        print(_summary(rules, bad, undecided))
    return 1 if bad else 0


def _rules(options: CheckOptions) -> Iterator[Rule]:
    if are_files(options.rules) and options.format is None:
        for name, file, text in rule_texts(options.rules):
            wrong = str(text) if isinstance(text, CoveyError) else None
            yield Rule(name, str(file), "" if wrong else text, error=wrong)
        return
    given = source(options.rules, options.format, "--format")
    rows = SubscriptionFile(given, options)
    for place, id, condition in rows.rows():
        yield Rule(str(id) if isinstance(id, (str, int)) and id != "" else "", f"{given.name} {place}", condition)


def _load(rule: Rule, options: CheckOptions, checker: Index, schema: Schema | None) -> None:
    if rule.error is not None:
        return
    try:
        if not rule.id:
            raise CoveyError("no id")
        read = _read(rule, options)
        rule.condition = checker.check(read if schema is None or options.dialect not in UNTYPED else schema.fit(read))
    except CoveyError as error:
        rule.condition, rule.error = None, one_line(error)
        return
    if options.table is not None and schema is not None:
        lacking = sorted(rule.condition.attributes() - set(schema.attributes))
        if lacking:
            rule.condition, rule.error = None, f"the table has no column {', '.join(lacking)}"


def _read(rule: Rule, options: CheckOptions) -> Filter:
    if rule.given is None:
        raise CoveyError(f"no {options.filter_column!r}")
    if not isinstance(rule.given, str):
        return (
            from_json(rule.given) if options.dialect != "eventbridge" else parse(json.dumps(rule.given), "eventbridge")
        )
    try:
        return parse(rule.given, options.dialect)
    except FilterSyntaxError as error:
        mended = _mended(rule.given, options.dialect, error) if options.dialect in _MENDED else None
        if mended is None:
            raise
        condition = parse(mended, options.dialect)
        if options.fix is None:
            raise CoveyError(f"{one_line(error)}; --fix would write {mended}") from None
        rule.mended = mended
        return condition


def _mended(text: str, dialect: str, error: FilterSyntaxError) -> str | None:
    """The text with mistakes mended whose remedy is plain; None where there are others."""
    for _ in range(_REPAIRS):
        repaired = _repaired(text, error.position)
        if repaired is None:
            return None
        try:
            parse(repaired, dialect)
        except FilterSyntaxError as another:
            if repaired == text:
                return None
            text, error = repaired, another
        except CoveyError:
            return None
        else:
            return repaired
    return None


def _repaired(text: str, position: int) -> str | None:
    """One mistake mended: the operator of another language, quotes that a word processor made, the rest of a query."""
    for start in range(max(position - _LONGEST + 1, 0), position + 1):  # the error may be at a later character of it
        for wrong, right in _WORDS.items():
            if text.startswith(wrong, start) and position < start + len(wrong):
                return f"{text[:start].rstrip()} {right} {text[start + len(wrong) :].lstrip()}"
    if text.translate(_QUOTES) != text:
        return text.translate(_QUOTES)
    where = re.match(r"\s*where\b\s*", text, re.IGNORECASE)
    if where is not None:
        return text[where.end() :]
    if text.rstrip().endswith(";"):
        return text.rstrip().rstrip(";").rstrip()
    return None


def _mark_twice(rules: list[Rule]) -> None:
    seen: dict[str, Rule] = {}
    for rule in rules:
        first = seen.setdefault(rule.id, rule)
        if first is not rule and rule.error is None:
            rule.condition, rule.error = None, f"the id stands in {first.place} too, and the first counts"


def _examine(rules: list[Rule], meaning: Meaning) -> int:
    from covey.relations.examining import examine

    loaded: dict[Hashable, Filter] = {rule.id: rule.condition for rule in rules if rule.condition is not None}
    found = examine(loaded, meaning)
    by_id = {rule.id: rule for rule in rules if rule.condition is not None}
    for id in found.never:
        by_id[str(id)].notes.append("can never match")
    for id in found.always:
        by_id[str(id)].notes.append("always matches")
    for first, *others in found.equal:
        for id in others:
            by_id[str(id)].notes.append(f"{_EQUAL} to {first!r}")
    return found.undecided


def _hold_against(rules: list[Rule], options: CheckOptions, schema: Schema | None) -> None:
    """Note which rules can't fire on the events that there are."""
    loaded = {rule.id: rule for rule in rules if rule.condition is not None}
    index = Index(semantics=options.semantics or "sql", schema=schema)
    index.add_many([(id, rule.condition) for id, rule in loaded.items()])
    files = sources(options.events, options.events_format, "--events-format", xml=True)
    tables = table_columns(files) if is_held(options) and schema is None else None
    if tables is not None:
        index, unread = converted(index, TableColumns(tables))
        for bad in unread:
            loaded.pop(str(bad.id)).notes.append(f"can't fire on these events: {one_line(bad.error)}")
    seen = Seen(index.tested, schema)
    for given in files:
        events = EventFile(given, index, batch_size=BATCH_SIZE, skip=True, step=unwatched, schema=schema)
        for batch in events.batches():
            seen.look(batch.events)
        events.report.end()
    rows = [(id, index.filter(id)) for id in loaded]
    for one in findings(rows, seen, index.semantics, contradictions=False):
        if one.why != "contradiction":  # which is noted already
            loaded[one.id].notes.append(f"can't fire on these events: {one.message}")


def _lines(rules: list[Rule]) -> Iterator[str]:
    """What is wrong first, what is odd behind it, and what is equal, of which there may be much, last and not all."""
    said: list[list[str]] = [[], [], [], []]
    for rule in rules:
        name = f"{rule.place}: rule {rule.id!r}"
        if rule.error is not None:
            said[0].append(f"{name} doesn't load: {rule.error}")
        if rule.mended is not None:
            said[1].append(f"{name} was mended: {rule.mended}")
        for note in rule.notes:
            said[3 if note.startswith(_EQUAL) else 2].append(f"{name} {note}")
    wrong, mended, odd, equal = said
    yield from (*wrong, *mended, *odd, *equal[:MOST_EQUAL])
    if len(equal) > MOST_EQUAL:
        yield f"and {len(equal) - MOST_EQUAL:,} more rules are equal to another; --json names them all"


def _summary(rules: list[Rule], bad: int, undecided: int) -> str:
    notes = [note for rule in rules for note in rule.notes]
    counts = {
        "can never match": notes.count("can never match"),
        "always match": notes.count("always matches"),
        "are equal to another": sum(note.startswith(_EQUAL) for note in notes),
        "can't fire on these events": sum(note.startswith("can't fire") for note in notes),
        "were mended": sum(rule.mended is not None for rule in rules),
    }
    shown = [f"{count:,} {what}" for what, count in counts.items() if count]
    rest = f"; {', '.join(shown)}" if shown else ""
    left = f"; {undecided:,} are too large to be held against others" if undecided else ""
    return f"{len(rules):,} rules: {len(rules) - bad:,} load, {bad:,} don't{rest}{left}"


def _write(rules: list[Rule], path: str) -> None:
    """The rules that load, as SQL, one JSON object a line."""
    with open(path, "w", encoding="utf-8") as file:
        for rule in rules:
            if rule.condition is not None:
                file.write(json.dumps({"id": rule.id, "filter": str(rule.condition)}, ensure_ascii=False) + "\n")
    complain(f"{path} has the rules that load, as SQL")


def _table(path: str) -> Schema:
    """The columns of a Parquet file, or of the first one in a directory, as a schema."""
    import pyarrow as pa
    from pyarrow import parquet

    given = Path(path)
    files = sorted(given.rglob("*.parquet")) if given.is_dir() else [given]
    if not files:
        raise CoveyError(f"{path}: no Parquet file in it, whose columns could be read")
    try:
        return Schema.infer(parquet.read_schema(files[0]))
    except pa.ArrowInvalid as error:
        raise CoveyError(f"{files[0]}: not Parquet: {one_line(error)}") from None
