"""What the conditions and values of a Sigma rule mean, as a backend for pySigma: `sigma convert -t covey`.

Text is compared without regard to case, `*` and `?` are any text and any character. A field that is missing meets no
value, and `null` is met by it. Log sources write the same number as 4688 and as '4688', so a number meets both, and so
does a text that is a number. `|re` is a regular expression of RE2 that is found somewhere, with case unless `|i` says
otherwise; what only backtracking engines know (look-around, references) is refused. `|cased` compares with case.

Names are the rule's own, as the events must have them; but Windows Defender writes `Threat Name` where Sigma says
ThreatName, so in rules for its log both are tested.

A keyword, a value without a field, is searched in all that the event says (`event_text()`), or in the attributes that
`keyword_fields` names.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from typing import Any, ClassVar, Final

from sigma.conversion.base import Backend
from sigma.exceptions import SigmaError, SigmaFeatureNotSupportedByBackendError
from sigma.processing.pipeline import ProcessingPipeline
from sigma.types import (
    CompareOperators,
    Placeholder,
    SigmaRegularExpression,
    SigmaString,
    SpecialChars,
)

from covey.errors import CoveyError, FilterError, LimitError
from covey.filters.algebra import Filter, Is, Not, all_of, any_of
from covey.filters.caseless import ILike
from covey.filters.predicates import Compare, IsNull, Like, Operator, RLike
from covey.filters.quoting import name_to_sql
from covey.filters.terms import event_text
from covey.language.parser import parse_sql
from covey.limits import DEFAULT_LIMITS

_OPERATORS: Final[dict[CompareOperators, Operator]] = {
    CompareOperators.LT: "<",
    CompareOperators.LTE: "<=",
    CompareOperators.GT: ">",
    CompareOperators.GTE: ">=",
    CompareOperators.NEQ: "!=",
}
_DEFENDER: Final = "windefend"
_TIME_PARTS: Final = ("minute", "hour", "day", "month", "year")
_LIKE_A_NUMBER: Final = re.compile(r"[0-9.%_-]+")
_INTEGER: Final = re.compile(r"-?(?:0|[1-9][0-9]{0,17})")


class CoveyBackend(Backend):  # type: ignore[misc]
    """Sigma's rules as covey's filters, printed as SQL."""

    name: ClassVar[str] = "covey filters"
    formats: ClassVar[dict[str, str]] = {"default": "one SQL condition a rule"}

    def __init__(
        self,
        processing_pipeline: ProcessingPipeline | None = None,
        collect_errors: bool = False,
        *,
        keyword_fields: Sequence[str] | str = (),
        pattern_length: int = 1_024,
        **options: Any,
    ) -> None:
        super().__init__(processing_pipeline, collect_errors, **options)
        listed = keyword_fields.split(",") if isinstance(keyword_fields, str) else keyword_fields
        self.keyword_fields: tuple[str, ...] = tuple(listed) or (event_text().name,)
        self.pattern_length = int(pattern_length)
        self._spaced = False

    def convert_rule(self, rule: Any, *arguments: Any, **options: Any) -> list[Any]:
        """The rule's queries. In Defender's log names have spaces that Sigma's names for them leave out."""
        self._spaced = getattr(rule.logsource, "service", None) == _DEFENDER
        converted: list[Any] = super().convert_rule(rule, *arguments, **options)
        return converted

    def conditions_of(self, rule: Any) -> list[Filter]:
        """The filter of each condition of a rule; a CoveyError says what can't be one."""
        from sigma.conversion.state import ConversionState

        self.init_processing_pipeline()
        self._spaced = getattr(rule.logsource, "service", None) == _DEFENDER
        try:
            self.last_processing_pipeline.apply(rule)
            parsed = [condition.parsed for condition in rule.detection.parsed_condition]
            return [self.convert_condition(condition, ConversionState()) for condition in parsed]
        except (CoveyError, RecursionError):
            raise
        except SigmaError as error:
            raise FilterError(f"pySigma refuses this rule: {_shown(error)}") from None
        except Exception as error:  # a rule's values of shapes that pySigma's own conversion doesn't expect
            raise FilterError(f"pySigma can't convert this rule: {_shown(error)}") from None

    def finalize_query_default(self, rule: Any, query: Filter, index: int, state: Any) -> str:  # noqa: ARG002, D102
        return str(query)

    def finalize_output_default(self, queries: list[str]) -> list[str]:  # noqa: D102
        return list(queries)

    # Conditions.

    def convert_condition_or(self, cond: Any, state: Any) -> Filter:  # noqa: D102
        return any_of(self._parts(cond, state))

    def convert_condition_and(self, cond: Any, state: Any) -> Filter:  # noqa: D102
        return all_of(self._parts(cond, state))

    def convert_condition_not(self, cond: Any, state: Any) -> Filter:  # noqa: D102
        (inner,) = self._parts(cond, state)
        return two_valued_not(inner)

    def convert_condition_as_in_expression(self, cond: Any, state: Any) -> Filter:  # noqa: D102
        return self.convert_condition_or(cond, state)

    def _parts(self, cond: Any, state: Any) -> list[Filter]:
        parts = (self.convert_condition(part, state) for part in cond.args)
        return [part for part in parts if part is not None]

    # Values of a field.

    def convert_condition_field_eq_val_str(self, cond: Any, state: Any) -> Filter:  # noqa: ARG002, D102
        return self._any(cond.field, lambda name: self._text(name, cond.value, cased=False))

    def convert_condition_field_eq_val_str_case_sensitive(self, cond: Any, state: Any) -> Filter:  # noqa: ARG002, D102
        return self._any(cond.field, lambda name: self._text(name, cond.value, cased=True))

    def convert_condition_field_eq_val_num(self, cond: Any, state: Any) -> Filter:  # noqa: ARG002, D102
        return self._any(cond.field, lambda name: _number(name, cond.value.number))

    def convert_condition_field_eq_val_bool(self, cond: Any, state: Any) -> Filter:  # noqa: ARG002, D102
        return self._any(cond.field, lambda name: _truth(name, bool(cond.value.boolean)))

    def convert_condition_field_eq_val_re(self, cond: Any, state: Any) -> Filter:  # noqa: ARG002, D102
        return self._any(cond.field, lambda name: self._expression(name, cond.value))

    def convert_condition_field_eq_val_null(self, cond: Any, state: Any) -> Filter:  # noqa: ARG002, D102
        return all_of(map(IsNull, self._names(cond.field)))

    def convert_condition_field_exists(self, cond: Any, state: Any) -> Filter:  # noqa: ARG002, D102
        return self._any(cond.field, lambda name: Not(IsNull(name)))

    def convert_condition_field_not_exists(self, cond: Any, state: Any) -> Filter:  # noqa: ARG002, D102
        return all_of(map(IsNull, self._names(cond.field)))

    def convert_condition_field_compare_op_val(self, cond: Any, state: Any) -> Filter:  # noqa: ARG002, D102
        operator, number = _OPERATORS[cond.value.op], cond.value.number.number
        return self._any(
            cond.field,
            lambda name: any_of((Compare(name, operator, number), _cast(name, "DOUBLE", f"{operator} {number}"))),
        )

    def convert_condition_field_eq_val_cidr(self, cond: Any, state: Any) -> Filter:  # noqa: ARG002, D102
        return _sql(f"cidr_match({name_to_sql(cond.field)}, '{cond.value.network}')")

    def convert_condition_field_eq_field(self, cond: Any, state: Any) -> Filter:  # noqa: ARG002
        """Another field's value, whatever the case of letters; at its start, its end or somewhere in it."""
        value = cond.value
        own, other = name_to_sql(cond.field), name_to_sql(value.field)
        text, part = f"lower(CAST({own} AS STRING))", f"lower(CAST({other} AS STRING))"
        if value.starts_with and value.ends_with:
            return _sql(f"instr({text}, {part}) > 0")
        if value.starts_with or value.ends_with:
            side = "left" if value.starts_with else "right"
            return _sql(f"{side}({text}, length({part})) = {part}")
        return _sql(f"{own} = {other} OR {text} = {part}")

    def convert_condition_field_eq_val_timestamp_part(self, cond: Any, state: Any) -> Filter:  # noqa: ARG002, D102
        part = cond.value.timestamp_part.name.lower()
        if part not in _TIME_PARTS:
            raise FilterError(f"|{part} is not supported; there are {', '.join(_TIME_PARTS)}")
        return _sql(f"{part}(CAST({name_to_sql(cond.field)} AS TIMESTAMP)) = {int(cond.value.number)}")

    # Values without a field.

    def convert_condition_val_str(self, cond: Any, state: Any) -> Filter:  # noqa: ARG002, D102
        return self._keyword(cond.value.s)

    def convert_condition_val_num(self, cond: Any, state: Any) -> Filter:  # noqa: ARG002, D102
        return self._keyword((str(cond.value.number),))

    def convert_condition_val_re(self, cond: Any, state: Any) -> Filter:  # noqa: ARG002, D102
        return any_of(self._expression(field, cond.value) for field in self.keyword_fields)

    def _keyword(self, parts: Iterable[Any]) -> Filter:
        around = (SpecialChars.WILDCARD_MULTI, *parts, SpecialChars.WILDCARD_MULTI)
        return any_of(ILike(field, self._like(around)) for field in self.keyword_fields)

    # Names, texts and patterns.

    def _names(self, field: str) -> tuple[str, ...]:
        """The attributes that a field may be."""
        spaced = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", " ", field) if self._spaced else field
        return (field,) if spaced == field else (field, spaced)

    def _any(self, field: str, test: Callable[[str], Filter]) -> Filter:
        return any_of(map(test, self._names(field)))

    def _text(self, field: str, value: SigmaString, *, cased: bool) -> Filter:
        if not any(not isinstance(part, str) for part in value.s):
            whole = "".join(value.s)
            if _INTEGER.fullmatch(whole):
                return _number(field, int(whole))
            if not cased and whole.lower() in ("true", "false"):
                return _truth(field, whole.lower() == "true")
            if cased or whole.lower() == whole.upper():
                return Compare(field, "=", whole)
        return self._pattern(field, value.s, cased=cased)

    def _like(self, parts: Iterable[Any]) -> str:
        pieces = [_piece(part) for part in parts]
        kept = [piece for at, piece in enumerate(pieces) if piece != "%" or at == 0 or pieces[at - 1] != "%"]
        pattern = "".join(kept)
        self._check_length(pattern)
        return pattern

    def _pattern(self, field: str, parts: Iterable[Any], *, cased: bool) -> Filter:
        pattern = self._like(parts)
        if pattern == "%":
            return Not(IsNull(field))
        if _LIKE_A_NUMBER.fullmatch(pattern):
            # An event may have it as a number, whose text is meant.
            return any_of((Like(field, pattern), _cast(field, "STRING", f"LIKE '{pattern}'")))
        return Like(field, pattern) if cased else ILike(field, pattern)

    def _expression(self, field: str, value: SigmaRegularExpression) -> Filter:
        if value.contains_placeholder():
            raise FilterError("a placeholder stands in a regular expression; a pySigma pipeline can fill it in")
        flags = "".join(sorted(value.sigma_to_re_flag[flag] for flag in value.flags))
        pattern = f"(?{flags}){value.regexp}" if flags else str(value.regexp)
        self._check_length(pattern)
        return RLike(field, pattern)

    def _check_length(self, pattern: str) -> None:
        if len(pattern) > self.pattern_length:
            raise LimitError(
                f"the pattern has {len(pattern):,} characters; the limit pattern_length is {self.pattern_length:,}. "
                "Make it smaller, or pass larger limits"
            )

    # What one event can't decide, or covey can't say.

    def convert_correlation_rule(self, rule: Any, *arguments: Any, **options: Any) -> list[Any]:  # noqa: ARG002, D102
        raise SigmaFeatureNotSupportedByBackendError(
            "a correlation is about many events, and a covey filter is about one; correlations are not supported"
        )

    convert_correlation_event_count_rule = convert_correlation_rule
    convert_correlation_value_count_rule = convert_correlation_rule
    convert_correlation_value_sum_rule = convert_correlation_rule
    convert_correlation_value_avg_rule = convert_correlation_rule
    convert_correlation_value_percentile_rule = convert_correlation_rule
    convert_correlation_value_median_rule = convert_correlation_rule
    convert_correlation_temporal_rule = convert_correlation_rule
    convert_correlation_temporal_ordered_rule = convert_correlation_rule
    convert_correlation_extended_temporal_rule = convert_correlation_rule
    convert_correlation_extended_temporal_ordered_rule = convert_correlation_rule

    def convert_condition_field_eq_query_expr(self, cond: Any, state: Any) -> Filter:  # noqa: ARG002, D102
        raise FilterError(f"the query expression of {cond.field!r} is in another system's language")

    def convert_condition_query_expr(self, cond: Any, state: Any) -> Filter:  # noqa: ARG002, D102
        raise FilterError("a query expression is in another system's language")


def two_valued_not(inner: Filter) -> Filter:
    """True where the filter isn't: what is unknown isn't met."""
    return Not(inner) if isinstance(inner, IsNull) else Not(Is(inner, True))


def _sql(text: str) -> Filter:
    """What is plainly said in SQL."""
    return parse_sql(text, DEFAULT_LIMITS)


def _cast(field: str, kind: str, test: str) -> Filter:
    return _sql(f"CAST({name_to_sql(field)} AS {kind}) {test}")


def _truth(field: str, truth: bool) -> Filter:
    return any_of((Compare(field, "=", truth), ILike(field, str(truth).lower())))


def _number(field: str, number: int | float) -> Filter:
    return any_of((Compare(field, "=", number), Compare(field, "=", str(number))))


def _piece(part: Any) -> str:
    if isinstance(part, str):
        return re.sub(r"[\\%_]", lambda found: "\\" + found[0], part)
    if isinstance(part, Placeholder):
        raise FilterError(f"the placeholder %{part.name}% is not filled in; a pySigma pipeline can do that")
    return "%" if part == SpecialChars.WILDCARD_MULTI else "_"


def _shown(error: Exception) -> str:
    shown = " ".join(str(error).split()) or type(error).__name__
    return shown if len(shown) <= 300 else shown[:300] + "…"
