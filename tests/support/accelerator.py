"""The ways in which records are checked: in Python, and in C if this installation has the accelerator."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from barnabas.wire.batches import plain_records

ACCELERATOR = plain_records.valid_records
WAYS = ["Python"] if ACCELERATOR is None else ["Python", "C"]


@contextmanager
def checked_in(way: str) -> Iterator[None]:
    """Records are checked in that way meanwhile."""
    plain_records.valid_records = ACCELERATOR if way == "C" else None
    try:
        yield
    finally:
        plain_records.valid_records = ACCELERATOR
