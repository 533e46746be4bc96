"""What the three measurements share: options, payloads, the result."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import cycle
from pathlib import Path
from random import Random

import click

from barnabas.cli.options.escapes import unescape
from barnabas.cli.records.produce import ACKS
from barnabas.terminal.tables import is_document, show, show_fields

PAYLOADS = 1000
"""Different random values, which are sent in turn: a batch of them compresses as random text does."""
LETTERS = b"ABCDEFGHIJKLMNOPQRSTUVWXYZ"
MB = 1_000_000

acks_option = click.option(
    "-a",
    "--acks",
    type=click.Choice(list(ACKS)),
    default="all",
    show_default=True,
    help="Acknowledgements to wait for.",
)
size_option = click.option(
    "-s",
    "--record-size",
    type=click.IntRange(min=1),
    default=100,
    show_default=True,
    metavar="BYTES",
    help="Size of the random values.",
)


def payloads(record_size: int, file: Path | None, delimiter: str) -> Iterator[bytes]:
    """Values without end: random ones, or those of a file in turn. An empty file is a usage error."""
    if file is None:
        random = Random(7)
        return cycle([bytes(random.choices(LETTERS, k=record_size)) for _ in range(PAYLOADS)])
    values = [value for value in file.read_bytes().split(unescape(delimiter, "--payload-delimiter")) if value]
    if not values:
        raise click.BadParameter(f"{file} has no values", param_hint="--payload-file")
    return cycle(values)


def show_result(result: Mapping[str, object], output: str) -> None:
    """Print one measurement."""
    if is_document(output):
        show(result, output)
    else:
        show_fields({name: _grouped(value) for name, value in result.items()}, output)


def rates(records: int, size: int, seconds: float) -> dict[str, object]:
    """Records, bytes and time, and how many a second."""
    return {
        "records": records,
        "bytes": size,
        "seconds": round(seconds, 3),
        "records_per_s": round(records / seconds) if seconds else None,
        "mb_per_s": round(size / MB / seconds, 2) if seconds else None,
    }


def _grouped(value: object) -> object:
    return f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) else value
