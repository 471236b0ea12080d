"""Points: run as Spark tasks, kept when finished, not measured twice."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from covey.lab.experiments import Chart, Experiment, LabError, Outcome, Paper, Row
from covey.lab.points import MOST_POINTS, Lab, code_version
from covey.lab.runs import Settings, all_kept, kept, run

PAPER = Paper("a-paper", "Somebody", "Something", 2001)


def tallied(marks: Path, wrong: int | None = None) -> Callable[[Row], Row]:
    """A measurement that leaves a mark each time, and fails on one value."""
    directory = str(marks)

    def measure(point: Row) -> Row:
        import tempfile

        if point["x"] == wrong:
            raise ValueError("not this one")
        tempfile.mkstemp(dir=directory)
        return {"double": 2 * int(str(point["x"])), "seen_seed": point["seed"]}

    return measure


def marks(directory: Path) -> int:
    return len(list(directory.iterdir()))


@pytest.fixture
def tally(tmp_path: Path) -> Path:
    (tmp_path / "marks").mkdir()
    return tmp_path / "marks"


def points(*values: int) -> list[Row]:
    return [{"x": value} for value in values]


def test_points_give_their_rows_in_order_with_the_seed(spark: SparkSession, tmp_path: Path, tally: Path) -> None:
    lab = Lab(spark, tmp_path, seed=9)
    assert lab.points(points(3, 1, 2), tallied(tally)) == [
        {"x": 3, "double": 6, "seen_seed": 9},
        {"x": 1, "double": 2, "seen_seed": 9},
        {"x": 2, "double": 4, "seen_seed": 9},
    ]


def test_a_finished_point_is_measured_once(spark: SparkSession, tmp_path: Path, tally: Path) -> None:
    first = Lab(spark, tmp_path).points(points(1, 2), tallied(tally))
    again = Lab(spark, tmp_path)
    assert again.points(points(1, 2, 3), tallied(tally))[:2] == first
    assert marks(tally) == 3
    assert again.seconds > 0


@pytest.mark.parametrize("change", [{"seed": 2}, {"scale": 0.5}])
def test_another_seed_or_scale_is_another_point(
    spark: SparkSession, tmp_path: Path, tally: Path, change: dict[str, float]
) -> None:
    Lab(spark, tmp_path).points(points(1), tallied(tally))
    Lab(spark, tmp_path, **change).points(points(1), tallied(tally))  # type: ignore[arg-type]
    assert marks(tally) == 2


def test_points_finished_before_a_failure_stay(spark: SparkSession, tmp_path: Path, tally: Path) -> None:
    with pytest.raises(Exception, match="not this one"):
        Lab(spark, tmp_path, slots=1).points(points(1, 2, 3), tallied(tally, wrong=3))
    assert marks(tally) == 2
    assert len(Lab(spark, tmp_path).points(points(1, 2, 3), tallied(tally))) == 3
    assert marks(tally) == 3


def test_a_point_may_give_several_rows(spark: SparkSession, tmp_path: Path) -> None:
    rows = Lab(spark, tmp_path).points([{"n": 2}], lambda point: [{"i": i} for i in range(int(str(point["n"])))])
    assert rows == [{"n": 2, "i": 0}, {"n": 2, "i": 1}]


def test_sizes_follow_the_scale_within_bounds(spark: SparkSession, tmp_path: Path) -> None:
    lab = Lab(spark, tmp_path, scale=0.1)
    assert (lab.size(1_000), lab.size(1_000, least=300), lab.size(100, least=300)) == (100, 300, 100)
    with pytest.raises(LabError, match="above 0"):
        Lab(spark, tmp_path, scale=0)


def test_too_many_points_are_refused(spark: SparkSession, tmp_path: Path) -> None:
    with pytest.raises(LabError, match="the most is"):
        Lab(spark, tmp_path).points(points(*range(MOST_POINTS + 1)), lambda point: point)


def test_a_stored_workload_is_drawn_once(spark: SparkSession, tmp_path: Path) -> None:
    made = []

    def make(session: SparkSession) -> object:
        made.append(1)
        return session.range(5)

    lab = Lab(spark, tmp_path)
    paths = {lab.stored("five", make, rows=5) for _ in range(2)}  # type: ignore[arg-type]
    assert len(made) == len(paths) == 1
    assert spark.read.parquet(paths.pop()).count() == 5


def test_the_code_version_follows_what_a_module_uses_of_the_lab() -> None:
    versions = {code_version(f"covey.lab.{name}") for name in ("negative_space", "bdd_filtering", "charts")}
    assert len(versions) == 3
    assert code_version("covey.lab.charts") in versions


def registered(name: str, function: Callable[[Lab], Outcome]) -> Experiment:
    return Experiment(name, PAPER, "table 1", "A title", "A claim", function, (), Chart("x", ("y",)), __name__)


def test_an_experiment_that_fails_is_no_end_of_the_others(spark: SparkSession, tmp_path: Path) -> None:
    def broken(lab: Lab) -> Outcome:
        raise LabError("nothing to see")

    def sound(lab: Lab) -> Outcome:
        return Outcome([{"x": 1, "y": 2.5}], {"p": None}, (), "It is so.")

    settings = Settings(tmp_path, 0.5, 3)
    experiments = [registered("broken", broken), registered("sound", sound)]
    bad, good = run(spark, experiments, settings)
    assert (bad.outcome, bad.problem) == (None, "nothing to see")
    assert "LabError: nothing to see" in settings.trace(bad.experiment).read_text()
    assert good.outcome is not None
    assert set(all_kept(experiments, settings)) == {"sound"}
    back = kept(experiments[1], settings)
    assert back is not None
    assert back.outcome == good.outcome
    assert kept(experiments[1], Settings(tmp_path, 0.5, 4)) is None


def test_a_spoilt_outcome_is_said_by_its_file(tmp_path: Path) -> None:
    one, settings = registered("sound", lambda lab: Outcome([], {}, (), "")), Settings(tmp_path)
    settings.outcomes.mkdir(parents=True)
    (settings.outcomes / "sound.json").write_text("{}")
    with pytest.raises(LabError, match=r"sound\.json is not an outcome"):
        kept(one, settings)


def test_points_kept_before_a_moment_can_be_measured_again(spark: SparkSession, tmp_path: Path, tally: Path) -> None:
    for since in (0.0, 0.0, time.time() + 1_000):
        Lab(spark, tmp_path, since=since).points(points(1), tallied(tally))
    assert marks(tally) == 2
