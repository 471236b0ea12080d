"""The tree of a condition, as Spark's grammar has it.

Nodes are values: equal conditions are equal trees, so that what two rules share is computed once. A node prints itself
as SQL that Spark reads back as the same tree, every operand in parentheses, every name in backquotes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields, replace
from decimal import Decimal
from typing import Any
from typing import Literal as OneOf


@dataclass(frozen=True, slots=True)
class Node:
    """A part of a condition."""

    def sql(self) -> str:
        """It as Spark reads it."""
        raise NotImplementedError

    def children(self) -> Iterator[Node]:
        """Its operands, from left to right."""
        for field in fields(self):
            yield from _nodes(getattr(self, field.name))


def _nodes(value: object) -> Iterator[Node]:
    if isinstance(value, Node):
        yield value
    elif isinstance(value, tuple):
        for one in value:
            yield from _nodes(one)


def inside(node: Node) -> Iterator[Node]:
    """A node and all that is in it, parents first."""
    waiting = [node]
    while waiting:
        found = waiting.pop()
        yield found
        waiting.extend(reversed(list(found.children())))


def quoted(name: str) -> str:
    """A name in backquotes."""
    return "`" + name.replace("`", "``") + "`"


def parameters_sql(names: tuple[str, ...]) -> str:
    """The parameters of a lambda function; only several stand in parentheses."""
    written = ", ".join(quoted(name) for name in names)
    return written if len(names) == 1 else f"({written})"


LiteralKind = OneOf["integer", "decimal", "string", "boolean", "null", "other"]


@dataclass(frozen=True, slots=True)
class Literal(Node):
    """A constant as it is written. Of kind "other" is all that only Spark is asked to read."""

    text: str
    kind: LiteralKind
    value: int | Decimal | str | bool | None = None

    def sql(self) -> str:  # noqa: D102
        return f"({self.text})" if self.text.startswith("-") else self.text


@dataclass(frozen=True, slots=True)
class Name(Node):
    """A column, or a field inside one: its parts without their backquotes."""

    parts: tuple[str, ...]

    def sql(self) -> str:  # noqa: D102
        return ".".join(quoted(part) for part in self.parts)


@dataclass(frozen=True, slots=True)
class Variable(Node):
    """The parameter of a lambda function, and fields inside it."""

    parts: tuple[str, ...]

    def sql(self) -> str:  # noqa: D102
        return ".".join(quoted(part) for part in self.parts)


@dataclass(frozen=True, slots=True)
class Field(Node):
    """`record.field`, where the record is no plain name."""

    record: Node
    name: str

    def sql(self) -> str:  # noqa: D102
        return f"({self.record.sql()}).{quoted(self.name)}"


@dataclass(frozen=True, slots=True)
class Item(Node):
    """`list[0]`, `map['key']`."""

    base: Node
    key: Node

    def sql(self) -> str:  # noqa: D102
        return f"{_operand(self.base)}[{self.key.sql()}]"


@dataclass(frozen=True, slots=True)
class VariantPath(Node):
    """`variant:path.to[0].it`."""

    base: Node
    path: str

    def sql(self) -> str:  # noqa: D102
        return f"{_operand(self.base)}:{self.path}"


@dataclass(frozen=True, slots=True)
class Unary(Node):
    """`- x`, `+ x`, `~ x`."""

    operator: str
    operand: Node

    def sql(self) -> str:  # noqa: D102
        return f"{self.operator} ({self.operand.sql()})"


@dataclass(frozen=True, slots=True)
class Binary(Node):
    """Arithmetic, bits, `||` and comparisons."""

    operator: str
    left: Node
    right: Node

    def sql(self) -> str:  # noqa: D102
        return f"({self.left.sql()}) {self.operator} ({self.right.sql()})"


@dataclass(frozen=True, slots=True)
class Junction(Node):
    """Conditions joined by AND or by OR."""

    operator: OneOf["AND", "OR"]
    parts: tuple[Node, ...]

    def sql(self) -> str:  # noqa: D102
        return f" {self.operator} ".join(f"({part.sql()})" for part in self.parts)


@dataclass(frozen=True, slots=True)
class Negation(Node):
    """`NOT condition`."""

    part: Node

    def sql(self) -> str:  # noqa: D102
        return f"NOT ({self.part.sql()})"


@dataclass(frozen=True, slots=True)
class IsTest(Node):
    """`IS NULL`, `IS TRUE`, `IS FALSE`, `IS UNKNOWN`."""

    part: Node
    what: OneOf["NULL", "TRUE", "FALSE", "UNKNOWN"]

    def sql(self) -> str:  # noqa: D102
        return f"({self.part.sql()}) IS {self.what}"


@dataclass(frozen=True, slots=True)
class InList(Node):
    """`value IN (items)`."""

    value: Node
    items: tuple[Node, ...]

    def sql(self) -> str:  # noqa: D102
        return f"({self.value.sql()}) IN ({', '.join(item.sql() for item in self.items)})"


@dataclass(frozen=True, slots=True)
class BetweenTest(Node):
    """`value BETWEEN low AND high`."""

    value: Node
    low: Node
    high: Node

    def sql(self) -> str:  # noqa: D102
        return f"({self.value.sql()}) BETWEEN ({self.low.sql()}) AND ({self.high.sql()})"


@dataclass(frozen=True, slots=True)
class LikeTest(Node):
    """`value LIKE pattern`, `ILIKE`, `RLIKE`; `escape` is the literal behind ESCAPE."""

    operator: OneOf["LIKE", "ILIKE", "RLIKE"]
    value: Node
    pattern: Node
    escape: Literal | None = None

    def sql(self) -> str:  # noqa: D102
        escape = f" ESCAPE {self.escape.sql()}" if self.escape is not None else ""
        return f"({self.value.sql()}) {self.operator} ({self.pattern.sql()}){escape}"


@dataclass(frozen=True, slots=True)
class Call(Node):
    """A function's result; its name is in lower case."""

    name: str
    arguments: tuple[Node, ...]

    def sql(self) -> str:  # noqa: D102
        name = self.name if self.name.isidentifier() else ".".join(map(quoted, self.name.split(".")))
        return f"{name}({', '.join(one.sql() for one in self.arguments)})"


@dataclass(frozen=True, slots=True)
class Lambda(Node):
    """`(x, y) -> body`."""

    parameters: tuple[str, ...]
    body: Node

    def sql(self) -> str:  # noqa: D102
        return f"{parameters_sql(self.parameters)} -> {self.body.sql()}"


@dataclass(frozen=True, slots=True)
class Case(Node):
    """`CASE [operand] WHEN … THEN … ELSE … END`."""

    operand: Node | None
    branches: tuple[tuple[Node, Node], ...]
    otherwise: Node | None

    def sql(self) -> str:  # noqa: D102
        operand = f" {self.operand.sql()}" if self.operand is not None else ""
        branches = "".join(f" WHEN {when.sql()} THEN {then.sql()}" for when, then in self.branches)
        otherwise = f" ELSE {self.otherwise.sql()}" if self.otherwise is not None else ""
        return f"CASE{operand}{branches}{otherwise} END"


@dataclass(frozen=True, slots=True)
class CastTo(Node):
    """`CAST(value AS type)`, `value::type`, or with `trying` `TRY_CAST`."""

    value: Node
    type: str
    trying: bool = False

    def sql(self) -> str:  # noqa: D102
        return f"{'TRY_CAST' if self.trying else 'CAST'}({self.value.sql()} AS {self.type})"


@dataclass(frozen=True, slots=True)
class Collated(Node):
    """`value COLLATE name`."""

    value: Node
    collation: str

    def sql(self) -> str:  # noqa: D102
        return f"({self.value.sql()}) COLLATE {self.collation}"


@dataclass(frozen=True, slots=True)
class Named(Node):
    """`value AS name`, a field of the record that struct() makes."""

    value: Node
    name: str

    def sql(self) -> str:  # noqa: D102
        return f"{self.value.sql()} AS {quoted(self.name)}"


@dataclass(frozen=True, slots=True)
class Word(Node):
    """A word of the grammar that stands where an argument does: the unit in `timestampdiff(DAY, a, b)`."""

    text: str

    def sql(self) -> str:  # noqa: D102
        return self.text


def _operand(node: Node) -> str:
    return node.sql() if isinstance(node, (Name, Variable, Call, Item)) else f"({node.sql()})"


def rebuilt(node: Node, change: Callable[[Node], Node]) -> Node:
    """A node with other children."""
    changed = {
        field.name: _changed(getattr(node, field.name), change)
        for field in fields(node)
        if any(True for _ in _nodes(getattr(node, field.name)))
    }
    return replace(node, **changed) if changed else node


def _changed(value: Any, change: Callable[[Node], Node]) -> Any:
    if isinstance(value, Node):
        return change(value)
    return tuple(_changed(one, change) for one in value) if isinstance(value, tuple) else value
