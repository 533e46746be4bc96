"""Regular expressions of users, in RE2: linear time, whatever the pattern and the text."""

from __future__ import annotations

from typing import Any

import click


def compile_regex(pattern: str, option: str) -> Any:
    """A compiled pattern for UTF-8 and for bytes; a usage error names `option`."""
    import re2

    options = re2.Options()
    options.log_errors = False
    try:
        return re2.compile(pattern.encode(), options)
    except re2.error as error:
        reason = error.args[0].decode(errors="replace") if isinstance(error.args[0], bytes) else str(error)
        sentence = f"{pattern!r} is not a regular expression (RE2): {reason}"
        raise click.BadParameter(sentence, param_hint=option) from None
