"""The keywords that matching functions share are those that subscriptions are placed with."""

from __future__ import annotations

import inspect
from typing import Any

import pytest

from covey.spark import match_events, match_files, matching
from covey.spark.options import SubscriptionOptions
from covey.spark.worker_files import place


def test_they_are_all_that_placing_subscriptions_takes() -> None:
    keywords = {
        name: parameter.annotation
        for name, parameter in inspect.signature(place).parameters.items()
        if parameter.kind is inspect.Parameter.KEYWORD_ONLY and name not in ("on_error", "as_json")
    }
    # What happens to bad rows, and whether events are JSON texts, is for each call to say in a way of its own.
    shared = {name: kind.__forward_arg__ for name, kind in SubscriptionOptions.__annotations__.items()}
    assert shared == keywords


@pytest.mark.parametrize(
    ("function", "given"), [(match_events, (None, None)), (matching, (None,)), (match_files, (None, "", None))]
)
def test_another_keyword_is_refused_at_once(function: Any, given: tuple[Any, ...]) -> None:
    with pytest.raises(TypeError, match=rf"{function.__name__}\(\) got an unexpected keyword argument 'colour'"):
        function(*given, colour="red")
