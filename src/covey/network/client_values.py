"""Events as they can travel: values of NumPy and pandas, which tables are full of, as Python's own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from covey.network.errors import NetworkError
from covey.routing.plain_events import is_plain
from covey.routing.ranges import LONGEST_ID


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


def ids_of(given: str | int | Sequence[str | int] | None, events: int) -> list[str]:
    """The ids that a caller gave some events; none where it gave none."""
    if given is None:
        return []
    ids = [given] if isinstance(given, (str, int)) else list(given)
    if len(ids) != events:
        few = f"{len(ids):,} id{'' if len(ids) == 1 else 's'} for {events:,} event{'' if events == 1 else 's'}"
        raise NetworkError(f"{few}; each needs one of its own: id=[...]")
    texts = [str(one) for one in ids]
    wrong = next((one for one in texts if not 0 < len(one) <= LONGEST_ID), None)
    if wrong is not None:
        raise NetworkError(f"the id {wrong[:40]!r} has {len(wrong):,} characters; an id has 1 to {LONGEST_ID}")
    return texts


def address_of(url: str) -> str:
    """A broker's address; one without a scheme is of a plain WebSocket."""
    return url if "://" in url else f"ws://{url}"
