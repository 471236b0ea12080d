"""What goes to the screen while a bar stands there, and that nobody's streams are exchanged for it."""

from __future__ import annotations

import subprocess
import sys

from tests.cli.terminals import in_terminal

SCRIPT = """
import sys
from covey.cli.terminal import complain, progress
streams = sys.stdout, sys.stderr
with progress("rows", shown=True) as step:
    assert (sys.stdout, sys.stderr) == streams
    step(3, 3, 10)
    complain("one [bold]thing[/] to mend :smile:")
complain("and another")
"""


def test_complaints_stand_above_a_bar_and_streams_stay_what_they_are() -> None:
    code, shown = in_terminal([sys.executable, "-c", SCRIPT])
    assert code == 0, shown
    assert "3 rows" in shown
    lines = [line for line in shown.splitlines() if "covey: " in line]
    assert [line[line.index("covey: ") :] for line in lines] == [
        "covey: one [bold]thing[/] to mend :smile:",
        "covey: and another",
    ]
    # The bar is wiped from its line before the complaint is written there, and drawn again below.
    assert "\x1b[2Kcovey: one" in shown


def test_numba_words_its_errors_without_exchanging_the_streams() -> None:
    """Where colorama is installed it would, for each error that it makes while it compiles, in whatever thread."""
    script = """
import sys
from covey.cli import main
assert main(["explain", "x < 5", '{"x": 1}']) == 0
import colorama.initialise
from numba.core import errors
colorama.initialise.sys = None  # whoever exchanges a stream now fails
assert errors.termcolor().errmsg("text") == "text"
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=120, check=False)
    assert (done.returncode, done.stderr) == (0, "")
