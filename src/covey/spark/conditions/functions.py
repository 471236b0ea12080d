"""Which of Spark's functions a rule may call, and how each behaves.

Rules come from people who may not run code, so this is a list of what is allowed: scalar built-in functions whose
result depends on their arguments alone. Everything else is refused by name, with the reason where it is known.
Functions that the caller has registered are allowed where the caller names them.

Of each function the table says what its parameters are, since Spark casts a text that stands where a number or a date
is due, and that cast can fail; and how it behaves:

    strict      null where an argument is null, else a value; it never fails
    nullable    null for some arguments, without that being a failure; it never fails
    fails       null where an argument is null, and fails for some arguments; `form` is how it is tried
    lazy        doesn't evaluate all its arguments (`trying` knows each)
    pattern     as nullable; the arguments from the second on must be constants, which Spark is asked to read once
    count       as nullable where the second argument is a small constant
    lambda      takes a lambda function, whose body mustn't be able to fail
    whole       may fail and has no try-form, so tests that call it are computed whole (`trying`)

The letters of parameters: `s` text, `i` integer, `n` number, `d` date, `t` timestamp, `b` boolean, `*` anything; the
last letter stands for all that follow. `=` is anything, all arguments being brought to one type.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Collection
from dataclasses import dataclass
from typing import Final
from typing import Literal as OneOf

from pyspark.sql.types import ArrayType, BinaryType, DataType, MapType, StringType, StructType, VariantType

from covey.errors import FilterError, LimitError
from covey.spark.conditions.syntax import Call, Literal, Name, Variable, inside

Behaviour = OneOf["strict", "nullable", "fails", "lazy", "pattern", "count", "lambda", "whole"]

MOST_REPEATED: Final = 10_000
"""How often a rule may repeat a text, and how long it may pad one."""


@dataclass(frozen=True, slots=True)
class Function:
    """What is known of one function."""

    name: str
    parameters: str
    behaviour: Behaviour
    form: str = ""
    """How one that fails is tried: another function's name, or text with {0}, {1}, … for its arguments."""

    def parameter(self, place: int) -> str:
        """The letter of an argument's place."""
        return self.parameters[min(place, len(self.parameters) - 1)] if self.parameters else "*"


_TABLE: Final = {
    "strict": """
        lower:s upper:s lcase:s ucase:s trim:s ltrim:s rtrim:s btrim:s length:* len:* char_length:* character_length:*
        octet_length:* bit_length:* reverse:* initcap:s soundex:s ascii:s substr:*ii substring:*ii left:*i right:*i
        replace:s translate:s instr:s locate:ssi position:ssi startswith:* endswith:* contains:* concat:*
        levenshtein:ssi substring_index:ssi md5:* sha1:* sha:* crc32:* hex:* base64:* to_base32:* chr:i char:i
        jaro_winkler_similarity:s luhn_check:s is_valid_utf8:* quote:s mask:s url_encode:s
        sign:n signum:n sqrt:n cbrt:n exp:n expm1:n sin:n cos:n tan:n cot:n sec:n csc:n asin:n acos:n atan:n sinh:n
        cosh:n tanh:n asinh:n acosh:n atanh:n atan2:n hypot:n degrees:n radians:n rint:n power:n pow:n
        isnan:n nanvl:n bit_count:* shiftleft:ni shiftright:ni shiftrightunsigned:ni bin:n positive:n
        year:d month:d day:d dayofmonth:d dayofweek:d weekday:d dayofyear:d weekofyear:d quarter:d hour:t minute:t
        second:t last_day:d datediff:d date_diff:d dayname:d monthname:d unix_date:d unix_seconds:t
        unix_millis:t unix_micros:t date_part:*t datepart:*t
        map_keys:* map_values:* array_distinct:* array_compact:* array_size:* cardinality:* typeof:*
        """,
    "nullable": """
        concat_ws:* size:* ln:n log:n log10:n log2:n log1p:n factorial:i date_trunc:*t trunc:d* months_between:ttb
        e: pi: array_contains:* arrays_overlap:* array_position:* array_max:* array_min:* array_union:* array_except:*
        array_intersect:* array_join:*ss array_remove:* array_append:* array_prepend:* sort_array:*b map_contains_key:*
        map_entries:* array:= struct:* named_struct:* get:*i get_json_object:s json_array_length:s json_object_keys:s
        isnull:* isnotnull:* equal_null:* is_variant_null:* nullif:= nullifzero:n zeroifnull:n greatest:= least:=
        find_in_set:s hash:* xxhash64:* try_add:* try_subtract:* try_multiply:* try_divide:* try_mod:*
        make_valid_utf8:s try_validate_utf8:s collate:*s date_from_unix_date:i timestamp_micros:i
        try_to_date:* try_to_timestamp:* try_to_number:* try_to_binary:* try_parse_json:s try_variant_get:*
        try_parse_url:s try_element_at:* try_url_decode:s sha2:*i width_bucket:n collation:*
        """,
    "lazy": "coalesce:= nvl:= ifnull:= nvl2:*= if:b= iff:b=",
    "pattern": """
        like:s ilike:s rlike:s regexp:s regexp_like:s regexp_replace:sssi regexp_count:s regexp_instr:s regexp_substr:s
        regexp_extract:ssi regexp_extract_all:ssi split:ssi date_format:ts from_json:s from_csv:s
        """,
    "count": "repeat:si space:i lpad:*i* rpad:*i* date_add:di date_sub:di dateadd:di add_months:di round:ni bround:ni",
    "whole": """
        bit_get:* getbit:* conv:* unhex:* unbase64:* from_base32:* decode:* encode:* overlay:* split_part:* elt:*
        format_string:* printf:* to_char:* to_varchar:* str_to_map:* sentences:* validate_utf8:* hmac:* aes_decrypt:*
        try_aes_decrypt:* to_json:* to_csv:* schema_of_json:* schema_of_csv:* schema_of_variant:* to_variant_object:*
        is_valid_variant:* variant_insert:* variant_set:* variant_delete:* variant_array_append:* variant_strip_nulls:*
        try_variant_insert:* try_variant_set:* try_variant_array_append:*
        next_day:* from_unixtime:* unix_timestamp:* to_unix_timestamp:* timestamp_seconds:* timestamp_millis:*
        timestamp_nanos:* unix_nanos:* from_utc_timestamp:* to_utc_timestamp:* convert_timezone:* timestampdiff:*
        timestampadd:* make_date:* make_interval:* make_dt_interval:* make_ym_interval:* try_make_interval:*
        try_make_timestamp:* try_make_timestamp_ltz:* try_make_timestamp_ntz:* to_timestamp_ltz:* to_timestamp_ntz:*
        make_time:* to_time:* try_to_time:* time:* time_trunc:* time_diff:* time_bucket:* time_from_seconds:*
        time_from_millis:* time_from_micros:* time_to_seconds:* time_to_millis:* time_to_micros:*
        array_sort:* slice:* flatten:* arrays_zip:* array_insert:* array_repeat:* map:* map_concat:* map_from_arrays:*
        map_from_entries:* map_zip_with:* aggregate:* reduce:* format_number:* sequence:*
        bitmap_bit_position:* bitmap_bucket_number:* bitmap_count:* vector_cosine_similarity:* vector_inner_product:*
        vector_l2_distance:* vector_norm:* vector_normalize:*
        """,
    "lambda": "exists:* forall:* filter:* transform:* map_filter:* transform_keys:* transform_values:* zip_with:*",
}
_FAILS: Final = {
    "mod": ("n", "try_mod"),
    "pmod": ("n", "pmod({0}, nullif({1}, 0))"),
    "abs": ("n", "abs"),
    "negative": ("n", "negative"),
    "floor": ("n", "floor"),
    "ceil": ("n", "ceil"),
    "ceiling": ("n", "ceil"),
    "element_at": ("*", "element_at"),
    "to_date": ("*", "try_to_date"),
    "to_timestamp": ("*", "try_to_timestamp"),
    "to_number": ("s", "try_to_number"),
    "to_binary": ("s", "try_to_binary"),
    "parse_json": ("s", "try_parse_json"),
    "variant_get": ("*", "try_variant_get"),
    "parse_url": ("s", "try_parse_url"),
    "url_decode": ("s", "try_url_decode"),
    "make_timestamp": ("i", "try_make_timestamp"),
    "make_timestamp_ltz": ("i", "try_make_timestamp_ltz"),
    "make_timestamp_ntz": ("i", "try_make_timestamp_ntz"),
}
CASTS: Final = frozenset(
    {"bigint", "int", "smallint", "tinyint", "float", "double", "boolean", "string", "date", "timestamp", "decimal",
     "binary"}
)  # fmt: skip
"""Functions that are casts by another name."""


def _functions() -> dict[str, Function]:
    found: dict[str, Function] = {}
    for behaviour, names in _TABLE.items():
        for entry in names.split():
            name, _, parameters = entry.partition(":")
            found[name] = Function(name, parameters, behaviour)  # type: ignore[arg-type]
    for name, (parameters, form) in _FAILS.items():
        found[name] = Function(name, parameters, "fails", form)
    return found


FUNCTIONS: Final = _functions()
"""Every built-in function that rules may call, by its name."""

_CODE = "it runs code of the caller's choice"
_CHANCE = "its result is another each time"
_CLOCK = "its result depends on when it is asked; compare with a constant, or add the time to the events as a column"
_PLACE = "its result depends on who asks or where it runs, not on the event"
_ROWS = "it is about many rows, and a rule is about one event"
_RAISES = "it ends the job for all rules"
_WHOLE = "it is all of an event, and only the columns that rules name leave Spark; name a column"
_FILES = "what it reads may name other files"
_REASONS: Final = {
    _CODE: "reflect java_method try_reflect",
    _CHANCE: """aes_encrypt rand randn random randstr uniform uuid shuffle monotonically_increasing_id
        spark_partition_id""",
    _CLOCK: """now current_date current_timestamp current_time curdate localtime localtimestamp""",
    _PLACE: """current_user user session_user current_catalog current_database current_schema current_path
        current_timezone version input_file_name input_file_block_start input_file_block_length python_worker_logs""",
    _ROWS: """sum count avg mean min max first last any some every bool_and bool_or collect_list collect_set
        count_if stddev variance median mode percentile explode explode_outer posexplode inline stack json_tuple
        row_number rank dense_rank ntile lag lead window session_window approx_count_distinct array_agg listagg
        string_agg max_by min_by range""",
    _RAISES: "raise_error assert_true",
    _WHOLE: "event_text",
    _FILES: """xpath xpath_boolean xpath_double xpath_float xpath_int xpath_long xpath_number xpath_short xpath_string
        from_xml to_xml schema_of_xml""",
}
REFUSED: Final = {name: reason for reason, names in _REASONS.items() for name in names.split()}
"""Functions that rules may not call, with the reason."""


_GROWING: Final = {
    "repeat": 1, "space": 0, "lpad": 1, "rpad": 1, "array_repeat": 1, "array_insert": 1, "format_number": 1,
}  # fmt: skip
"""Functions whose result is as large as an argument says: which one, which must be a small constant."""
_GROWABLE: Final = (StringType, BinaryType, ArrayType, MapType, VariantType)
_WIDTH: Final = re.compile(r"%[^%a-zA-Z]*[0-9]{5}")


def check_growth(node: Call) -> None:
    """Refuse what makes large values out of small ones."""
    if node.name in ("unix_timestamp", "to_unix_timestamp") and not node.arguments:
        raise FilterError(f"{node.name}() is not allowed in a rule: {_CLOCK}")
    if node.name == "sequence" and any(isinstance(one, (Name, Variable)) for one in inside(node)):
        raise FilterError("the ends of sequence() must be constants, since its result may be of any size")
    if node.name in ("format_string", "printf"):
        form = node.arguments[0] if node.arguments else None
        if not isinstance(form, Literal) or form.kind not in ("string", "other"):
            raise FilterError(f"the format of {node.name}() must be a constant, since it says how long the text gets")
        if _WIDTH.search(form.text):
            raise LimitError(f"{node.name}(): the widest is {MOST_REPEATED - 1:,}")
    place = _GROWING.get(node.name)
    if place is None or len(node.arguments) <= place:
        return
    number = node.arguments[place]
    if node.name == "format_number" and isinstance(number, Literal) and number.kind == "string":
        return
    if not isinstance(number, Literal) or not isinstance(number.value, int):
        raise FilterError(f"the number in {node.name}() must be a constant, since it says how large the result gets")
    if abs(number.value) > MOST_REPEATED:
        raise LimitError(f"{node.name}(… {number.value}): the most is {MOST_REPEATED:,}")


def is_bounded(kind: DataType) -> bool:
    """Whether values of a type have one size: what a fold carries on mustn't grow with each element."""
    if isinstance(kind, StructType):
        return all(is_bounded(field.dataType) for field in kind.fields)
    return not isinstance(kind, _GROWABLE)


def function_of(name: str, registered: Collection[str]) -> Function | None:
    """What is known of a function that a rule calls; None for one that the caller has registered and named."""
    if name in {one.lower() for one in registered}:
        return None
    if name in REFUSED:
        raise FilterError(f"{name}() is not allowed in a rule: {REFUSED[name]}")
    found = FUNCTIONS.get(name)
    if found is None:
        near = difflib.get_close_matches(name, [*FUNCTIONS, *CASTS, *registered], 1)
        hint = f"did you mean {near[0]}()?" if near else "functions=[…] allows one that you have registered"
        raise FilterError(f"{name}() is not a function that rules may call; {hint}")
    return found
