"""The page of conformance says what a run of the suites says, and nothing there is different."""

import pytest
from tools.conformance import suites
from tools.docs import conformance


def test_the_page_is_what_a_run_gives() -> None:
    if suites() is None:
        pytest.skip("the suites of others are not here; COVEY_SUITES says where they are")
    pytest.importorskip("sigma.rule", reason="pySigma is the extra sigma, which is not installed")
    assert conformance.PAGE.read_text(encoding="utf-8") == conformance.page(), "run make docs"


def test_nothing_is_different() -> None:
    rows = [line for line in conformance.PAGE.read_text(encoding="utf-8").splitlines() if line.startswith("| ")]
    counts = [row.split("|")[-2].strip() for row in rows[1 : rows.index("| suite | reason | cases |")]]
    assert len(counts) >= 6
    assert set(counts) == {"0"}
