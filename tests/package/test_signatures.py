"""Calls can be read: no function takes a long row of arguments that only their places tell apart."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

import covey

SOURCE = Path(covey.__file__).parent
MOST_POSITIONAL = 8
KERNELS = SOURCE / "kernels"
"""Numba's functions are called with arrays by place; `tests/kernels` hold their signatures."""
FILES = sorted(path for path in SOURCE.rglob("*.py") if KERNELS not in path.parents)


def long_rows(tree: ast.AST) -> Iterator[str]:
    """Functions with more positional parameters than can be told apart, but for `self` and `cls`."""
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            names = [parameter.arg for parameter in (*node.args.posonlyargs, *node.args.args)]
            count = len(names) - (names[:1] in (["self"], ["cls"]))
            if count > MOST_POSITIONAL:
                yield f"line {node.lineno}: {count} parameters by place; use a NamedTuple, or names after *"


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(SOURCE)))
def test_no_function_has_more_than_eight_positional_parameters(path: Path) -> None:
    assert list(long_rows(ast.parse(path.read_text(encoding="utf-8")))) == []


def test_long_rows_are_found() -> None:
    named = ", ".join("abcdefghi")
    assert list(long_rows(ast.parse(f"def f({named}): pass"))) != []
    assert list(long_rows(ast.parse(f"class C:\n    async def f(self, {named}): pass"))) != []
    assert list(long_rows(ast.parse("def f(self, a, b, c, d, e, f, g, h, *, i, j): pass"))) == []
