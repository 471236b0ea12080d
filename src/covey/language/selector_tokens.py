"""The tokens of message selectors (`jms.py`): those of JMS with Java's literals, and AMQP's, whose names have sections.

A name in square brackets is that name, whatever it has in it. `like_pattern` reads patterns, which are a language of
their own.
"""

from __future__ import annotations

import re
from typing import Final

from covey.errors import FilterSyntaxError

KEYWORDS: Final = frozenset({"AND", "OR", "NOT", "BETWEEN", "IN", "LIKE", "ESCAPE", "IS", "NULL", "TRUE", "FALSE"})
_SECTION: Final = r"(?:properties|header|footer|(?:application[-_]propertie|(?:delivery|message)[-_]annotation)s)"
_FIELDS: Final = {
    "header": frozenset({"durable", "priority", "ttl", "first-acquirer", "delivery-count"}),
    "properties": frozenset({
        "message-id", "user-id", "to", "subject", "reply-to", "correlation-id", "content-type", "content-encoding",
        "absolute-expiry-time", "creation-time", "group-id", "group-sequence", "reply-to-group-id",
    }),
}  # fmt: skip
"""The sections that expressions of AMQP may name, and their fields."""
TOKEN: Final = re.compile(
    rf"""[\s]*(?:
      (?P<number>0[xX][0-9a-fA-F]++[lL]?|(?:[0-9]++(?:\.[0-9]*+)?+|\.[0-9]++)(?:[eE][+-]?[0-9]++)?+[lLdDfF]?)(?![\w$])
    | (?P<section>(?:{_SECTION}|[hp])\.[A-Za-z_$][\w$.]*+(?:-[A-Za-z_$][\w$]*+)*+)
    | (?P<word>[^\W\d][\w$]*+(?:\.[\w$]++)*+|\$[\w$]*+(?:\.[\w$]++)*+)
    | (?P<bracketed>\[(?:[^][\x00-\x1f\x7f]|\]\]|\[\[)++\])
    | (?P<string>'(?:[^']|'')*+'|"(?:[^"]|"")*+")
    | (?P<comparison><=|>=|<>|!=|==|=|<|>)
    | (?P<mark>[(),+*/%-])
    | (?P<end>\Z)
    | (?P<wrong>.)
    )""",
    re.VERBOSE | re.DOTALL,
)
_SECTIONS: Final = {"p": "properties", "h": "header"}
_LARGEST: Final = 2**63


def like_pattern(pattern: str, escape: str, *, every: bool) -> str | None:
    """A pattern with an escape character of its own, or none, as covey's LIKE has it; None where it ends in one that is
    nothing else. It escapes every character, or else only `%`, `_` and itself."""
    written: list[str] = []
    at = 0
    while at < len(pattern):
        character, following = pattern[at], pattern[at + 1 : at + 2]
        if character == escape:
            if not following and (every or escape not in "%_"):
                return None
            if following and (every or following in ("%", "_", escape)):
                written.append("\\" + following if following in "%_\\" else following)
                at += 2
                continue
        written.append("\\\\" if character == "\\" else character)
        at += 1
    return "".join(written)


def read_jms(kind: str, written: str, position: int, text: str) -> object:
    """The value of a token."""
    match kind:
        case "string":
            quote = written[0]
            return written[1:-1].replace(quote * 2, quote)
        case "comparison":
            return {"<>": "!=", "==": "="}.get(written, written)
        case "number":
            return _number(written, position, text)
        case "bracketed":
            return written[1:-1].replace("]]", "]").replace("[[", "[")
        case "section":
            section, _, rest = written.partition(".")
            section = _SECTIONS.get(section, section.replace("_", "-"))
            return rest if section == "application-properties" else f"{section}.{rest}"
    return written


def read_amqp(kind: str, written: str, position: int, text: str) -> object:
    """The value of a token in AMQP: names with dots are sections', binary constants are no numbers."""
    if kind == "number" and written[:2] in ("0x", "0X"):
        raise FilterSyntaxError("a binary constant can't be compared: events have no binary values", text, position)
    if kind == "number" and written.isdigit():
        return _number(written.lstrip("0") or "0", position, text)
    if kind not in ("section", "word") or "." not in written:
        return read_jms(kind, written, position, text)
    section, _, field = written.partition(".")
    section = _SECTIONS.get(section, section)
    if section in ("a", "application-properties", "application_properties") and "." not in field:
        return field
    if section not in _FIELDS:
        raise FilterSyntaxError(
            f"{section[:40]} is not a section that can be asked for; a name with a dot stands in [ ]", text, position
        )
    if field.replace("_", "-") not in _FIELDS[section]:
        raise FilterSyntaxError(f"the section {section} has no field {field[:40]}", text, position)
    return f"{section}.{field}"


def _number(written: str, position: int, text: str) -> int | float:
    """Java's literals: hexadecimal, octal, decimal, with a suffix; approximate ones are doubles."""
    digits = written.rstrip("lL")
    if digits[:2] in ("0x", "0X"):
        value = int(digits, 16)
    elif digits.isdigit():
        if len(digits) > 400:
            raise FilterSyntaxError("the number has more than 400 digits", text, position)
        octal = digits[0] == "0" and len(digits) > 1 and not set(digits) & {"8", "9"}
        value = int(digits, 8 if octal else 10)
    else:
        try:
            return float(digits.rstrip("dDfF"))
        except ValueError:
            raise FilterSyntaxError(f"{written[:40]} is not a number", text, position) from None
    if value > _LARGEST:
        raise FilterSyntaxError("an exact number has 64 bits; write it with a point", text, position)
    return value
