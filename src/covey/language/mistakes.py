"""What to say of text that can't be read: the common mistakes, each with its remedy.

Only reached when parsing has failed, so it may look around at leisure.
"""

from __future__ import annotations

from typing import Final

from covey.errors import FilterSyntaxError
from covey.filters.quoting import QUERY_WORDS
from covey.language.lexer import Tokens

_WRONG: Final = {
    "=>": "=> is not an operator; did you mean >=?",
    "=<": "=< is not an operator; did you mean <=?",
    "===": "=== is not an operator; did you mean =?",
    "!==": "!== is not an operator; did you mean !=?",
    "&&": "&& is not an operator; write AND",
    "'": "the string is not closed; it ends with ', and a quote within it is written twice",
    '"': 'the string is not closed; it ends with ", and a quote within it is written twice',
    "`": "the name is not closed; it ends with a backquote",
    "/*": "the comment is not closed; it ends with */",
    ";": "leave out the semicolon; a filter is one condition",
    "{": "braces are not used in filters; JSON is read with dialect='json'",
    "}": "braces are not used in filters; JSON is read with dialect='json'",
    ".": "a name has no dot at its start or end; write `.name` in backquotes if it really has",
    ":": "casts and parameters with : are not supported; write the constant itself",
    "?": "parameters are not supported; write the constant itself",
    "\\": "a backslash stands only inside strings",
    **dict.fromkeys("‘’‚", "a curly quote is not a quote; write ' on both sides of a string"),
    **dict.fromkeys("“”„", "a curly quote is not a quote; write \" or ' on both sides of a string"),
}


def unexpected(text: str, tokens: Tokens, at: int) -> FilterSyntaxError:
    """An error for a token that can't stand where a condition or a value begins."""
    kind = tokens.kinds[at]
    before = tokens.kinds[at - 1] if at else ""
    shown = _shown(text, tokens, at)
    if kind == "end":
        if at == 0:
            message = "the filter is empty; write TRUE to match every event"
        else:
            message = f"the filter ends after {_shown(text, tokens, at - 1)}, where a value or condition is expected"
    elif kind == "wrong":
        message = _wrong(str(tokens.values[at]))
    elif kind in ("AND", "OR"):
        if before in ("AND", "OR"):
            message = f"{before} and {kind} stand side by side; a condition between them is missing, or one is too many"
        else:
            message = f"{shown} needs a condition before it"
    elif kind in ("arithmetic", "sign"):
        message = f"{shown} needs a value on both sides"
    elif kind in ("[", "]"):
        message = "brackets follow an attribute: a[0], m['key']; a list is written in parentheses: a IN (1, 2)"
    elif kind == "comparison":
        message = f"{shown} needs an attribute or a constant before it"
        if before == "comparison":
            message = f"two operators stand side by side; {_shown(text, tokens, at - 1)} is already there"
        elif before == "NOT":
            message = "NOT stands before a condition: write NOT a = 5, or a != 5"
    elif kind == ")":
        message = "a value or condition is missing before this parenthesis"
    else:
        message = f"{shown} can't stand here; a value or condition is expected"
    return FilterSyntaxError(message, text, tokens.positions[at])


def left_over(text: str, tokens: Tokens, at: int, opened: int | None) -> FilterSyntaxError:
    """An error for a token after a whole condition, where AND, OR, `)` or the end is expected."""
    kind = tokens.kinds[at]
    shown = _shown(text, tokens, at)
    word = shown.upper()
    if kind == "end" and opened is not None:
        message = f"the parenthesis opened at character {opened + 1} is not closed; ) is missing"
    elif kind == ")":
        message = "this parenthesis was never opened"
    elif kind == "wrong":
        message = _wrong(str(tokens.values[at]))
    elif kind in ("[", "]"):
        message = "brackets follow an attribute: a[0], m['key']; a list is written in parentheses: a IN (1, 2)"
    elif kind in ("arithmetic", "sign") or word == "DIV":
        message = f"{shown} joins values, not conditions; conditions are joined by AND or OR"
    elif kind == ",":
        message = "a comma stands only in IN (…) and in function calls; conditions are joined by AND or OR"
    elif kind == "NOT":
        message = "NOT stands before a condition, or before IN, BETWEEN, LIKE and RLIKE; write NOT a = 5, or a != 5"
    elif kind in ("IS", "IN", "BETWEEN", "LIKE", "RLIKE", "REGEXP") or word == "ILIKE":
        message = f"{word} follows a whole condition; put that condition in parentheses"
    elif word in QUERY_WORDS or word in ("GROUP", "ORDER", "LIMIT", "HAVING"):
        message = "a filter is the condition of WHERE alone, without the rest of a query"
    elif at and kind == "constant" and tokens.kinds[at - 1] == "name":
        message = f"an operator is missing between {_shown(text, tokens, at - 1)} and {shown}"
    elif at and kind == "(" and tokens.kinds[at - 1] == "name":
        message = "functions stand alone, without backquotes"
    else:
        message = f"AND or OR is missing before {shown}"
    return FilterSyntaxError(message, text, tokens.positions[at])


def query_word(word: str) -> str | None:
    """The remedy where a condition begins with a word of a query."""
    if word.upper() == "WHERE":
        return "leave out WHERE; a filter is the condition alone"
    if word.upper() in QUERY_WORDS:
        return "queries and subqueries are not supported; a filter is a condition on one event"
    return None


def not_a_constant(left: object, right: object) -> str | None:
    """The remedy where an attribute is compared with a name that is meant as a constant; None where it isn't."""
    if not isinstance(right, str):
        return None
    shown = f"{_cut(left)} " if isinstance(left, str) else ""
    if right.lower() in ("none", "nil", "undefined"):
        return f"{right} is not a constant; write {shown}IS NULL"
    if right.lower() in ("nan", "inf", "infinity"):
        return f"{right} is not a constant; write double('{right}')"
    return None


def _wrong(token: str) -> str:
    return _WRONG.get(token) or f"the character {token!r} has no meaning here"


def _shown(text: str, tokens: Tokens, at: int) -> str:
    """A token as it was written; a long one is cut."""
    start = tokens.positions[at]
    end = tokens.positions[at + 1] if at + 1 < len(tokens.positions) else len(text)
    words = text[start:end].split()
    written = words[0] if words else "the end"
    if tokens.kinds[at] == "constant":
        written = text[start:end].split("--")[0].split("/*")[0].strip()
    return _cut(written)


def _cut(text: str) -> str:
    line = text[:41].replace("\n", "\\n")
    return line if len(text) <= 40 else line[:40] + "…"
