"""Tests on text: literals find the candidates, the rest is verified, and the answers are the interpreter's."""

from __future__ import annotations

import json
import logging
import random
from itertools import pairwise
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.examples import examples
from tests.predicate_table import lines

import covey
from covey.errors import CoveyError
from covey.filters import SEMANTICS, And, Filter, Not, Or, RLike, Semantics, attr, matches
from covey.filters.cases import lower
from covey.filters.patterns import ANY_TEXT, wildcard_automaton
from covey.matching import text_index as text_index_module
from covey.matching.expression_literals import expression_needs
from covey.matching.literals import ANYWHERE, END, IN_LOWER_CASE, START, WHOLE, Literal, Need, Needs
from covey.matching.text_index import every_literal
from covey.matching.verifying import in_order

WRITTEN = Path(__file__).parents[1] / "fixtures" / "texts_layout_2"
ALPHABETS = (
    "ab",
    "aAbB",
    "aß\u1e9esS",
    "iIİı\u0307",
    "ΣσςaΑ",
    "kK\u212a\u017f",
    "é\u0301eÉ",
    "a\0b",
    "𝔘𐐀𐐨a",
    "%_\\a'",
    "a b.",
)
EXPRESSIONS = (
    "a", "a|b", "^a", "b$", "(a|b)a+", "a{2,}b", "(?i)aS", "(?i)k", "a.b", "[ab]c?a", "a*", "(?:ab)?b", "\\.",
    "(a(b|a)|ba)", "\\bab", "a+?b", "é|ß", "(?i)É", "a\\\\", "[[:alpha:]]b", "\\x61b", "a{0}b", "()a", "(?s)a.b",
)  # fmt: skip


def text_of(rng: random.Random, alphabet: str, longest: int = 6) -> str:
    return "".join(rng.choice(alphabet) for _ in range(rng.randrange(longest + 1)))


def a_test(rng: random.Random, alphabet: str) -> Filter:
    """A test on text of any kind, on one of two attributes."""

    def draw(what: str) -> object:
        match what:
            case "pattern":
                gaps = [text_of(rng, alphabet.replace("\\", ""), 2) for _ in range(rng.randrange(1, 4))]
                return rng.choice("%_").join(gaps) if rng.random() < 0.3 else f"%{'%'.join(gaps)}%"
            case "expression":
                return rng.choice(EXPRESSIONS)
            case "network":
                return "10.0.0.0/8"
            case _:
                return text_of(rng, alphabet, 3)

    return rng.choice(lines("texts")).make(rng.choice(("s", "t")), draw)


def filter_of(rng: random.Random, alphabet: str, depth: int = 2) -> Filter:
    if depth == 0 or rng.random() < 0.3:
        return a_test(rng, alphabet) if rng.random() < 0.85 else attr("n") == rng.randrange(3)
    if rng.random() < 0.2:
        return Not(filter_of(rng, alphabet, depth - 1))
    parts = tuple(filter_of(rng, alphabet, depth - 1) for _ in range(rng.randrange(2, 5)))
    return And(parts) if rng.random() < 0.5 else Or(parts)


def event_of(rng: random.Random, alphabet: str) -> dict[str, object]:
    event: dict[str, object] = {"n": rng.randrange(3)}
    for name in ("s", "t"):
        if rng.random() < 0.85:
            event[name] = text_of(rng, alphabet, 9) if rng.random() < 0.9 else rng.choice([7, ["a"], True, "10.1.2.3"])
    return event


def expected(conditions: list[Filter], events: list[dict[str, object]], semantics: Semantics) -> list[list[str]]:
    return [
        [f"s{number}" for number, one in enumerate(conditions) if matches(one, event, semantics=semantics)]
        for event in events
    ]


@pytest.mark.parametrize("alphabet", ALPHABETS, ids=ascii)
@pytest.mark.parametrize("semantics", [name for name in SEMANTICS if name != "default"])
def test_batch_equals_single_equals_json_equals_interpreter(
    semantics: Semantics, alphabet: str, tmp_path: Path
) -> None:
    rng = random.Random(f"{semantics} {alphabet}")
    conditions = [filter_of(rng, alphabet) for _ in range(60)]
    events = [event_of(rng, alphabet) for _ in range(40)]
    wanted = expected(conditions, events, semantics)
    statistics = covey.Statistics(events) if rng.random() < 0.5 else None
    index = covey.Index(semantics=semantics, statistics=statistics)
    index.add_many((f"s{number}", str(one)) for number, one in enumerate(conditions))
    assert index.match_batch(events).to_pylist() == wanted
    assert [index.match(event) for event in events] == wanted
    assert index.match_json_lines("\n".join(map(json.dumps, events)).encode()).to_pylist() == wanted
    for ascii_only in (True, False):
        lines = [json.dumps(event, ensure_ascii=ascii_only).encode(errors="surrogatepass") for event in events]
        assert [index.match_json(line) for line in lines] == wanted
    index.remove("s7")
    left = [[name for name in one if name != "s7"] for one in wanted]
    index.save(tmp_path / "rules.covey")
    opened = covey.Index.open(tmp_path / "rules.covey")
    for one in (index, opened):
        assert one.match_batch(events).to_pylist() == left
        assert [one.match(event) for event in events] == left


def literals_by_hand(texts: list[str], literals: list[Literal], spelled: list[str]) -> list[list[int]]:
    """The plain search that the automaton must equal."""
    found = []
    for text in texts:
        own = []
        for number, (literal, word) in enumerate(zip(literals, spelled, strict=True)):
            here = lower(text) if literal.tree & IN_LOWER_CASE else text
            place = literal.tree & 3
            holds = {
                ANYWHERE: word in here,
                START: here.startswith(word),
                END: here.endswith(word),
                WHOLE: here == word,
            }
            if holds[place]:
                own.append(number)
        found.append(own)
    return found


@pytest.mark.parametrize("seed", range(20))
def test_the_automaton_finds_what_a_plain_search_finds(seed: int) -> None:
    rng = random.Random(seed)
    alphabet = rng.choice(ALPHABETS)
    spelled: dict[Literal, str] = {}
    for _ in range(60):
        tree = rng.randrange(8)
        word = text_of(rng, alphabet, 8) or ("" if tree & 3 == WHOLE else "a")
        word = lower(word) if tree & IN_LOWER_CASE else word
        data = word.encode()
        spelled[Literal(tree, data[::-1] if tree & 3 == END else data)] = word
    needs = Needs([Need(1, [(one,)]) for one in spelled], np.zeros(len(spelled), np.int32), np.zeros(1, np.int32))
    index, numbered = every_literal(needs)
    texts = [text_of(rng, alphabet, 30) for _ in range(50)]
    offsets, hits = index.find(0, pa.array(texts, pa.large_string()))
    literals = [literal for _, literal in numbered]
    wanted = literals_by_hand(texts, literals, [spelled[literal] for literal in literals])
    assert [hits[first:last].tolist() for first, last in pairwise(offsets)] == wanted


def test_a_literal_that_must_occur_files_a_rule() -> None:
    index = covey.Index()
    forty = " OR ".join(f"contains(body, 'word{n}')" for n in range(40))
    index.add_many(
        [
            ("contains", "contains(title, 'urgent')"),
            ("prefix", "startswith(title, 'urgent')"),
            ("suffix", "title LIKE '%urgent'"),
            ("pieces", "title ILIKE '%Very%urgent%'"),
            ("expression", "title RLIKE '[0-9]+ urgent (calls|mails)'"),
            ("forty", f"({forty}) AND size > 3"),
            ("negated too", "contains(title, 'a') AND NOT contains(title, 'b')"),
        ]
    )
    assert index.stats().swept == 0
    assert index.match({"title": "12 urgent mails, VERY urgent", "body": "word39", "size": 4}) == [
        "contains", "suffix", "pieces", "expression", "forty", "negated too",
    ]  # fmt: skip


def test_only_candidates_are_verified_and_each_text_once(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []
    holds = RLike.holds

    def counted(self: RLike, text: str) -> bool:
        asked.append(self.pattern)
        return holds(self, text)

    monkeypatch.setattr(RLike, "holds", counted)
    index = covey.Index()
    index.add_many([(f"s{n}", f"line RLIKE 'user{n:04d} [a-z]+ed'") for n in range(1000)])
    events = [{"line": "user0007 logged out"}, {"line": "user0008 "}] * 50
    assert index.match_batch(events, threads=1).to_pylist() == [["s7"], []] * 50
    assert sorted(asked) == ["user0007 [a-z]+ed", "user0008 [a-z]+ed"]
    asked.clear()
    assert index.match(events[0]) == ["s7"]
    assert asked == ["user0007 [a-z]+ed"]


def test_sampled_events_tell_which_literal_is_rare() -> None:
    events = [{"line": "the process was started"}] * 99 + [{"line": "the process was started by q"}]
    index = covey.Index(statistics=covey.Statistics(events))
    index.add_many([("s", "line LIKE '%process%by q%'")])
    segment = index.parts()[0].segment
    assert bytes(segment.literals.literal_bytes) == b"by q"


@pytest.mark.parametrize("pattern", EXPRESSIONS)
def test_what_an_expression_needs_occurs_wherever_it_is_found(pattern: str) -> None:
    needs = expression_needs(pattern)
    rng = random.Random(pattern)
    test = RLike("s", pattern)
    for alphabet in ALPHABETS:
        for _ in range(40):
            text = text_of(rng, alphabet, 6)
            here = lower(text) if needs.in_lower_case else text
            occurs = [any(word in here for word in one) for one in needs.sets]
            if test.holds(text):
                assert all(occurs)
            elif needs.decided:
                assert not any(occurs)


def test_expressions_have_the_literals_that_they_cannot_do_without() -> None:
    assert expression_needs("foo.*bar").sets == [("foo",), ("bar",)]
    assert expression_needs("(cmd|power)\\.exe").sets == [("cmd.exe", "power.exe")]
    assert expression_needs("(cmd|power)\\.exe").decided
    assert expression_needs("a+(b|c)*d{3}").sets == [("a",), ("d",)]
    assert expression_needs("(?i)Shell").sets == [("hell",)]
    assert expression_needs("a|b*").sets == []
    assert expression_needs("(?i:a)b").sets == []


def test_beyond_the_bytes_for_literals_rules_are_verified(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(text_index_module, "MOST_BYTES", 100)
    index = covey.Index()
    index.add_many([(f"s{n}", f"contains(line, 'a long word {n:03d}')") for n in range(50)])
    for n in (3, 49):
        event = {"line": f"has a long word {n:03d} in it"}
        assert index.match(event) == [f"s{n}"]
        assert index.match_batch([event]).to_pylist() == [[f"s{n}"]]


@settings(max_examples=examples(200), deadline=None)
@given(
    st.lists(st.sampled_from(["a", "b", "ab", "ba", "aba", ANY_TEXT]), min_size=1, max_size=6),
    st.text("ab", max_size=9),
)
def test_pieces_in_their_order_are_what_the_automaton_finds(tokens: list[str | int], text: str) -> None:
    found = wildcard_automaton(tuple(tokens)).fullmatch(text) is not None
    assert in_order(tuple(tokens), text) == found


@pytest.mark.parametrize(
    ("count", "megabytes"),
    [
        pytest.param(20_000, 5, marks=pytest.mark.thorough, id="some"),
        pytest.param(100_000, 10, marks=pytest.mark.long, id="all"),
    ],
)
def test_a_hostile_set_is_matched_rightly(count: int, megabytes: int) -> None:
    prefix = "x" * 400
    rules = [(f"p{n}", f"contains(line, '{prefix}{n:06d}')") for n in range(count)]
    rules += [(f"l{n}", f"line LIKE '{'%a%b' * 200}{n}%'") for n in range(20)]
    rules += [(f"r{n}", f"line RLIKE '(z{{0,200}}){{3}}q{n}(y{{1,300}})'") for n in range(20)]
    rules += [(f"a{n}", f"contains(line, '{'a' * (n + 1)}')") for n in range(300)]
    index = covey.Index()
    index.add_many(rules)
    # A literal is kept once beside its rule's text, and takes a handful of states beyond what it shares with others.
    texts = sum(len(id) + len(text) for id, text in rules)
    assert index.stats().bytes < 2 * texts + 300 * len(rules)
    large = "ab" * (megabytes * 500_000)
    events = [
        {"line": f"{prefix}000123"},
        {"line": large + "7"},
        {"line": "a" * 1_000_000},
        {"line": "zzzq11y"},
        {"line": prefix * 100},
    ]
    wanted = [["p123"], ["l7", "a0"], [f"a{n}" for n in range(300)], ["r11"], []]
    assert index.match_batch(events).to_pylist() == wanted
    assert [index.match(event) for event in events] == wanted
    lines = [json.dumps(event).encode() for event in events]
    assert index.match_json_lines(b"\n".join(lines)).to_pylist() == wanted
    assert [index.match_json(line) for line in lines] == wanted


@pytest.mark.parametrize("pattern", ["(a{1000}){1000}", "((a{100}){100}){100}", "(a|b|ab){1,1000}{1,1000}"])
def test_repetitions_beyond_what_an_automaton_may_be_are_refused_by_name(pattern: str) -> None:
    with pytest.raises(CoveyError) as error:
        covey.Index().add("huge", f"line RLIKE '{pattern}'")
    assert "repetition" in str(error.value)


def test_texts_of_several_segments_and_deletions_are_merged() -> None:
    index = covey.Index()
    for n in range(200):
        index.add(f"s{n}", f"title LIKE '%word{n:03d}%end'" if n % 2 else f"icontains(title, 'WORD{n:03d}')")
    for n in range(0, 200, 7):
        index.remove(f"s{n}")
    events = [{"title": f"a Word{n:03d} word{n + 1:03d} at the end"} for n in range(0, 200, 2)]
    wanted = [[f"s{n}" for n in (2 * place, 2 * place + 1) if n % 7] for place in range(100)]
    assert index.match_batch(events).to_pylist() == wanted
    index.compact()
    assert [index.match(event) for event in events] == wanted


def test_a_file_of_the_layout_before_is_built_anew(caplog: pytest.LogCaptureFixture) -> None:
    answers = json.loads((WRITTEN / "texts_answers.json").read_text())
    with caplog.at_level(logging.WARNING, "covey.matching"):
        index = covey.Index.open(WRITTEN / "texts.covey")
    assert "older layout: its 120 subscriptions are built anew" in caplog.text
    assert len(index) == 118
    events = [answer["event"] for answer in answers]
    wanted = [answer["matches"] for answer in answers]
    assert index.match_batch(events).to_pylist() == wanted
    assert [index.match(event) for event in events] == wanted


@pytest.mark.parametrize("shortest", [1, 2, 3, 4, 8])
def test_literals_of_every_length_are_found_at_every_place(shortest: int) -> None:
    dice = random.Random(shortest)

    def text(length: int) -> str:
        return "".join(dice.choices("abAB", k=length))

    literals = [text(length) for length in range(shortest, 30) for _ in range(3)]
    index = covey.Index()
    index.add_many((f"{n}", f"contains(s, '{literal}')") for n, literal in enumerate(literals))
    index.add_many((f"{n}i", f"s ILIKE '%{literal}%'") for n, literal in enumerate(literals))
    texts = [text(length) for length in range(40)]
    for literal in literals:
        before, after = dice.randrange(12), dice.randrange(12)
        texts += [text(before) + literal + text(after), (text(before) + literal).swapcase(), literal[:-1]]
    expected = [
        [f"{n}" for n, literal in enumerate(literals) if literal in text]
        + [f"{n}i" for n, literal in enumerate(literals) if literal.lower() in text.lower()]
        for text in texts
    ]
    assert index.match_batch(pa.table({"s": texts})).to_pylist() == expected
    assert [index.match({"s": text}) for text in texts] == expected


@pytest.mark.parametrize("tests_each", [2, 12])
def test_many_rules_that_only_say_what_a_text_is_not(tests_each: int) -> None:
    words = [f"w{n}x" for n in range(150 * tests_each)]
    rules = [
        Not(Or(tuple(attr("s").contains(word) for word in words[n * tests_each :][:tests_each]))) for n in range(150)
    ]
    index = covey.Index()
    index.add_many((str(n), rule) for n, rule in enumerate(rules))
    (part,) = index.parts()
    assert part.segment.tables.swept == 150
    assert part.segment.tables.is_swept == (tests_each == 2)
    events = [{"s": f"{words[7 * n % len(words)]} {words[31 * n % len(words)]}"} for n in range(50)]
    events += [{"s": ""}, {"s": "w0x"}, {}]
    expected = [[str(n) for n, rule in enumerate(rules) if matches(rule, event)] for event in events]
    assert index.match_batch(events).to_pylist() == expected
    assert [index.match(event) for event in events] == expected
    assert [index.match_json(json.dumps(event).encode()) for event in events] == expected
