"""Events as they can travel: values of NumPy and pandas, which tables are full of, as Python's own."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from covey.routing.plain_events import is_plain


def travelling(event: Mapping[str, Any]) -> dict[str, Any]:
    """An event with values that can be packed; others are left, for the error that names them."""
    given = event if type(event) is dict else dict(event)
    return given if is_plain(given) else {name: _value(value) for name, value in given.items()}


def _value(value: Any) -> Any:
    if isinstance(value, Mapping):
        return travelling(value)
    if isinstance(value, (list, tuple)):
        return [_value(element) for element in value]
    if type(value).__name__ in ("NAType", "NaTType"):  # pandas' missing values
        return None
    dtype, to_list = getattr(value, "dtype", None), getattr(value, "tolist", None)
    if dtype is not None and callable(to_list):
        return value.astype("datetime64[us]").tolist() if dtype.kind == "M" else to_list()
    return value


def address_of(url: str) -> str:
    """A broker's address; one without a scheme is of a plain WebSocket."""
    return url if "://" in url else f"ws://{url}"
