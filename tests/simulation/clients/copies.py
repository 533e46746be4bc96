"""The values of copied records: every attempt writes a different value, which contains the original one."""

from __future__ import annotations

from collections import Counter


def copy_of(value: bytes, attempt: int) -> bytes:
    """The value that this attempt writes."""
    return b"c/%s#%d" % (value, attempt)


def originals(copies: Counter[bytes]) -> Counter[bytes]:
    """The values that were copied, each as often as there are copies of it."""
    return Counter(value[2:].partition(b"#")[0] for value in copies.elements())
