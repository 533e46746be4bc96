"""Regular expressions of users, in RE2: linear time, whatever the pattern and the text."""

from __future__ import annotations

from functools import lru_cache
from typing import Any


def compile_pattern(pattern: str) -> Any:
    """A compiled pattern for UTF-8 and for bytes. ValueError with a sentence."""
    from barnabas.coord.re2_patterns import compile_re2

    try:
        return compile_re2(pattern.encode())
    except ValueError as error:
        raise ValueError(f"{pattern!r} is not a regular expression (RE2): {error}") from None


cached_pattern = lru_cache(100)(compile_pattern)
