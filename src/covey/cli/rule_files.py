"""Rules that are files, as the commands read them: each bad one reported by its file."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from covey.cli.options import MeaningOptions
from covey.cli.terminal import Report, Step, one_line
from covey.errors import CoveyError
from covey.language import in_sql
from covey.matching import BadSubscription
from covey.matching.bulk.rule_files import rule_texts


class RuleFiles:
    """The rules as (id, filter) pairs, as `SubscriptionFile` has those of a table."""

    def __init__(self, path: str, options: MeaningOptions) -> None:
        self.report = Report("subscription", path)
        self._path = path
        self._dialect = options.dialect
        self._places: list[str] = []

    def place(self, pair: int) -> str:
        """Where the pair of that number stands."""
        return self._places[pair]

    def pairs(self, step: Step) -> Iterator[tuple[str, Any]]:
        """The rules that can be read."""
        for number, (id, _, text) in enumerate(rule_texts(self._path)):
            step(number, 0, None)
            try:
                if isinstance(text, CoveyError):
                    raise text
                pair = id, text if self._dialect == "sql" else in_sql(text, self._dialect)
            except CoveyError as error:
                self._places.append(id)
                yield id, error
            else:
                self._places.append(id)
                yield pair

    def settle(self, errors: Sequence[BadSubscription]) -> None:
        """Report all rules that can't be used."""
        for bad in errors:
            self.report.bad(self._places[bad.row], one_line(bad.error))
