"""Rules under a name, as SQL's functions have them in a worker: index files, and over which columns they hold.

A function of SQL learns the columns of the events only when it is called, in a worker, where Spark's analyser isn't at
hand. So rules are registered in one of two ways. Over events that are named beside them they are bound as
`match_events` binds them, and a call must bring columns of just these types. Without, only such rules are taken whose
reading doesn't depend on columns (`plain_rules`), and a call must bring columns that their constants can be compared
with as they are. Either way a call whose answer could be another than that of WHERE is an error that says why.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from pyspark.sql.types import DataType, StructType

from covey.errors import CoveyError
from covey.spark.plain_rules import Fields, unfit
from covey.spark.types import selection
from covey.spark.workers import IndexFile


@dataclass(frozen=True, slots=True)
class NamedRules:
    """Rules that are where workers find them."""

    name: str
    files: tuple[IndexFile, ...]
    attributes: tuple[str, ...]
    constants: Mapping[str, frozenset[int]]
    """By attribute, the kinds of its constants, where the events' columns aren't known."""
    types: Mapping[str, str] | None = None
    """The columns that rules were bound to, with their types; None where the events' columns aren't known."""
    computed: Mapping[str, str] = field(default_factory=dict)
    """Attributes that Spark computes, as SQL over the events."""
    by_schema: bool = False
    """Whether a schema of covey's says what attributes are."""
    id_type: str = "string"
    case_sensitive: bool = False

    def columns_in(self, schema: StructType) -> dict[str, str]:
        """The columns of the events in which attributes are, by the names that rules have for them; an error where the
        answer could be another than that of WHERE."""
        if self.by_schema:
            selection(schema, self.attributes)
            return {name: name for name in schema.names}
        found: dict[str, str] = {}
        for name in dict.fromkeys(self.types or (one.partition(".")[0] for one in self.attributes)):
            found[name] = self._column(schema, name)
        if self.types is None:
            self._comparable(schema)
        else:
            for name, kind in self.types.items():
                has = schema[found[name]].dataType.simpleString()
                if has != kind:
                    raise CoveyError(
                        f"rules {self.name!r} were registered over a column {name} of type {kind}, and here it is "
                        f"{has}; register them with events= that have these columns"
                    )
        return found

    def _column(self, schema: StructType, name: str) -> str:
        same = [one for one in schema.names if one == name or (not self.case_sensitive and one.lower() == name.lower())]
        if len(same) != 1:
            many = f"{len(same)} columns" if same else "no column"
            raise CoveyError(
                f"rules {self.name!r} name {name}, and the events have {many} of that name; "
                f"they have {', '.join(schema.names[:10])}"
            )
        return str(same[0])

    def _comparable(self, schema: StructType) -> None:
        wrong = unfit(self.constants, Fields(schema, case_sensitive=self.case_sensitive))
        if wrong:
            name = min(wrong)
            kind = _type_at(schema, name)
            why = "no column" if kind is None else f"of type {kind.simpleString()}"
            raise CoveyError(
                f"rules {self.name!r} name {name}, which is {why} here, and how Spark compares it is not known in a "
                "function; register them with events= that have these columns"
            )


def _type_at(schema: DataType, name: str) -> DataType | None:
    kind = schema
    for part in name.split("."):
        if not isinstance(kind, StructType) or part not in kind.names:
            return None
        kind = kind[part].dataType
    return kind


def called(rules: Mapping[str, NamedRules], name: str | None) -> NamedRules:
    """The rules that a call names."""
    found = None if name is None else rules.get(name)
    if found is None:
        known = ", ".join(map(repr, rules)) or "none"
        raise CoveyError(f"there are no rules {name!r}; registered are {known}")
    return found
