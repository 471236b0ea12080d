"""What docs/language.md says is so: its examples run, and its table of tests agrees with the interpreter."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from covey.filters.semantics import truth
from covey.language import parse
from covey.language.functions import FUNCTIONS

PAGE = (Path(__file__).parents[2] / "docs" / "language.md").read_text(encoding="utf-8")
EXAMPLES = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
ROWS = [
    [cell.strip() for cell in line.split("|")[1:-1]]
    for line in PAGE.split("## Tests on attributes")[1].split("## Combining tests")[0].split("\n")
    if line.startswith("| `")
]
CONSTANTS = {"v": "5", "w": "6", "x0": "0", "y0": "0", "x1": "1", "y1": "1"}
TRUTHS = {"true": True, "false": False, "unknown": None}


@pytest.mark.parametrize("example", EXAMPLES)
def test_examples_run_as_they_are(example: str) -> None:
    exec(compile(example, "docs/language.md", "exec"), {})


@pytest.mark.parametrize("row", ROWS, ids=[row[0] for row in ROWS])
def test_the_truth_of_each_test_on_a_missing_attribute(row: list[str]) -> None:
    tests, _, _, sql, simple = row
    for written in re.findall(r"`([^`]+)`", tests):
        condition = parse(re.sub(r"\b(v|w|x0|y0|x1|y1)\b", lambda name: CONSTANTS[name[0]], written))
        for three_valued, said in ((True, sql), (False, simple)):
            plain, _, with_null = said.partition("; ")
            assert truth(condition, lambda _: None, three_valued=three_valued) is TRUTHS[plain]
            if with_null:
                null = parse(re.sub(r"\bv\b", "NULL", written))
                expected = TRUTHS[with_null.split()[0]]
                assert truth(null, lambda _: None, three_valued=three_valued) is expected


@pytest.mark.parametrize("function", sorted(FUNCTIONS))
def test_every_function_is_documented(function: str) -> None:
    assert f"{function}(" in PAGE or f"{function.upper()} " in PAGE


def test_the_table_was_found() -> None:
    assert len(ROWS) >= 19
    assert len(EXAMPLES) >= 6
