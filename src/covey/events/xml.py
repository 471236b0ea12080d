"""Events as simple XML-style documents: `<company> IBM </company><price> 5000 </price>`.

A document is a fragment of elements, or one root element around them; nested elements give dotted names, repeated
ones lists, and white space around text is trimmed. The schema says what a text is; without it, text in the form of a
JSON number is a number, and all else a string. An empty element is the empty string, and missing where the schema
has another type than string.

Safe by construction: the document is fed to expat inside an element of our own, where XML allows no DOCTYPE, so no
entity can be declared and none but the five built in (and character references) expands, no file or address is ever
opened, and size and depth are bounded before anything is built.
"""

from __future__ import annotations

import re
from collections import Counter
from typing import Any
from xml.parsers import expat

from covey.errors import EventError
from covey.events.limits import DEFAULT_EVENT_LIMITS, EventLimits
from covey.events.schema import Schema
from covey.events.types import ListType, number_by_form
from covey.filters.values import Scalar, Value

_DECLARATION = re.compile(r"\s*<\?xml\b([^>]*)\?>")
_ENCODING = re.compile(r"""\bencoding\s*=\s*["']([^"']*)["']""")


class _Reader:
    """Collects the text of leaf elements by path while expat reads."""

    def __init__(self, limits: EventLimits) -> None:
        self.limits = limits
        self.parser = expat.ParserCreate()
        self.parser.buffer_text = True
        self.parser.StartElementHandler = self.start
        self.parser.EndElementHandler = self.end
        self.parser.CharacterDataHandler = self.text
        self.path: list[str] = []
        self.texts: list[list[str]] = [[]]
        self.parents: list[bool] = [False]
        self.leaves: list[tuple[tuple[str, ...], str]] = []
        self.top_level = 0
        self.records: list[tuple[str, ...]] = []

    def start(self, name: str, attributes: dict[str, str]) -> None:
        if attributes:
            raise EventError(f"<{name}> has XML attributes, which aren't read; write them as elements")
        if len(self.path) > self.limits.depth:
            raise EventError(f"elements are nested deeper than {self.limits.depth}; raise EventLimits.depth")
        self.parents[-1] = True
        self.top_level += len(self.path) == 1
        self.path.append(name)
        self.texts.append([])
        self.parents.append(False)

    def text(self, text: str) -> None:
        self.texts[-1].append(text)

    def end(self, name: str) -> None:
        text, is_parent = "".join(self.texts.pop()).strip(), self.parents.pop()
        path = tuple(self.path[1:])
        self.path.pop()
        if is_parent and text:
            raise EventError(f"<{name}> has both text and elements; put the text into an element" if path else _LOOSE)
        if is_parent:
            self.records.append(path)
        elif path:
            self.leaves.append((path, text))
        elif text:
            raise EventError(_LOOSE)

    def read(self, document: str) -> None:
        try:
            self.parser.Parse("<event>\n", False)
            self.parser.Parse(document, False)
            self.parser.Parse("</event>", True)
        except UnicodeEncodeError:
            raise EventError("half of a surrogate pair in the text; decode the document rightly first") from None
        except expat.ExpatError as error:
            if "<!DOCTYPE" in document:
                raise EventError("a DOCTYPE is not accepted in an event; leave it out") from None
            reason = expat.ErrorString(error.code)
            raise EventError(f"not XML: {reason} at line {error.lineno - 1} column {error.offset + 1}") from None


_LOOSE = "text outside of elements; name it with an element around it"


def parse_xml(
    document: str | bytes, schema: Schema | None = None, *, limits: EventLimits = DEFAULT_EVENT_LIMITS
) -> dict[str, Value]:
    """The event of an XML-style document, flat with dotted names; values by the schema's types, or by their form.

    `Schema.decode` checks what is mandatory; this reads what is there.
    """
    reader = _Reader(limits)
    reader.read(_content(document, limits))
    unwrap = int(reader.top_level == 1 and any(len(path) == 1 for path in reader.records))
    grouped: dict[str, list[str]] = {}
    for path, text in reader.leaves:
        grouped.setdefault(".".join(path[unwrap:]), []).append(text)
    inner = [path[unwrap:] for path in reader.records if len(path) > unwrap]
    for path, times in Counter(inner).items():
        if times > 1 or ".".join(path) in grouped:
            raise EventError(f"<{path[-1]}> with elements in it is repeated; a list may hold values only")
    event: dict[str, Value] = {}
    for name, texts in grouped.items():
        value = _value(name, texts, schema)
        if value is not None:
            event[name] = value
    return event


def xml_event(
    document: str | bytes, schema: Schema | None = None, *, limits: EventLimits = DEFAULT_EVENT_LIMITS
) -> dict[str, Any]:
    """The event of an XML-style document as `parse_xml` reads it, with a record for each element that has elements."""
    event: dict[str, Any] = {}
    for name, value in parse_xml(document, schema, limits=limits).items():
        *records, last = name.split(".")
        inner = event
        for record in records:
            inner = inner.setdefault(record, {})
            if not isinstance(inner, dict):
                raise EventError(f"<{record}> has both a value and elements; name one of them differently")
        if last in inner:
            raise EventError(f"<{last}> has both a value and elements; name one of them differently")
        inner[last] = value
    return event


def _content(document: str | bytes, limits: EventLimits) -> str:
    """The document's text without its XML declaration; as bytes it must be UTF-8."""
    if len(document) > limits.document_length:
        raise EventError(f"longer than {limits.document_length:,} characters; raise EventLimits.document_length")
    try:
        text = document.decode("utf-8") if isinstance(document, bytes) else document
    except UnicodeDecodeError as error:
        raise EventError(f"not UTF-8 at byte {error.start}; decode XML in another encoding first") from None
    text = text.removeprefix("\ufeff")
    declaration = _DECLARATION.match(text)
    if declaration is None:
        return text
    encoding = _ENCODING.search(declaration.group(1))
    if isinstance(document, bytes) and encoding is not None and encoding.group(1).lower() not in ("utf-8", "us-ascii"):
        raise EventError(f"encoding {encoding.group(1)!r} is not read; decode the document first")
    return text[declaration.end() :]


def _value(name: str, texts: list[str], schema: Schema | None) -> Value | None:
    kind = schema.type_of(name) if schema is not None else None
    try:
        if kind is None:
            values: list[Any] = [_by_form(text) for text in texts]
        elif isinstance(kind, ListType):
            values = [kind.element.parse(text) for text in texts]
            return tuple(values)
        elif len(texts) > 1:
            raise EventError(f"attribute {name!r} occurs {len(texts)} times; expected one {kind.name}")
        else:
            return kind.parse(texts[0])
    except ValueError as error:
        shown = ", ".join(texts)
        raise EventError(f"attribute {name!r}: {shown[:60]!r}; {error}") from None
    return values[0] if len(values) == 1 else tuple(values)


def _by_form(text: str) -> Scalar:
    number = number_by_form(text)
    return text if number is None else number
