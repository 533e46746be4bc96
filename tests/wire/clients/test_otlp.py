"""The reader of pushed metrics: what OpenTelemetry's messages contain, and any bytes."""

from __future__ import annotations

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from barnabas.wire.clients.otlp import MAX_FIELDS, MAX_ITEMS, MAX_TEXT, Point, read_metrics
from barnabas.wire.clients.protobuf import ProtobufError
from tests.support.cases import for_each
from tests.support.requests.otlp_writer import attribute, gauge, number, push, sum_of, text, varint_field


def points(data: bytes) -> list[Point]:
    return [point for point in read_metrics(data) if point is not None]


def test_gauges_and_sums_are_read_with_the_attributes_of_resource_and_point() -> None:
    data = push(
        [gauge("queue", number(1.5, topic="t", partition="3")), sum_of("sent", number(7), is_delta=True)],
        client_rack="r1",
    )
    assert points(data) == [
        Point("queue", (("client_rack", "r1"), ("topic", "t"), ("partition", "3")), 1.5, False, False),
        Point("sent", (("client_rack", "r1"),), 7.0, True, True),
    ]


@for_each(("is_delta", "is_monotonic"), [(True, True), (False, True), (True, False), (False, False)])
def test_the_kind_of_a_sum_is_told(is_delta: bool, is_monotonic: bool) -> None:
    data = push([sum_of("sent", number(-7), is_delta=is_delta, is_monotonic=is_monotonic)])
    assert points(data) == [Point("sent", (), -7.0, is_monotonic, is_delta)]


@for_each(
    ("value", "read"),
    [
        (text(1, "t"), "t"),
        (varint_field(2, 1), "true"),
        (varint_field(2, 0), "false"),
        (varint_field(3, 42), "42"),
        (varint_field(3, 2**64 - 5), "-5"),
        (b"\x21" + struct.pack("<d", 0.5), "0.5"),
        (text(7, "bytes"), ""),
        (b"", ""),
    ],
)
def test_attributes_of_every_type_are_texts(value: bytes, read: str) -> None:
    point = number(1.0) + text(7, attribute("k", value))
    assert points(push([gauge("m", point)]))[0].attributes == (("k", read),)


def test_what_is_unknown_is_skipped() -> None:
    unknown = varint_field(90, 5) + text(91, b"abc") + b"\xe5\x05" + bytes(4) + b"\xe1\x05" + bytes(8)
    histogram = text(2, text(1, "h") + text(9, text(1, b"")))
    data = push([gauge("m", number(1.0) + unknown), histogram, text(2, unknown)]) + unknown
    assert points(data) == [Point("m", (), 1.0, False, False)]


def test_a_point_without_a_value_is_none() -> None:
    assert points(push([gauge("m", text(7, attribute("k", text(1, "v"))))])) == []


def test_long_texts_are_cut() -> None:
    (point,) = points(push([gauge("n" * 5000, number(1.0, topic="é" * 5000))]))
    assert (point.name, point.attributes) == ("n" * MAX_TEXT, (("topic", "é" * MAX_TEXT),))


def test_the_items_of_a_push_are_bounded() -> None:
    with pytest.raises(ProtobufError, match="fields and data points"):
        list(read_metrics(varint_field(1, 0) * (MAX_ITEMS + 1)))
    assert len(list(read_metrics(varint_field(1, 0) * MAX_ITEMS))) == MAX_ITEMS


def test_the_fields_of_an_attribute_are_bounded() -> None:
    for value in (text(1, "v") * 5, text(1, "v")):
        point = number(1.0) + text(7, attribute("k", value) + varint_field(9, 1) * (3 if len(value) < 5 else 0))
        with pytest.raises(ProtobufError, match="More than 4 fields"):
            list(read_metrics(push([gauge("m", point)])))


def test_the_fields_of_a_point_are_bounded() -> None:
    fields = varint_field(8, 1) * MAX_FIELDS
    assert list(read_metrics(push([gauge("m", fields)])))
    with pytest.raises(ProtobufError, match="fields"):
        list(read_metrics(push([gauge("m", fields + varint_field(8, 1))])))


@for_each(
    "data",
    [
        b"\x0a",  # no length
        b"\x0a\x05abc",  # too short
        b"\x0a\xff\xff\xff\xff\x0f",  # announces 4 GiB
        b"\x0b",  # a group
        b"\x08" + b"\xff" * 10 + b"\x01",  # a varint of eleven bytes
        b"\x08\x80",
        b"\x09\x00",
        b"\x0f",
        push([])[:-1] + b"\xff",
    ],
)
def test_what_is_no_message_is_refused(data: bytes) -> None:
    with pytest.raises(ProtobufError):
        list(read_metrics(data))


@given(st.binary(max_size=400))
def test_any_bytes_are_read_or_refused(data: bytes) -> None:
    for candidate in (data, text(1, data), text(1, text(2, data)), push([data]), push([gauge("m", data)])):
        try:
            decoded = points(candidate)
        except ProtobufError:
            continue
        assert all(isinstance(point.value, float) for point in decoded)
