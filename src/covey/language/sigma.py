"""Sigma's detection rules in YAML, read by pySigma (the extra `sigma`), as filters of covey.

One text is one rule; of a rule with several conditions any may hold. Sigma is two-valued: a field that an event doesn't
have meets no value, so `not filter` holds for it; the filter therefore says `(…) IS NOT TRUE` where the rule says not.
`sigma_backend` says what each kind of value means. What pySigma refuses is refused here with its words, and so is what
one event can't decide: correlations, and rules that filter other rules.

Texts come from anyone. YAML's aliases can make a short text mean a gigantic one and Sigma has no use for them, so they
are refused; nesting of a condition's parentheses is bounded before pySigma's grammar, which takes each level several
times, sees it.
"""

from __future__ import annotations

from typing import Any, Final

from covey.errors import CoveyError, FilterError, FilterSyntaxError, LimitError
from covey.filters.algebra import Filter, any_of, depth
from covey.language.bounds import over_limit
from covey.limits import Limits

RULE_LENGTH: Final = 1 << 20
"""Characters of a rule: much of one is about the rule, and some list thousands of hashes."""
CONDITION_DEPTH: Final = 12
"""Parentheses inside each other in one condition."""
CONDITION_LENGTH: Final = 4_096
"""Characters of one condition."""


def parse_sigma(text: str, limits: Limits) -> Filter:
    """The filter of one detection rule."""
    if len(text) > RULE_LENGTH:
        raise LimitError(f"the rule has {len(text):,} characters; the limit RULE_LENGTH is {RULE_LENGTH:,}")
    try:
        from covey.language.sigma_backend import CoveyBackend
    except ModuleNotFoundError as error:
        if error.name not in ("sigma", "yaml"):
            raise
        raise FilterError("Sigma rules are read by pySigma, which is not here; pip install 'covey[sigma]'") from None
    documents = _documents(text)
    rule = _rule(text, documents)
    backend = CoveyBackend(pattern_length=limits.pattern_length)
    try:
        converted = any_of(backend.conditions_of(rule))
    except CoveyError as error:
        raise _one_line(text, error) from None
    if depth(converted) > limits.depth:
        raise over_limit(f"the rule is nested {depth(converted):,} levels deep", "depth", limits)
    return converted


def _one_line(text: str, error: CoveyError) -> FilterError:
    if isinstance(error, LimitError):
        return error
    return FilterSyntaxError(str(error).splitlines()[0], text, 0)


def _documents(text: str) -> list[Any]:
    """The YAML documents of a text, without aliases."""
    import yaml

    loader = yaml.SafeLoader
    try:
        for token in yaml.scan(text, Loader=loader):
            if isinstance(token, yaml.AliasToken):
                raise FilterSyntaxError(
                    "a Sigma rule has no YAML aliases; write the value out", text, token.start_mark.index
                )
        return [document for document in yaml.safe_load_all(text) if document is not None]
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        problem = " ".join((error.problem or error.context or "it can't be read").split())
        raise FilterSyntaxError(f"this is not YAML: {problem}", text, mark.index if mark else 0) from None
    except (yaml.YAMLError, ValueError, OverflowError, TypeError) as error:
        raise FilterSyntaxError(f"this is not YAML that can be read: {_shown(error)}", text, 0) from None


def _rule(text: str, documents: list[Any]) -> Any:
    """pySigma's rule of the one document that a text is."""
    from sigma.exceptions import SigmaError
    from sigma.rule import SigmaRule

    if len(documents) != 1:
        count = f"{len(documents)} documents" if documents else "no document"
        raise FilterSyntaxError(
            f"a Sigma rule is one YAML document, and this is {count}; read them one by one", text, 0
        )
    document = documents[0]
    if not isinstance(document, dict):
        raise FilterSyntaxError("a Sigma rule is a mapping with title, logsource and detection", text, 0)
    for key, what in _ELSEWHERE.items():
        if key in document:
            raise FilterSyntaxError(what, text, max(text.find(str(key)), 0))
    if "detection" not in document:
        raise FilterSyntaxError("a Sigma rule has a detection with a condition, and this has none", text, 0)
    _check_conditions(text, document["detection"])
    try:
        return SigmaRule.from_dict(document)
    except SigmaError as error:
        raise FilterSyntaxError(f"pySigma refuses this rule: {_shown(error)}", text, 0) from None
    except RecursionError:
        raise
    except Exception as error:  # pySigma trusts the shapes of a rule's values, so what is wrong there is any exception
        raise FilterSyntaxError(f"pySigma can't read this rule: {_shown(error)}", text, 0) from None


_ELSEWHERE: Final = {
    "correlation": "correlations are not supported: they are about many events, and a filter is about one",
    "filter": "a Sigma filter changes other rules; apply it with pySigma and read the rule that comes of it",
    "action": "actions of rule collections are not supported; write the rule out as one document",
}


def _check_conditions(text: str, detection: Any) -> None:
    if not isinstance(detection, dict):
        raise FilterSyntaxError("detection is a mapping of searches and their condition", text, text.find("detection"))
    conditions = detection.get("condition")
    for condition in conditions if isinstance(conditions, list) else [conditions]:
        if not isinstance(condition, str):
            raise FilterSyntaxError("a Sigma rule's condition is a text", text, max(text.find("condition"), 0))
        if len(condition) > CONDITION_LENGTH:
            raise LimitError(
                f"the condition has {len(condition):,} characters; the limit CONDITION_LENGTH is {CONDITION_LENGTH:,}"
            )
        level = deepest = 0
        for character in condition:
            level += (character == "(") - (character == ")")
            deepest = max(deepest, level)
        if deepest > CONDITION_DEPTH:
            raise LimitError(
                f"the condition has {deepest:,} parentheses inside each other; the limit CONDITION_DEPTH is "
                f"{CONDITION_DEPTH}. Give parts of it names of their own"
            )


def _shown(error: Exception) -> str:
    shown = " ".join(str(error).split()) or type(error).__name__
    return shown if len(shown) <= 300 else shown[:300] + "…"
