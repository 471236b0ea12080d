"""What the README and the pages of docs/ show runs as it stands."""

from __future__ import annotations

import ast
import csv
import json
import re
import shlex
import shutil
from pathlib import Path
from typing import Any

import pytest
import yaml

import covey
from covey.cli.arguments import parse as parse_arguments
from covey.cli.run import COMMANDS
from covey.network.configuration_file import load
from covey.network.tokens import read_listed
from tests.docs.pages import NOT_RUN, PAGES, PRINTS, Block, blocks, unit_of
from tests.docs.sessions import Session, agrees, commands, shell_reads

LANGUAGES = ("python", "sh", "console", "text", "toml", "json", "jsonl", "csv", "sql", "ini", "yaml")
LEFT_OUT = {
    ("README.md", "sh", "not run: takes minutes"),
    ("CONTRIBUTING.md", "sh", "not run: takes minutes"),
    ("index.md", "sh", "not run: installs"),
    ("lab.md", "sh", "not run: takes minutes"),
    ("lab.md", "sh", "not run: takes minutes"),
    ("spark.md", "sh", "not run: needs a cluster"),
    ("streaming.md", "python", "not run: needs Kafka"),
    ("operations.md", "sh", "not run: needs root"),
}
"""Blocks that are read and not run, by page: a new one is a decision."""


LONG = ("loading.md", "streaming.md")
"""Pages that start Spark again and again."""


def marked(page: Path) -> Any:
    return pytest.param(page, id=page.name, marks=[pytest.mark.long] if page.name in LONG else [])


@pytest.mark.parametrize("page", map(marked, PAGES))
def test_a_page_runs_from_top_to_bottom(page: Path, tmp_path: Path) -> None:
    """In a directory and processes of its own, as a reader would."""
    for program in ("bash", "curl", "openssl"):
        if uses(page, program) and shutil.which(program) is None:
            pytest.skip(f"{program} isn't installed")
    directory = tmp_path / page.stem
    directory.mkdir()
    printed = ""
    with Session(directory) as session:
        for block in blocks(page):
            if not block.is_run:
                check_syntax(block)
            elif block.language == "python":
                printed = session.python(block)
            elif block.note == PRINTS:
                assert agrees(printed, block.text), f"{block}: printed\n{printed}"
            elif block.language in ("sh", "console"):
                for command, expected in commands(block):
                    session.command(str(block), command, expected)
            elif block.language != "text" or block.file_name:
                read(block, session.write(block, block.file_name or f"block.{block.language}"))


def uses(page: Path, program: str) -> bool:
    shells = [block for block in blocks(page) if block.language in ("sh", "console")]
    return bool(shells) and (program == "bash" or any(f"{program} " in block.text for block in shells))


def check_syntax(block: Block) -> None:
    if block.language == "python":
        ast.parse(block.text, str(block))
    else:
        assert all(shell_reads(command) for command, _ in commands(block)), f"{block}: the shell can't read this"


def read(block: Block, path: Path) -> None:
    """Have a file read by what reads such files."""
    match block.language:
        case "toml" if path.name == "tokens.toml":
            assert read_listed(path)
        case "toml":
            assert load(path, {}).broker.broker
        case "json":
            assert json.loads(block.text)
        case "jsonl":
            assert [json.loads(line) for line in block.text.splitlines()]
        case "csv":
            assert list(csv.DictReader(block.text.splitlines(), strict=True))
        case "sql":
            assert str(covey.parse(block.text))
        case "yaml":
            assert yaml.safe_load(block.text)
        case "ini":
            read_service(block)


def read_service(block: Block) -> None:
    """A unit of systemd: what it starts is a command line that covey reads."""
    program, *arguments = shlex.split(unit_of(block)["Service"]["ExecStart"])
    assert Path(program).name == "covey"
    assert parse_arguments(arguments).command == "broker"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_all_blocks_are_of_a_known_kind(page: Path) -> None:
    for block in blocks(page):
        assert block.language in LANGUAGES, f"{block}: say what this is, as tests/docs/pages.py has it"
        assert not block.title or block.file_name, f"{block}: the title {block.title!r} isn't a file's name"
        known_note = not block.note or block.note == PRINTS or not block.is_run
        assert known_note, f"{block}: <!-- {block.note} --> is neither what is printed nor says why this isn't run"


def test_blocks_that_are_not_run_are_few_and_known() -> None:
    found = {
        (block.page, block.language, block.note)
        for page in PAGES
        for block in blocks(page)
        if block.note.startswith(NOT_RUN)
    }
    assert found == LEFT_OUT


def test_the_readme_delivers_a_first_event() -> None:
    """A broker, a subscriber, an event that reaches it: in the README, where the shell runs them."""
    shown = [block for block in blocks(PAGES[0]) if block.language == "console" and "covey broker" in block.text]
    assert shown
    given = commands(shown[0])
    assert any(command.startswith("covey sub") for command, _ in given)
    published = [printed for command, printed in given if command.startswith("covey pub")]
    assert published
    assert json.loads(published[0])


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_commands_within_the_text_can_be_read(page: Path) -> None:
    text = re.sub(r"^```.*?^```$", "", page.read_text(encoding="utf-8"), flags=re.DOTALL | re.MULTILINE)
    for command in re.findall(r"`(covey [a-z][^`]* [^`]+)`", text):
        arguments = shlex.split(" ".join(command.split()))[1:]
        if " ".join(arguments) not in COMMANDS and "--help" not in arguments and "…" not in command:
            assert parse_arguments(arguments).command


@pytest.mark.parametrize(
    ("printed", "expected", "holds"),
    [
        ("a\nb\n", "a\nb\n", True),
        ("a\nb\n", "a\n", False),
        ("took 1.5 s\n", "took ... s\n", True),
        ("a\nb\nc\n", "a\n...\nc\n", True),
        ("a\nc\n", "a\n...\nc\n", True),
        ("a\nb\n", "a\n...\nc\n", False),
        ("1+1\n", "1.1\n", False),
    ],
)
def test_what_is_printed_is_compared(printed: str, expected: str, holds: bool) -> None:
    assert agrees(printed, expected) is holds
