"""Regular expressions of users, in RE2: linear time, whatever the pattern and the text."""

from __future__ import annotations

from functools import lru_cache
from typing import Any


def compile_pattern(pattern: str) -> Any:
    """A compiled pattern for UTF-8 and for bytes. ValueError with a sentence."""
    import re2

    options = re2.Options()
    options.log_errors = False
    try:
        return re2.compile(pattern.encode(), options)
    except re2.error as error:
        reason = error.args[0].decode(errors="replace") if isinstance(error.args[0], bytes) else str(error)
        raise ValueError(f"{pattern!r} is not a regular expression (RE2): {reason}") from None


cached_pattern = lru_cache(100)(compile_pattern)
