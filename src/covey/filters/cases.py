"""Lower case as Spark has it: `lower(text)` of a whole text, by ICU's mappings for no language in particular.

Python's `str.lower` is the same algorithm, the context of `Σ` and the two characters of `İ` included, on the Unicode
version of the interpreter: 14 in Python 3.11, where ICU in Spark 4.3 has 17. What came in between is listed here, so
that a filter means the same under every Python and on Spark: letters whose lower case is newer, and characters that
count otherwise where it is told whether a `Σ` ends a word. `tests/spark/test_lower_case.py` asks Spark.
"""

from __future__ import annotations

import re
import sys
from functools import lru_cache
from typing import Final

SIGMAS: Final = frozenset("Σσς")
"""The letter whose lower case depends on what stands around it."""

GROWING: Final = frozenset("İ")
"""Whose lower case is two characters."""

_NEW_LOWER: Final = {
    0x1C89: 0x1C8A, 0xA7CB: 0x264, 0xA7CC: 0xA7CD, 0xA7CE: 0xA7CF, 0xA7D2: 0xA7D3, 0xA7D4: 0xA7D5, 0xA7DA: 0xA7DB,
    0xA7DC: 0x19B, **{code: code + 0x20 for code in range(0x10D50, 0x10D66)},
    **{code: code + 0x1B for code in range(0x16EA0, 0x16EB9)},
}  # fmt: skip
_NEW_LETTERS: Final = (
    *_NEW_LOWER, 0x1C8A, 0xA7CD, 0xA7CF, 0xA7DB, *range(0x10D70, 0x10D86), *range(0x16EBB, 0x16ED4),
    *range(0x1DF25, 0x1DF2B),
)  # fmt: skip
"""Characters that are letters with a case since then."""
_NEW_MARKS: Final = (
    (0x897,), (0xECE,), (0x1ACF, 0x1ADD), (0x1AE0, 0x1AEB), (0xA7F1,), (0x10D4E,), (0x10D69, 0x10D6D), (0x10D6F,),
    (0x10EC5,), (0x10EFA, 0x10EFF), (0x11241,), (0x113BB, 0x113C0), (0x113CE,), (0x113D0,), (0x113D2,),
    (0x113E1, 0x113E2), (0x11B60,), (0x11B62, 0x11B64), (0x11B66,), (0x11DD9,), (0x11F00, 0x11F01), (0x11F36, 0x11F3A),
    (0x11F40,), (0x11F42,), (0x11F5A,), (0x13439, 0x13440), (0x13447, 0x13455), (0x1611E, 0x16129), (0x1612D, 0x1612F),
    (0x16D40, 0x16D42), (0x16D6B, 0x16D6C), (0x16FF2, 0x16FF3), (0x1E030, 0x1E06D), (0x1E08F,), (0x1E4EB, 0x1E4EF),
    (0x1E5EE, 0x1E5EF), (0x1E6E3,), (0x1E6E6,), (0x1E6EE, 0x1E6EF), (0x1E6F5,), (0x1E6FF,),
)  # fmt: skip
"""First and last of those that are looked past where a word's end is looked for."""
_NOT_LETTERS: Final = (0x295, 0x1171E)
"""Those that are neither, any more."""

_LETTER, _MARK, _NEITHER = "a", "\u0301", "-"
_STAND_INS: Final = {
    **dict.fromkeys(_NEW_LETTERS, _LETTER),
    **{code: _MARK for ends in _NEW_MARKS for code in range(ends[0], ends[-1] + 1)},
    **dict.fromkeys(_NOT_LETTERS, _NEITHER),
}
"""For each such character one that Python knows, and that counts the same around a `Σ`."""
_PLANE: Final = 0x10000
# A set of characters is a table to Python's expressions unless one is beyond the first plane: then it is a list, of
# which every character of a text is compared with each.
_NEW: Final = re.compile(f"[{''.join(chr(code) for code in _STAND_INS if code < _PLANE)}]")
_BEYOND: Final = re.compile(f"[{chr(_PLANE)}-{chr(sys.maxunicode)}]")
_NEW_BEYOND: Final = frozenset(chr(code) for code in _STAND_INS if code >= _PLANE)
_AFTER_CASED: Final = 0x20000
"""No letter from here on has a lower case."""


def lower(text: str) -> str:
    """The text in lower case."""
    if text.isascii() or not (_NEW.search(text) or not _NEW_BEYOND.isdisjoint(_BEYOND.findall(text))):
        return text.lower()
    lowered = text.translate(_NEW_LOWER).lower()
    if "Σ" not in text:
        return lowered
    sigmas = text.translate(_STAND_INS).lower()
    return "".join(told if one in SIGMAS else one for one, told in zip(lowered, sigmas, strict=True))


def upper_cases(character: str) -> frozenset[str]:
    """Other characters whose lower case has this one in it."""
    return _upper_cases().get(character, frozenset())


@lru_cache(maxsize=1)
def _upper_cases() -> dict[str, frozenset[str]]:
    found: dict[str, set[str]] = {}
    for code in range(_AFTER_CASED):
        character = chr(code)
        for one in lower(character):
            if one != character:
                found.setdefault(one, set()).add(character)
    return {one: frozenset(characters) for one, characters in found.items()}
