"""Positions in a partition on the command line (`client/records/offset_spec.py`): a wrong one is a usage error."""

from __future__ import annotations

import click

from barnabas.client.positions import OffsetSpec
from barnabas.client.records import offset_spec


def parse_offset_spec(text: str, option: str) -> OffsetSpec:
    """Parse a position; a usage error names `option`."""
    try:
        return offset_spec.parse_offset_spec(text)
    except ValueError as error:
        raise click.BadParameter(str(error), param_hint=option) from None


def parse_range(text: str, option: str) -> tuple[OffsetSpec, OffsetSpec | None]:
    """`FROM`, `FROM:TO`, `:TO` or `FROM:`; without FROM from the beginning, without TO no end (None)."""
    try:
        return offset_spec.parse_range(text)
    except ValueError as error:
        raise click.BadParameter(str(error), param_hint=option) from None
