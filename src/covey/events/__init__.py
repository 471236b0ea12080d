"""What an event is: its schema and types, nested records, and decoding from JSON, XML and Arrow into columns.

May import `covey.filters`, `covey.errors` and `covey.limits`. Knows nothing of filters' text, indexes or brokers.
"""

from covey.events.columns import Batch, Columns, Piece, PieceType, columns, is_flat, row
from covey.events.json_lines import BadLine, parse_json, read_json_lines
from covey.events.limits import EventLimits
from covey.events.meaning import Meaning
from covey.events.records import flatten
from covey.events.schema import UNDEFINED, Attribute, Schema
from covey.events.xml import parse_xml

__all__ = [
    "UNDEFINED",
    "Attribute",
    "BadLine",
    "Batch",
    "Columns",
    "EventLimits",
    "Meaning",
    "Piece",
    "PieceType",
    "Schema",
    "columns",
    "flatten",
    "is_flat",
    "parse_json",
    "parse_xml",
    "read_json_lines",
    "row",
]
