"""The parameters of lambda functions: what types they have.

Spark's analyser gives types to expressions over columns only. So a parameter stands for an element of what the function
is called on: `exists(tags, x -> lower(x) = 'a')` has the types that `lower(tags[0])` and `tags[0]` have.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from covey.spark.conditions import syntax

_ZERO: Final = syntax.Literal("0", "integer", 0)


def with_elements(call: syntax.Call, function: syntax.Lambda) -> Callable[[syntax.Node], syntax.Node]:
    """A function that puts elements for the parameters of a lambda function, in anything from its body."""
    lists = [one for one in call.arguments if not isinstance(one, syntax.Lambda)]
    if call.name.startswith(("map_", "transform_")):
        sources: list[syntax.Node] = [syntax.Call("map_keys", (lists[0],)), syntax.Call("map_values", (lists[0],))]
        elements: list[syntax.Node] = [syntax.Item(source, _ZERO) for source in sources]
    elif call.name == "zip_with":
        elements = [syntax.Item(one, _ZERO) for one in lists]
    else:
        elements = [syntax.Item(one, _ZERO) for one in lists[:1]] + [_ZERO]
    named = {name.lower(): element for name, element in zip(function.parameters, elements, strict=False)}

    def replaced(node: syntax.Node) -> syntax.Node:
        if not isinstance(node, syntax.Variable) or node.parts[0].lower() not in named:
            return syntax.rebuilt(node, replaced)
        found = named[node.parts[0].lower()]
        for part in node.parts[1:]:
            found = syntax.Field(found, part)
        return found

    return replaced
