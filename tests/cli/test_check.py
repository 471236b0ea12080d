"""`covey check` says of each rule whether it loads, and of those that do what is odd about them."""

import json
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest
from pyarrow import parquet

from covey.cli import main
from tests.cli.conftest import Outcome, lines

RULES = {
    "plain": "price < 10 AND company = 'IBM'",
    "turned": "NOT price >= 10 AND company IN ('IBM')",
    "never": "price < 10 AND price > 20",
    "always": "price IS NULL OR price IS NOT NULL",
    "foreign": "price => 10 && company = ‘IBM’",
    "broken": "price <",
}


@pytest.fixture
def rules(tmp_path: Path) -> Path:
    path = tmp_path / "rules.jsonl"
    path.write_text("".join(json.dumps({"id": id, "filter": text}) + "\n" for id, text in RULES.items()))
    return path


def checked(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, dict[str, dict[str, object]]]:
    code = main(["check", *arguments, "--json"])
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    return code, {line["id"]: line for line in lines}


def test_it_says_what_loads_and_what_is_odd(rules: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, found = checked(capsys, str(rules))
    assert code == 1
    assert [id for id, rule in found.items() if not rule["loads"]] == ["foreign", "broken"]
    assert found["turned"]["notes"] == ["is equal to 'plain'"]
    assert found["never"]["notes"] == ["can never match"]
    assert found["always"]["notes"] == ["always matches"]
    assert "notes" not in found["plain"]
    assert "--fix would write price >= 10 AND company = 'IBM'" in str(found["foreign"]["error"])


def test_fix_mends_what_is_plain(rules: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "mended.jsonl"
    assert main(["check", str(rules), "--fix", str(out)]) == 1
    shown = capsys.readouterr().out
    assert "rule 'foreign' was mended" in shown
    assert "6 rules: 5 load, 1 don't; 1 can never match, 1 always match, 1 are equal to another, 1 were mended" in shown
    written = {row["id"]: row["filter"] for row in map(json.loads, out.read_text().splitlines())}
    assert written["foreign"] == "price >= 10 AND company = 'IBM'"
    assert set(written) == set(RULES) - {"broken"}
    assert main(["check", str(out)]) == 0


DIALECTS = {
    "cesql": {"plain": "hop < 5", "equal": "hop < 5 AND TRUE", "never": "id = 'a' AND id = 'b'", "always": "EXISTS id",
              "foreign": "id == ‘a’ && hop => 5", "broken": "hop <"},
    "jms": {"plain": "w > 5", "equal": "w > 5 AND w > 4", "never": "w > 5 AND w < 3", "always": "TRUE",
            "foreign": "WHERE w => 5 && x = 1;", "broken": "w >"},
    "amqp": {"plain": "p.to = 'a'", "equal": "properties.to IN ('a')", "never": "w > 5 AND w < 3", "always": "TRUE",
             "foreign": "w =< 5 && x = 1", "broken": "m.x = 1"},
    "eventbridge": {"plain": '{"a": ["x"]}', "equal": '{"a": ["x", "x"]}', "broken": '{"a": "x"}'},
    "sigma": {"plain": "a: x", "equal": "a: [X, x]", "broken": "a|z: x"},
    "json": {"plain": '{"attribute": "a", "=": 5}', "equal": '{"attribute": "a", "in": [5]}', "broken": '{"a": 5}'},
}  # fmt: skip


@pytest.mark.parametrize("dialect", DIALECTS)
def test_rules_of_any_dialect_are_checked(dialect: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    if dialect == "sigma":
        pytest.importorskip("sigma", reason="pySigma is the extra sigma, which is not installed")
    given = DIALECTS[dialect]
    if dialect == "sigma":
        head = "title: A rule\nlogsource: {product: any}\ndetection:\n  condition: s\n  s:\n    "
        given = {id: head + text for id, text in given.items()}
    path, out = tmp_path / "rules.jsonl", tmp_path / "mended.jsonl"
    path.write_text("".join(json.dumps({"id": id, "filter": text}) + "\n" for id, text in given.items()))
    code, found = checked(capsys, str(path), "--dialect", dialect, "--fix", str(out))
    assert code == 1
    assert [id for id, rule in found.items() if not rule["loads"]] == ["broken"]
    notes = {id: rule.get("notes") for id, rule in found.items() if rule.get("notes")}
    wanted = {"equal": ["is equal to 'plain'"], "never": ["can never match"], "always": ["always matches"]}
    assert notes == {id: note for id, note in wanted.items() if id in given}
    assert ("mended" in found.get("foreign", {})) is ("foreign" in given)
    assert main(["check", str(out)]) == 0


def test_a_table_s_columns_and_types_are_held_against_rules(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    table = tmp_path / "events.parquet"
    parquet.write_table(pa.table({"price": [1.5], "company": ["IBM"]}), table)
    rules = tmp_path / "rules.jsonl"
    texts = {"good": "price < 10", "kind": "price = 'low'", "column": "Price < 10"}
    rules.write_text("".join(json.dumps({"id": id, "filter": text}) + "\n" for id, text in texts.items()))
    code, found = checked(capsys, str(rules), "--table", str(table))
    assert code == 1
    assert [id for id, rule in found.items() if rule["loads"]] == ["good"]
    assert found["column"]["error"] == "the table has no column Price"


def test_a_directory_has_one_rule_a_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "inner").mkdir()
    (tmp_path / "one.json").write_text('{"attribute": "price", "<": 10}')
    (tmp_path / "inner" / "two.json").write_text('{"attribute": "price", "<": 10.0}')
    (tmp_path / "three.json").write_bytes(b"\xff")
    code, found = checked(capsys, str(tmp_path), "--dialect", "json")
    assert code == 1
    assert found["one.json"]["notes"] == ["is equal to 'inner/two.json'"]
    assert found["three.json"]["error"] == "the file is not UTF-8 at byte 0"


def test_ids_that_stand_twice_are_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rules = tmp_path / "rules.csv"
    rules.write_text("id,filter\na,x = 1\na,x = 2\n")
    assert main(["check", str(rules)]) == 1
    assert "and the first counts" in capsys.readouterr().out


def test_match_and_explain_take_files_with_one_rule_each(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rules = tmp_path / "rules"
    rules.mkdir()
    (rules / "cheap.json").write_text('{"price": [{"numeric": ["<", 10]}]}')
    (rules / "ibm.json").write_text('{"company": ["IBM"]}')
    events = tmp_path / "events.jsonl"
    events.write_text('{"price": 5, "company": "IBM"}\n{"price": 50}\n')
    assert main(["match", str(rules), str(events), "--dialect", "eventbridge"]) == 0
    first = json.loads(capsys.readouterr().out.splitlines()[0])
    assert sorted(first["subscriptions"]) == ["cheap.json", "ibm.json"]
    asked = ["--subscriptions", str(rules), "--id", "cheap.json", "--dialect", "eventbridge", '{"price": 50}']
    assert main(["explain", *asked]) == 0
    assert "does not match" in capsys.readouterr().out
    (rules / "bad.json").write_text("{")
    assert main(["match", str(rules), str(events), "--dialect", "eventbridge"]) == 1
    assert "bad.json" in capsys.readouterr().err


def test_what_does_not_load_stands_above_what_is_only_equal(covey: Callable[..., Outcome], tmp_path: Path) -> None:
    rows = [{"id": f"r{n}", "filter": "price < 5" if n % 2 else "price < 5.0"} for n in range(40)]
    rows += [{"id": "never", "filter": "price < 5 AND price > 6"}, {"id": "bad", "filter": "price <"}]
    done = covey("check", lines(tmp_path / "r.jsonl", rows))
    said = done.out.splitlines()
    assert "rule 'bad' doesn't load" in said[0]
    assert "rule 'never' can never match" in said[1]
    assert all("is equal to 'r0'" in line for line in said[2:22])
    assert said[22] == "and 19 more rules are equal to another; --json names them all"
    assert "39 are equal to another" in said[23]
    assert sum("is equal" in line for line in covey("check", tmp_path / "r.jsonl", "--json").out.splitlines()) == 39
