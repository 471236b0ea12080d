"""A command that only talks to a broker, or prints its help, doesn't import the matcher."""

from __future__ import annotations

import subprocess
import sys

import pytest

import covey
from covey import network, routing
from covey.cli import arguments, options
from covey.relations.merging import MEASURES
from covey.relations.pruning import DIMENSIONS

HEAVY = ("numba", "pyarrow", "pyspark", "covey.matching")


@pytest.mark.parametrize(
    "code",
    [
        "import covey",
        "from covey.cli import main; main(['explain', 'x', 'y', '--no-such-option'])",
        "import covey.cli.broker.pub, covey.cli.broker.sub; from covey import connect, connect_sync",
    ],
)
def test_what_takes_long_to_import_is_left_until_it_is_needed(code: str) -> None:
    found = f"print([name for name in {HEAVY} if name in sys.modules])"
    script = f"import sys\ntry:\n    {code}\nexcept SystemExit: pass\n{found}"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60, check=False)
    assert done.stdout.splitlines()[-1:] == ["[]"], done.stderr


def test_filters_answer_how_they_relate_though_nothing_else_was_imported() -> None:
    code = "import covey; print(covey.parse('p < 5').covers(covey.parse('p < 3')))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout == "True\n"


@pytest.mark.parametrize("package", [covey, network, routing])
def test_every_name_of_a_package_is_there(package: object) -> None:
    for name in package.__all__:  # type: ignore[attr-defined]
        assert getattr(package, name) is not None
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        package.nothing  # type: ignore[attr-defined]  # noqa: B018


def test_what_can_be_asked_for_of_compaction_is_all_there_is() -> None:
    assert set(arguments.DIMENSIONS) == set(DIMENSIONS)
    assert options.MEASURES == MEASURES
