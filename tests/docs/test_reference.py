"""The reference lists what there is: docs/cli.md all options, docs/api.md all names, docs/operations.md all limits."""

from __future__ import annotations

import importlib
from typing import Any

import pytest

import covey
import covey.network
import covey.spark
from tests.docs import cli_page, limits_table
from tests.docs.pages import ROOT
from tests.docs.tables import tables

NAMES = [row["name"].strip("`") for table in tables(ROOT / "docs" / "api.md") for row in table]


def test_the_page_of_the_command_line_is_what_the_help_says() -> None:
    assert cli_page.PAGE.read_text(encoding="utf-8") == cli_page.page(), "docs/cli.md is out of date; run make docs"


def test_the_table_of_limits_is_what_the_code_says() -> None:
    assert limits_table.PAGE.read_text(encoding="utf-8") == limits_table.page(), "out of date; run make docs"


@pytest.mark.parametrize("name", NAMES)
def test_a_name_of_the_reference_exists(name: str) -> None:
    module, _, member = name.rpartition(".")
    assert getattr(importlib.import_module(module), member) is not None


@pytest.mark.parametrize("module", [covey, covey.network, covey.spark], ids=lambda module: module.__name__)
def test_no_public_name_is_left_out(module: Any) -> None:
    assert {f"{module.__name__}.{name}" for name in module.__all__} <= set(NAMES)


def test_names_are_listed_once() -> None:
    assert len(NAMES) == len(set(NAMES))
