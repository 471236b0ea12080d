"""`covey explain`: why an event matches a filter, or why not."""

from __future__ import annotations

import json
import sys
from typing import Any

from covey.cli.arguments import ExplainOptions, UsageError
from covey.cli.subscriptions import schema_of, subscription_rows
from covey.cli.terminal import unwatched
from covey.errors import CoveyError, EventError, UnknownIdError
from covey.events import parse_json
from covey.file_names import is_index
from covey.filters import Filter
from covey.filters.semantics import Decoded
from covey.language import parse
from covey.matching import Explanation, Index, explain


def run(options: ExplainOptions) -> int:
    """Explain one filter on one event."""
    found = _stored(options.subscriptions, options) if options.subscriptions is not None else _written(options)
    print(json.dumps(found.to_dict(), ensure_ascii=False) if options.json else found)
    return 0


def _written(options: ExplainOptions) -> Explanation:
    if options.id is not None:
        raise UsageError("--id needs --subscriptions FILE, to find the subscription in")
    if len(options.words) != 2:
        raise UsageError('covey explain takes a filter and an event, such as "price < 10" \'{"price": 5}\'')
    condition = parse(options.words[0], dialect=options.dialect)
    return _explained(condition, None, options)


def _stored(path: str, options: ExplainOptions) -> Explanation:
    if options.id is None or len(options.words) != 1:
        raise UsageError("with --subscriptions FILE, covey explain takes --id ID and an event")
    if is_index(path):
        return Index.open(path, verify=False).explain(options.id, _event(options.words[-1]))
    rows = subscription_rows(path, options.subscriptions_format, options)
    for name, given in rows.pairs(unwatched):
        if name == options.id:
            return _explained(parse(given) if isinstance(given, str) else given, name, options)
    raise UnknownIdError(f"{rows.report.name} has no subscription {options.id!r}")


def _explained(condition: Filter, subscription: str | None, options: ExplainOptions) -> Explanation:
    schema, event = schema_of(options), _event(options.words[-1])
    if schema is not None:
        condition, event = schema.check(condition), Decoded(schema.decode(event), event)
    return explain(
        condition,
        event,
        subscription=subscription,
        semantics=options.semantics or "sql",
        defaults=schema.defaults if schema is not None else None,
    )


def _event(text: str) -> dict[str, Any]:
    try:
        event = parse_json(sys.stdin.buffer.read() if text == "-" else text)
    except EventError as error:
        raise CoveyError(f"the event is {error}") from None
    if event is None:
        raise CoveyError("the event is empty; write it as a JSON object")
    return event
