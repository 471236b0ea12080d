"""What adaptive filtering judges a link by (R5; Mühl et al., section 2.8)."""

from __future__ import annotations

from dataclasses import dataclass

from covey.routing.config import AdaptiveFiltering
from covey.routing.undo import Remembered


@dataclass(slots=True)
class Traffic(Remembered):
    """What adaptive filtering judges by."""

    filtering: bool = True
    considered: int = 0
    matched: int = 0
    hold: int = 0
    came: int = 0
    useless: int = 0

    def count(self, matched: bool, adaptive: AdaptiveFiltering) -> None:
        """An event was considered for the link; filtering stops where most of them match."""
        self.considered += 1
        self.matched += matched
        self.hold -= 1
        if self.considered >= adaptive.sample:
            if self.hold <= 0 and self.matched > adaptive.stop_above * self.considered:
                self.filtering = False
            self.considered = self.matched = 0

    def filter_again(self, adaptive: AdaptiveFiltering) -> None:
        """The neighbour asked for filtering; it stays for a while, whatever matches."""
        if not self.filtering:
            self.filtering = True
            self.hold = adaptive.patience * adaptive.sample
