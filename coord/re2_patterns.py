"""Regular expressions in RE2's syntax, which take linear time whatever the pattern and the text.

RE2 is imported with the first pattern: it takes megabytes, and most brokers and commands need none.
"""

from __future__ import annotations

from typing import Any


def compile_re2(pattern: str | bytes) -> Any:
    """Compile a pattern, of bytes for matching bytes. ValueError with RE2's reason, which is not logged."""
    import re2

    options = re2.Options()
    options.log_errors = False
    try:
        return re2.compile(pattern, options)
    except re2.error as error:
        reason = error.args[0] if error.args else error
        raise ValueError(reason.decode(errors="replace") if isinstance(reason, bytes) else str(reason)) from None
