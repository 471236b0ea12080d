"""What a broker does before it listens."""

from __future__ import annotations

import subprocess
import sys

NEEDED = ("covey.matching.bulk.parsing", "covey.matching.segment", "covey.matching.joining")


def test_what_many_subscriptions_need_is_there_after_a_rehearsal_and_not_before() -> None:
    program = (
        "import sys, covey.network.server\n"
        f"needed = {NEEDED!r}\n"
        "print(any(name in sys.modules for name in needed))\n"
        "from covey.network.rehearsal import rehearse\n"
        "rehearse()\n"
        "print(all(name in sys.modules for name in needed))\n"
    )
    said = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert said.stdout.split() == ["False", "True"]
    assert not said.stderr
