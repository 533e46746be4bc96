"""Reads the metrics that clients push: OpenTelemetry's `MetricsData` (OTLP, KIP-714).

Clients send gauges and sums; histograms and summaries are skipped. Reading is a generator, so that a long push can be
read in steps: it gives a data point, or None for a field on the way to one. The cost of an item is bounded, to
about half a millisecond: the fields of a data point are few, and its texts are cut to `MAX_TEXT` characters.

Why not the library for OTLP: it brings protobuf, which reads a message in one piece.

Source: opentelemetry-proto 1.x, `metrics.proto`, `common.proto` and `resource.proto`.
"""

from __future__ import annotations

from collections.abc import Iterator
from struct import Struct
from typing import Final, NamedTuple

from barnabas.wire.clients.protobuf import BYTES, FIXED64, VARINT, ProtobufError, fields

MAX_ITEMS: Final = 100_000
"""Most fields and data points of a push: a megabyte of what clients send has a fifth of that."""
MAX_FIELDS: Final = 64
"""Most fields of a data point or a resource: their attributes are among them."""
MAX_FIELDS_OF_ATTRIBUTE: Final = 4
"""Most fields of an attribute, which has two, and of its value, which has one."""
MAX_TEXT: Final = 1024
"""Characters of a name or an attribute's value that are kept."""

_DOUBLE = Struct("<d")
_SFIXED64 = Struct("<q")
_DELTA = 1  # AggregationTemporality

# Field numbers, by message.
_RESOURCE_METRICS = 1
_RESOURCE, _SCOPE_METRICS = 1, 2
_RESOURCE_ATTRIBUTES = 1
_METRICS = 2
_NAME, _GAUGE, _SUM = 1, 5, 7
_DATA_POINTS, _TEMPORALITY, _IS_MONOTONIC = 1, 2, 3
_AS_DOUBLE, _AS_INT, _ATTRIBUTES = 4, 6, 7
_KEY, _VALUE = 1, 2
_STRING, _BOOL, _INT, _FLOAT = 1, 2, 3, 4

Attributes = tuple[tuple[str, str], ...]


class Point(NamedTuple):
    """One value of one metric."""

    name: str
    attributes: Attributes
    """The attributes of the resource, then of the data point."""
    value: float
    is_monotonic: bool
    """Whether it is a count that only grows."""
    is_delta: bool
    """Whether the value is what was added since the last push."""


class _Metric(NamedTuple):
    name: str
    resource: Attributes
    is_monotonic: bool
    is_delta: bool


def read_metrics(data: bytes) -> Iterator[Point | None]:
    """The data points of a push, and None for other fields. ProtobufError for invalid bytes, and for too many items.

    The points before that have been given by then.
    """
    for count, item in enumerate(_read(data)):
        if count == MAX_ITEMS:
            raise ProtobufError(f"More than {MAX_ITEMS} fields and data points")
        yield item


def _read(data: bytes) -> Iterator[Point | None]:
    for number, kind, start, end in fields(data, 0, len(data)):
        yield None
        if number == _RESOURCE_METRICS and kind == BYTES:
            yield from _read_resource(data, start, end)


def _read_resource(data: bytes, start: int, end: int) -> Iterator[Point | None]:
    resource: Attributes = ()
    for number, kind, first, last in fields(data, start, end):
        yield None
        if number == _RESOURCE and kind == BYTES:
            resource = _attributes(data, first, last, _RESOURCE_ATTRIBUTES)
    for number, kind, first, last in fields(data, start, end):
        yield None
        if number == _SCOPE_METRICS and kind == BYTES:
            for inner, inner_kind, metric_start, metric_end in fields(data, first, last):
                yield None
                if inner == _METRICS and inner_kind == BYTES:
                    yield from _read_metric(data, metric_start, metric_end, resource)


def _read_metric(data: bytes, start: int, end: int, resource: Attributes) -> Iterator[Point | None]:
    name = ""
    for number, kind, first, last in fields(data, start, end):
        yield None
        if number == _NAME and kind == BYTES:
            name = _text(data, first, last)
    for number, kind, first, last in fields(data, start, end):
        yield None
        if kind == BYTES and number == _GAUGE:
            yield from _read_points(data, first, last, _Metric(name, resource, is_monotonic=False, is_delta=False))
        elif kind == BYTES and number == _SUM:
            yield from _read_sum(data, first, last, name, resource)


def _read_sum(data: bytes, start: int, end: int, name: str, resource: Attributes) -> Iterator[Point | None]:
    is_delta = is_monotonic = False
    for number, kind, value, _ in fields(data, start, end):  # they are sent after the points
        yield None
        if kind == VARINT and number == _TEMPORALITY:
            is_delta = value == _DELTA
        elif kind == VARINT and number == _IS_MONOTONIC:
            is_monotonic = value != 0
    yield from _read_points(data, start, end, _Metric(name, resource, is_monotonic, is_delta))


def _read_points(data: bytes, start: int, end: int, metric: _Metric) -> Iterator[Point | None]:
    for number, kind, first, last in fields(data, start, end):
        yield _read_point(data, first, last, metric) if number == _DATA_POINTS and kind == BYTES else None


def _read_point(data: bytes, start: int, end: int, metric: _Metric) -> Point | None:
    """The data point, or None if it has no value."""
    value: float | None = None
    for number, kind, first, _ in _few(data, start, end):
        if kind == FIXED64 and number == _AS_DOUBLE:
            (value,) = _DOUBLE.unpack_from(data, first)
        elif kind == FIXED64 and number == _AS_INT:
            value = float(_SFIXED64.unpack_from(data, first)[0])
    if value is None:
        return None
    attributes = metric.resource + _attributes(data, start, end, _ATTRIBUTES)
    return Point(metric.name, attributes, value, metric.is_monotonic, metric.is_delta)


def _few(data: bytes, start: int, end: int, most: int = MAX_FIELDS) -> Iterator[tuple[int, int, int, int]]:
    """The fields of a message that is read in one step."""
    for count, field in enumerate(fields(data, start, end)):
        if count == most:
            raise ProtobufError(f"More than {most} fields")
        yield field


def _attributes(data: bytes, start: int, end: int, number: int) -> Attributes:
    """The KeyValues with this field number."""
    return tuple(
        _attribute(data, first, last)
        for field_number, kind, first, last in _few(data, start, end)
        if field_number == number and kind == BYTES
    )


def _attribute(data: bytes, start: int, end: int) -> tuple[str, str]:
    key = value = ""
    for number, kind, first, last in _few(data, start, end, MAX_FIELDS_OF_ATTRIBUTE):
        if kind == BYTES and number == _KEY:
            key = _text(data, first, last)
        elif kind == BYTES and number == _VALUE:
            value = _any_value(data, first, last)
    return key, value


def _any_value(data: bytes, start: int, end: int) -> str:
    """An AnyValue as text; "" for arrays, maps and bytes, which no client sends."""
    text = ""
    for number, kind, first, last in _few(data, start, end, MAX_FIELDS_OF_ATTRIBUTE):
        if kind == BYTES and number == _STRING:
            text = _text(data, first, last)
        elif kind == VARINT and number == _BOOL:
            text = "true" if first else "false"
        elif kind == VARINT and number == _INT:
            text = str(first - (1 << 64) if first >> 63 else first)
        elif kind == FIXED64 and number == _FLOAT:
            text = repr(_DOUBLE.unpack_from(data, first)[0])
    return text


def _text(data: bytes, start: int, end: int) -> str:
    # A character of UTF-8 has at most four bytes: bytes beyond the limit are not decoded.
    return data[start : min(end, start + 4 * MAX_TEXT)].decode("utf-8", errors="replace")[:MAX_TEXT]
