"""All of the laboratory, small: what `make lab-quick` does, and what must come out of it."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from covey.cli import main
from covey.lab import negative_space
from covey.lab.papers import MODULES, experiments
from covey.lab.points import Lab
from covey.lab.runs import QUICK

pytestmark = pytest.mark.usefixtures("spark")


@pytest.mark.long
def test_every_experiment_has_an_outcome_and_its_place_in_the_report(
    spark: SparkSession, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    work, report = tmp_path / "work", tmp_path / "report"
    command = ["lab", "run", "--scale", str(QUICK), "--work", str(work), "--report", str(report)]
    assert main(command) == 0, capsys.readouterr().err
    names = [one.name for one in experiments()]
    listed = capsys.readouterr().out
    page = (report / "index.html").read_text()
    results = {one["name"]: one for one in json.loads((report / "results.json").read_text())["experiments"]}
    assert list(results) == names
    for name in names:
        found = results[name]
        assert found["rows"], name
        assert len(found["sentence"]) > 20, name
        assert name in listed
        assert page.count(f'id="{name}"') == 1
        kept = work / "outcomes" / f"scale-{QUICK}-seed-1" / f"{name}.parquet"
        assert pq.read_table(kept).num_rows == len(found["rows"])

    before = _points(work)
    assert main(command) == 0
    assert _points(work) == before, "a second run measures nothing again"
    assert (report / "index.html").read_text() == page

    assert main(["lab", "report", *command[2:6], "--report", str(tmp_path / "again")]) == 0
    assert (tmp_path / "again" / "index.html").read_text() == page


def _points(work: Path) -> dict[Path, int]:
    return {path: path.stat().st_mtime_ns for path in (work / "points").rglob("*.json")}


def test_every_paper_has_experiments_and_states_what_it_finds() -> None:
    listed = experiments()
    assert {one.module.rpartition(".")[2] for one in listed} <= set(MODULES)
    for one in listed:
        assert one.claim.endswith("."), one.name
        assert one.chart is None or all(one.chart.y), one.name


def test_an_experiment_finds_the_same_however_many_tasks_run_at_once(spark: SparkSession, tmp_path: Path) -> None:
    outcomes = [
        negative_space.figure_10(Lab(spark, tmp_path / str(slots), scale=QUICK, slots=slots)) for slots in (1, 4)
    ]
    assert outcomes[0] == outcomes[1]


def test_the_list_names_them_all(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["lab", "list"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines] == [one.name for one in experiments()]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["run", "figure-0"], "no experiment 'figure-0'"),
        (["run", "--scale", "0"], "'0' is not a share"),
        (["run", "--scale", "2"], "'2' is not a share"),
    ],
)
def test_mistakes_are_one_line(arguments: list[str], said: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["lab", *arguments]) == 1
    told = capsys.readouterr().err
    assert said in told
    assert told.count("\n") == 1
