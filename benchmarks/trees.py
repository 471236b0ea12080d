"""Filters as nested lists: the form in which peers receive them, and the SQL text that covey receives.

A tree is JSON as it stands: `["and", ...]`, `["or", ...]`, `["not", x]`, `["cmp", attr, op, value]`,
`["in", attr, [values]]`, `["between", attr, lo, hi]`, `["contains", attr, s]`, `["icontains", attr, s]` (whatever the
case of letters) and `["substring_of", attr, s]` (the attribute's value is a substring of `s`). The SQL is always
rendered from the tree, so that the two cannot disagree.
"""

from __future__ import annotations

from typing import Any

Tree = list[Any]


def literal(value: object) -> str:
    """A constant as SQL text."""
    if isinstance(value, bool):
        return "TRUE" if value else "FALSE"
    if isinstance(value, str):
        return "'" + value.replace("'", "''") + "'"
    return repr(value)


def to_sql(tree: Tree) -> str:
    """The tree as the text of a WHERE clause."""
    kind = tree[0]
    if kind == "cmp":
        operator = "<>" if tree[2] == "!=" else tree[2]
        return f"{tree[1]} {operator} {literal(tree[3])}"
    if kind == "between":
        return f"{tree[1]} BETWEEN {tree[2]!r} AND {tree[3]!r}"
    if kind == "in":
        return f"{tree[1]} IN ({', '.join([literal(value) for value in tree[2]])})"
    if kind == "and":
        return " AND ".join([_operand(child) for child in tree[1:]])
    if kind == "or":
        return " OR ".join([_operand(child) for child in tree[1:]])
    if kind == "not":
        return "NOT " + _operand(tree[1])
    if kind == "icontains":
        return f"{tree[1]} ILIKE {literal('%' + tree[2] + '%')}"
    return f"{kind}({tree[1]}, {literal(tree[2])})"


def _operand(tree: Tree) -> str:
    return f"({to_sql(tree)})" if tree[0] in ("and", "or") else to_sql(tree)


def count_predicates(tree: Tree) -> int:
    """How many leaves the tree has."""
    return sum(map(count_predicates, tree[1:])) if tree[0] in ("and", "or", "not") else 1


def depth(tree: Tree) -> int:
    """Levels of the tree; a single predicate has one."""
    return 1 + max(map(depth, tree[1:])) if tree[0] in ("and", "or", "not") else 1
