"""The limits at the end of docs/operations.md, made from their definitions."""

from __future__ import annotations

import ast
import inspect
import textwrap
from collections.abc import Iterator
from dataclasses import fields
from typing import Any, Final

from covey.limits import BROKER_FILTER_LIMITS, Limits
from covey.network.limits import NetworkLimits
from covey.routing.config import BrokerLimits, Timing
from tools.docs import ROOT

PAGE: Final = ROOT / "docs" / "operations.md"
DEFAULTS: Final = {Limits: BROKER_FILTER_LIMITS}
"""Where a broker's default is another than the class's."""
KINDS: Final = {NetworkLimits: "", BrokerLimits: "", Limits: "", Timing: "timing."}
_HEAD: Final = "| limit | default | what it bounds |\n|---|---|---|\n"


def page() -> str:
    """The page with the table as it should be."""
    before, head, _ = PAGE.read_text(encoding="utf-8").partition(_HEAD)
    assert head, "docs/operations.md has lost its table of limits"
    return before + head + "".join(row for kind, prefix in KINDS.items() for row in _rows(kind, prefix))


def _rows(kind: type[Any], prefix: str) -> Iterator[str]:
    reasons = _reasons(kind)
    for one in fields(kind):
        if one.name != "filters":  # those of filters are rows of their own
            value = getattr(DEFAULTS[kind], one.name) if kind in DEFAULTS else one.default
            yield f"| `{prefix}{one.name}` | {_shown(value)} | {reasons[one.name]} |\n"


def _reasons(kind: type[Any]) -> dict[str, str]:
    """The sentence below each field."""
    (definition,) = ast.parse(textwrap.dedent(inspect.getsource(kind))).body
    assert isinstance(definition, ast.ClassDef)
    found: dict[str, str] = {}
    for field, text in zip(definition.body, definition.body[1:], strict=False):
        if isinstance(field, ast.AnnAssign) and isinstance(text, ast.Expr):
            assert isinstance(field.target, ast.Name)
            assert isinstance(text.value, ast.Constant)
            found[field.target.id] = " ".join(str(text.value.value).split()).rstrip(".").replace("|", "\\|")
    return found


def _shown(value: Any) -> str:
    return "none" if value is None else f"{value:,.0f}" if value == int(value) else f"{value:,}"
