"""Writes OpenTelemetry's metrics as clients push them, for tests."""

from __future__ import annotations

import struct
from collections.abc import Iterable


def varint(value: int) -> bytes:
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def varint_field(field: int, value: int) -> bytes:
    return varint(field << 3) + varint(value)


def text(field: int, value: bytes | str) -> bytes:
    """A field with a text, bytes, or a message."""
    data = value.encode() if isinstance(value, str) else value
    return varint(field << 3 | 2) + varint(len(data)) + data


def attribute(key: str, value: bytes) -> bytes:
    """A KeyValue; `value` is an AnyValue."""
    return text(1, key) + text(2, value)


def number(value: float, **attributes: str) -> bytes:
    """A NumberDataPoint: an int is sent as one."""
    form = b"\x31" + struct.pack("<q", value) if isinstance(value, int) else b"\x21" + struct.pack("<d", value)
    return form + b"".join(text(7, attribute(key, text(1, item))) for key, item in attributes.items())


def gauge(name: str, *points: bytes) -> bytes:
    """A Metric in its ScopeMetrics."""
    return text(2, text(1, name) + text(5, b"".join(text(1, point) for point in points)))


def sum_of(name: str, *points: bytes, is_delta: bool, is_monotonic: bool = True) -> bytes:
    """A Metric in its ScopeMetrics."""
    kind = varint_field(2, 1 if is_delta else 2) + varint_field(3, int(is_monotonic))
    return text(2, text(1, name) + text(7, b"".join(text(1, point) for point in points) + kind))


def push(metrics: Iterable[bytes], **resource: str) -> bytes:
    """MetricsData with one resource."""
    attributes = b"".join(text(1, attribute(key, text(1, value))) for key, value in resource.items())
    return text(1, text(1, attributes) + text(2, b"".join(metrics)))
