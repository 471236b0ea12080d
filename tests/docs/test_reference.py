"""The reference lists what there is: docs/cli.md all options, docs/api.md all names, docs/operations.md all limits;
CONTRIBUTING.md has the rooms in their order."""

from __future__ import annotations

import importlib
import inspect
import re
from collections.abc import Callable
from typing import Any

import pytest
from tools.docs import cli_page, limits_table, rooms

import covey
import covey.network
import covey.network.asyncio
import covey.network.sync
import covey.spark
from tests.docs.pages import ROOT
from tests.docs.tables import Row, tables

TABLES = tables(ROOT / "docs" / "api.md")
ROWS = [row for table in TABLES for row in table if "name" in row]
NAMES = [row["name"].strip("`") for row in ROWS]
METHODS = [row["method"].strip("`") for table in TABLES for row in table if "method" in row]


def found(name: str) -> Any:
    """What a dotted name of the reference stands for: members of modules, and members of these."""
    module, *members = re.split(r"\.(?=[A-Z])|\.(?=[a-z_]+$)", name)
    value = importlib.import_module(module)
    for member in members:
        value = getattr(value, member)
    return value


def has(kind: type[Any], member: str) -> bool:
    """Whether a class has a member: an attribute, a field, or one that its `__init__` gives its objects."""
    return (
        hasattr(kind, member)
        or re.search(rf"^    {member}:|self\.{member} =", inspect.getsource(kind), re.M) is not None
    )


def test_the_page_of_the_command_line_is_what_the_help_says() -> None:
    assert cli_page.PAGE.read_text(encoding="utf-8") == cli_page.page(), "docs/cli.md is out of date; run make docs"


def test_the_table_of_limits_is_what_the_code_says() -> None:
    assert limits_table.PAGE.read_text(encoding="utf-8") == limits_table.page(), "out of date; run make docs"


def test_the_order_of_the_rooms_is_what_import_linter_holds() -> None:
    assert rooms.PAGE.read_text(encoding="utf-8") == rooms.page(), "CONTRIBUTING.md is out of date; run make docs"


@pytest.mark.parametrize("name", [*NAMES, *METHODS])
def test_a_name_of_the_reference_exists(name: str) -> None:
    assert found(name) is not None


@pytest.mark.parametrize("row", [row for row in ROWS if ": `" in row[""]], ids=lambda row: row["name"])
def test_members_that_the_reference_speaks_of_exist(row: Row) -> None:
    kind = found(row["name"].strip("`"))
    members = re.findall(r"`(\w+)`", row[""].partition(": `")[2].join(["`", ""])) if inspect.isclass(kind) else []
    assert [name for name in members if name != "str" and not has(kind, name)] == []


@pytest.mark.parametrize("module", [covey, covey.network, covey.spark], ids=lambda module: module.__name__)
def test_no_public_name_is_left_out(module: Any) -> None:
    assert {f"{module.__name__}.{name}" for name in module.__all__} <= set(NAMES)


ROOMS = (covey, covey.spark, covey.network, covey.network.asyncio)
KINDS = {
    f"{module.__name__}.{name}": value
    for module in ROOMS
    for name in module.__all__
    if inspect.isclass(value := getattr(module, name)) and name[-5:] != "Error"
}


@pytest.mark.parametrize("kind", KINDS)
def test_no_public_method_is_left_out(kind: str) -> None:
    shown = {name for name, value in vars(KINDS[kind]).items() if not name.startswith("_") and _is_method(value)}
    assert {f"{kind}.{name}" for name in shown} <= set(METHODS)


def test_what_is_listed_is_public() -> None:
    listed = {name.rpartition(".")[0] for name in METHODS}
    assert listed <= set(KINDS)


def test_clients_without_asyncio_can_do_the_same() -> None:
    both = (covey.network.asyncio.Client, covey.network.sync.Client)
    with_it, without = ({name for name in vars(kind) if not name.startswith("_")} for kind in both)
    assert with_it == without


def _is_method(value: object) -> bool:
    return inspect.isfunction(value) or isinstance(value, (property, classmethod, staticmethod))


def test_names_are_listed_once() -> None:
    listed = [*NAMES, *METHODS]
    assert len(listed) == len(set(listed))


@pytest.mark.parametrize(
    "documented",
    [
        covey.Index,
        *(
            getattr(covey.Index, name)
            for name, value in vars(covey.Index).items()
            if not name.startswith("_") and not isinstance(value, property)
        ),
        covey.Statistics,
        covey.Profile,
        covey.Profile.of,
        covey.Profile.merged,
        covey.Profile.history,
        covey.Profile.chances,
        covey.connect,
        covey.connect_sync,
    ],
    ids=lambda documented: getattr(documented, "__qualname__", str(documented)),
)
def test_every_parameter_is_documented(documented: Callable[..., Any]) -> None:
    text = inspect.getdoc(documented) or ""
    parameters = [] if isinstance(documented, property) else list(inspect.signature(documented).parameters)
    assert [name for name in parameters if name != "self" and f"`{name}" not in text] == []
