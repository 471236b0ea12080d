"""The order of the rooms in CONTRIBUTING.md, from the layers that import-linter holds in pyproject.toml."""

from __future__ import annotations

import re
import textwrap
import tomllib
from typing import Final

from tools.docs import ROOT

PAGE: Final = ROOT / "CONTRIBUTING.md"
_START: Final = "<!-- made from pyproject.toml -->\n"
_END: Final = "<!-- made until here -->\n"
_WIDTH: Final = 78


def layers() -> list[list[str]]:
    """The rooms, the lowest layer first; what is in one layer doesn't know of the layers after it."""
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    contracts = settings["tool"]["importlinter"]["contracts"]
    contract = next(contract for contract in contracts if contract["type"] == "layers")
    return [re.findall(r"covey\.(\w+)", layer) for layer in reversed(contract["layers"])]


def page() -> str:
    """The page with the rooms as they are."""
    before, start, rest = PAGE.read_text(encoding="utf-8").partition(_START)
    _, end, after = rest.partition(_END)
    assert start, "CONTRIBUTING.md has lost the place for the rooms' order"
    assert end, "CONTRIBUTING.md has lost the end of the rooms' order"
    order = " → ".join(", ".join(sorted(rooms)) for rooms in layers())
    lines = textwrap.wrap(order, _WIDTH, subsequent_indent="  ", break_on_hyphens=False)
    return "".join((before, start, "```text\n", "\n".join(lines), "\n```\n", end, after))
