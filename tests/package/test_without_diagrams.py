"""Without the papers' diagrams' library everything else works, and who asks for diagrams hears what to install."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from tests.cli.machines import without_packages

_PROGRAM = """
import sys

import covey
from covey.relations.covering import CoveringTable
from covey.relations.merging import merge_table

index = covey.Index()
index.add_many([(f"s{n}", f"price < {n} AND symbol LIKE 'IB%'") for n in range(100)])
assert index.match({"price": 97.5, "symbol": "IBM"}) == ["s98", "s99"]
assert index.match_batch([{"price": 98.5, "symbol": "IBM"}]).lists().to_pylist() == [["s99"]]

assert covey.relate("startswith(a, 'x')", "startswith(a, 'xy')").covers
assert covey.merge([covey.parse("a = 1"), covey.parse("a = 2")]).perfect

table = CoveringTable()
table.insert("wide", covey.parse("a > 1"))
table.insert("narrow", covey.parse("a > 2 AND b = 1"))
assert table.roots() == ("wide",)

filters = [covey.parse(text) for text in ("a = 1 AND b < 5", "a = 1 AND b >= 5")]
assert len(merge_table(enumerate(filters))) == 1
profile = covey.Profile.of([{"a": 1, "b": 2}], filters)
assert profile.history().attributes == {"a": 2, "b": 2}
assert profile.chances(filters).tolist() == [1.0, 0.0]
print("oxidd" in sys.modules, "covey.diagrams" in sys.modules)
"""


def ran(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    environment = without_packages(folder, dict(os.environ), ["oxidd"])
    command = [sys.executable, *arguments]
    return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=300, check=False)


def test_matching_relations_covering_merging_and_profiles_work(tmp_path: Path) -> None:
    done = ran(tmp_path, "-c", _PROGRAM)
    assert (done.stderr, done.stdout) == ("", "False False\n")


def test_brokers_and_spark_can_be_imported(tmp_path: Path) -> None:
    done = ran(tmp_path, "-c", "import covey.network, covey.routing, covey.simulation, covey.spark, covey.console")
    assert (done.stderr, done.returncode) == ("", 0)


def test_who_asks_for_diagrams_hears_what_to_install(tmp_path: Path) -> None:
    program = (
        "import covey\ntry:\n    from covey.diagrams import SharedDiagram\n"
        "except covey.CoveyError as error:\n    print(error)"
    )
    done = ran(tmp_path, "-c", program)
    assert (done.stderr, done.stdout) == ("", "covey.diagrams needs oxidd; pip install 'covey[diagrams]'\n")


def test_the_laboratory_says_so_too(tmp_path: Path) -> None:
    done = ran(tmp_path, "-m", "covey.cli", "lab", "list")
    assert done.returncode != 0
    assert done.stderr.splitlines()[-1].endswith("covey.diagrams needs oxidd; pip install 'covey[diagrams]'")
    assert "Traceback" not in done.stderr
