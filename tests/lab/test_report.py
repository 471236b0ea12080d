"""The page: every experiment, numbers and paper side by side, nothing from outside, the same text for the same rows."""

from __future__ import annotations

import json
import re
from html.parser import HTMLParser
from pathlib import Path

import pytest

from covey.lab.charts import figure, series, shown
from covey.lab.experiments import (
    Cell,
    Chart,
    Experiment,
    LabError,
    Outcome,
    Panel,
    Paper,
    chosen,
    experiment,
    registered,
)
from covey.lab.open_questions import QUESTIONS
from covey.lab.papers import experiments
from covey.lab.points import Lab
from covey.lab.readings import averaged, number, only, ratio, where
from covey.lab.report import PAGE, RESULTS, write
from covey.lab.runs import Finished, Settings, keep, other_seeds
from covey.lab.verdicts import Check, Setting, true

PAPER = Paper("doe", "Doe & Roe", "On <filters>", 1999)
CHART = Chart("n", ("nodes",), ("order",))
ROWS = [{"n": n, "order": order, "nodes": n * 3} for order in ("one", "two") for n in (10, 20, 40)]
THEIRS = [{"n": 10, "order": "one", "nodes": 31}, {"n": 40, "order": "one", "nodes": None}]

EXPERIMENTS = [
    Experiment(f"doe-table-{i}", PAPER, f"table {i}", f"Title {i}", f"Claim {i}", lambda lab: None, THEIRS, CHART)  # type: ignore[arg-type, return-value]
    for i in (1, 2, 3, 4)
]
CHECKS = (Check("nodes over queries", "3 × <about>", 3.0, 2.5, 3.5, "×"), true("they rise", True))
HELD = Setting("the first", CHECKS)
MISSED = Setting("another", (Check("nodes over queries", "3 ×", 9.0, 2.5, 3.5, "×"),))
OUTCOME = Outcome(ROWS, {"a_b": 1.5}, (HELD, MISSED), "Three <times> the nodes.", (Panel("More", ROWS, CHART),))
FINISHED = {
    "doe-table-1": Finished(EXPERIMENTS[0], OUTCOME, 1.25),
    "doe-table-2": Finished(EXPERIMENTS[1], Outcome([], {}, (MISSED,), "Not so."), 0.5),
    "doe-table-3": Finished(EXPERIMENTS[2], None, 0.0, "out of luck"),
}


class Balanced(HTMLParser):
    """Fails where an element isn't closed in turn."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.links: list[str] = []
        self.ids: set[str] = set()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag not in ("meta", "br"):
            self.open.append(tag)
        self.note(attrs)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.note(attrs)

    def note(self, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        self.links += [value for name in ("href", "src") if (value := given.get(name))]
        self.ids |= {value for value in [given.get("id")] if value}

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


@pytest.fixture
def page(tmp_path: Path) -> str:
    path = write(tmp_path / "r", EXPERIMENTS, FINISHED, scale=0.5, seed=3, machine={"Cores": "2"})
    assert path == tmp_path / "r" / PAGE
    return path.read_text()


def test_the_page_has_every_experiment_with_its_verdict(page: str) -> None:
    for one in EXPERIMENTS:
        assert page.count(one.claim) == 2
        assert f'id="{one.name}"' in page
    badges = re.findall(r'<b class="(?:holds|range|fails|open)">([a-z][^<]+)</b>', page)
    words = [badge for badge in badges if badge != "yes"]
    assert words == ["holds in this range", "does not hold", "failed", "not run"] * 2
    assert "out of luck" in page
    assert "Of 2 findings: 1 holds in this range, 1 does not hold. Not run at this size: 1." in page


def summary_of(name: str, page: str) -> str:
    (row,) = re.findall(rf'<tr><td><a href="#{name}">.*?</tr>', page)
    return str(row)


def test_the_summary_has_ours_the_papers_the_range_and_a_small_plot_in_one_row(page: str) -> None:
    row = summary_of("doe-table-1", page)
    assert 'nodes over queries <b class="holds">3 ×</b>' in row
    assert "paper: 3 × &lt;about&gt;; range 3 × to 9 ×" in row
    assert 'they rise <b class="holds">yes</b></li>' in row
    assert row.count('<svg class="small"') == 1


def test_the_summary_names_what_fails_first_and_counts_the_rest(tmp_path: Path) -> None:
    checks = (*(true(f"number {at}", True) for at in range(4)), true("the last", False))
    finished = {"doe-table-1": Finished(EXPERIMENTS[0], Outcome(ROWS, {}, (Setting("s", checks),), "So."), 1.0)}
    row = summary_of("doe-table-1", write(tmp_path, EXPERIMENTS, finished, scale=1, seed=1, machine={}).read_text())
    assert re.findall(r"<li>([^<]*) <b", row) == ["the last", "number 0", "number 1"]
    assert "and 2 more that hold" in row


def test_the_page_says_whether_other_seeds_come_to_the_same_verdict(tmp_path: Path) -> None:
    changed = FINISHED | {"doe-table-1": FINISHED["doe-table-2"]}
    path = write(
        tmp_path, EXPERIMENTS, FINISHED, scale=1, seed=1, machine={}, seeds={4: changed, 2: FINISHED, 3: FINISHED}
    )
    page = path.read_text()
    assert "seeds 2 and 3: the same; seed 4: does not hold" in summary_of("doe-table-1", page)
    assert "seeds 2 and 3 and 4: the same" in summary_of("doe-table-2", page)
    assert "Of 3 run under seed 2, none came to another verdict." in page
    assert "Of 3 run under seed 4, 1 came to another verdict." in page
    (first, *_) = json.loads((tmp_path / RESULTS).read_text())["experiments"]
    assert first["verdicts_under_seeds"] == {
        "2": "holds in this range",
        "3": "holds in this range",
        "4": "does not hold",
    }


def test_outcomes_of_other_seeds_are_those_of_the_same_scale(tmp_path: Path) -> None:
    one = EXPERIMENTS[0]
    for scale, seed in ((1.0, 1), (1.0, 2), (0.1, 3)):
        keep(Finished(one, OUTCOME, 1.0), Settings(tmp_path, scale, seed))
    found = other_seeds(EXPERIMENTS, Settings(tmp_path))
    assert {seed: list(outcomes) for seed, outcomes in found.items()} == {2: [one.name]}


def test_an_article_has_each_number_in_each_setting_and_the_code(page: str) -> None:
    (article,) = re.findall(r'<article id="doe-table-1">.*?</article>', page, re.DOTALL)
    assert "with the first; not with another." in article
    assert "<td>nodes over queries</td><td>3 × &lt;about&gt;</td><td>2.50 × to 3.50 ×</td>" in article
    assert '<b class="holds">3 ×</b>' in article
    assert '<b class="fails">9 ×</b>' in article
    assert "lambda lab: None" in article


def test_numbers_that_only_some_settings_have_are_there_too(tmp_path: Path) -> None:
    settings = tuple(Setting(name, (true("of all", True), true(f"of {name}", False))) for name in ("one", "two"))
    finished = {"doe-table-1": Finished(EXPERIMENTS[0], Outcome(ROWS, {}, settings, "So."), 1.0)}
    page = write(tmp_path, EXPERIMENTS, finished, scale=1, seed=1, machine={}).read_text()
    (numbers,) = re.findall(r'<table class="numbers">.*?</table>', page)
    yes, no = ('<td class="n"><b class="holds">yes</b></td>', '<td class="n"><b class="fails">no</b></td>')
    assert re.findall(r"<tr><td>(of \w+)</td><td>yes</td><td></td>(.*?)</tr>", numbers) == [
        ("of all", yes + yes), ("of one", no + "<td></td>"), ("of two", "<td></td>" + no),
    ]  # fmt: skip


def test_open_questions_point_to_experiments_that_there_are() -> None:
    names = {one.name for one in experiments()}
    for question in QUESTIONS:
        assert set(question.experiments) <= names, question.question
        assert question.answer.endswith(".")


def test_the_page_is_whole_and_needs_nothing_from_outside(page: str) -> None:
    parser = Balanced()
    parser.feed(page)
    assert parser.open == []
    assert all(link.startswith("#") and link[1:] in parser.ids for link in parser.links)
    assert not re.search(r"https?://|@import|url\(", page)
    assert "Three &lt;times&gt; the nodes." in page
    assert "On &lt;filters&gt;" in page


def test_the_same_rows_give_the_same_page_and_json(page: str, tmp_path: Path) -> None:
    again = write(tmp_path / "s", EXPERIMENTS, FINISHED, scale=0.5, seed=3, machine={"Cores": "2"})
    assert again.read_text() == page
    content = json.loads((tmp_path / "s" / RESULTS).read_text())
    assert [one["name"] for one in content["experiments"]] == [one.name for one in EXPERIMENTS]
    assert content["experiments"][0]["rows"] == ROWS
    assert content["experiments"][0]["ours"] == "nodes over queries 3 ×; they rise"
    assert content["experiments"][0]["range"] == "nodes over queries 3 × to 9 ×; they rise in 1 of 1"
    assert content["experiments"][2]["problem"] == "out of luck"


def test_a_chart_has_a_line_for_each_series_and_dashes_for_the_paper() -> None:
    drawn = figure(CHART, ROWS, THEIRS)
    assert len(re.findall(r'<g class="c\d">', drawn)) == 2
    assert len(re.findall(r'<g class="c0 dash">', drawn)) == 1
    assert drawn.count("<circle") == len(ROWS) + 1
    assert set(series(CHART, ROWS)) == {"one", "two"}


@pytest.mark.parametrize(
    "chart",
    [
        Chart("n", ("nodes",), ("order",), log_x=True, log_y=True),
        Chart("order", ("nodes",), ("n",), kind="bar"),
        Chart("order", ("nodes",)),
        Chart("n", ("nodes",), paper="beside"),
        Chart("n", ("nodes",), paper="none"),
    ],
)
def test_every_kind_of_chart_stays_inside_its_frame(chart: Chart) -> None:
    drawn = figure(chart, ROWS, THEIRS)
    for x, y in re.findall(r'<circle cx="([\d.-]+)" cy="([\d.-]+)"', drawn):
        assert 0 <= float(x) <= 440
        assert 0 <= float(y) <= 270
    for x, width in re.findall(r'<rect x="([\d.-]+)" y="[\d.-]+" width="([\d.-]+)"', drawn):
        assert 0 <= float(x) <= float(x) + float(width) <= 440
    assert ("the paper" in drawn) == (chart.paper != "none")


def test_zeros_and_single_values_can_be_drawn() -> None:
    assert figure(CHART, [{"n": 1, "order": "one", "nodes": 0}])
    assert figure(Chart("n", ("nodes",), log_y=True), [{"n": 1, "nodes": 0}]) == ""
    assert figure(CHART, []) == ""


@pytest.mark.parametrize(
    ("value", "text"),
    [(None, "–"), (True, "yes"), (1234567, "1,234,567"), (0.0, "0"), (0.012345, "0.0123"), (2.0, "2"),
     (1234.5, "1,234"), (99.96, "100"), ("x", "x"), (float("inf"), "inf")],
)  # fmt: skip
def test_cells_are_shown_for_people(value: Cell, text: str) -> None:
    assert shown(value) == text


def test_rows_are_read_by_their_columns() -> None:
    assert number(only(ROWS, n=20, order="two"), "nodes") == 60
    assert ratio(ROWS[2], ROWS[0], "nodes") == 4
    assert len(where(ROWS, order="one")) == 3
    assert averaged(ROWS, by=("order",), of=("n", "nodes"))[0] == {"order": "one", "n": 23, "nodes": 70}
    with pytest.raises(LabError, match="there should be one"):
        only(ROWS, order="one")
    with pytest.raises(LabError, match="holds no number"):
        number(ROWS[0], "order")


def test_an_experiment_is_found_by_its_name_or_its_paper() -> None:
    assert chosen(EXPERIMENTS, ["doe-table-2"]) == EXPERIMENTS[1:2]
    assert chosen(EXPERIMENTS, ["doe"]) == chosen(EXPERIMENTS, []) == EXPERIMENTS
    with pytest.raises(LabError, match="covey lab list"):
        chosen(EXPERIMENTS, ["figure 99"])


def test_an_experiment_is_named_by_its_paper_and_place_and_only_once() -> None:
    def one(lab: Lab) -> Outcome:
        return OUTCOME

    register = experiment(paper=PAPER, place="Figure 1 (a)", title="t", claim="c")
    register(one)
    assert registered()["doe-figure-1-a"].run is one
    assert "doe-figure-1-a" not in {listed.name for listed in experiments()}, "only the papers' modules are listed"
    one.__module__ = "elsewhere"
    with pytest.raises(LabError, match="two experiments are called"):
        register(one)
