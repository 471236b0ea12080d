"""What a broker says of an input in the middle of which something raised: a defect, of the broker and not of whoever
sent it."""

from __future__ import annotations

from covey.errors import CoveyError
from covey.routing.journal import Outputs


class DefectError(CoveyError):
    """An input couldn't be taken, and the broker is as it was before it came."""

    def __init__(self, cause: Exception, outputs: Outputs) -> None:
        super().__init__(f"the broker has a defect: {type(cause).__name__}: {cause}")
        self.outputs = outputs
        """What is to be done nevertheless: leases that ended before the input was looked at."""


class BrokenError(CoveyError):
    """The broker can't be brought back to what it was: it must be restored from its journal."""

    def __init__(self, cause: Exception) -> None:
        super().__init__(f"the broker has a defect and can't go on: {type(cause).__name__}: {cause}")
