"""Regular expressions on the command line (`client/records/patterns.py`): a wrong one is a usage error."""

from __future__ import annotations

from typing import Any

import click

from barnabas.client.records.patterns import compile_pattern


def compile_regex(pattern: str, option: str) -> Any:
    """A compiled pattern for UTF-8 and for bytes; a usage error names `option`."""
    try:
        return compile_pattern(pattern)
    except ValueError as error:
        raise click.BadParameter(str(error), param_hint=option) from None
