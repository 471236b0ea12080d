"""What docs/language.md says is so: its examples run, every function is there; its tables are read in `tests/docs`."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from covey.language.functions import FUNCTIONS

PAGE = (Path(__file__).parents[2] / "docs" / "language.md").read_text(encoding="utf-8")
EXAMPLES = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)


@pytest.mark.parametrize("example", EXAMPLES)
def test_examples_run_as_they_are(example: str) -> None:
    exec(compile(example, "docs/language.md", "exec"), {})


@pytest.mark.parametrize("function", sorted(FUNCTIONS))
def test_every_function_is_documented(function: str) -> None:
    assert f"{function}(" in PAGE or f"{function.upper()} " in PAGE


def test_the_examples_were_found() -> None:
    assert len(EXAMPLES) >= 6
