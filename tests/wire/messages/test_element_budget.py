"""A reader that gives a message a budget of elements makes no more array elements and tagged fields than that."""

from __future__ import annotations

import pytest

from barnabas.wire.codec.fields import StructBase
from barnabas.wire.codec.runtime import unknown_tags
from barnabas.wire.errors import TooManyElements
from barnabas.wire.messages.groups.offsets import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from barnabas.wire.varint import encode_unsigned_varint
from tests.support.requests.recorded import vectors
from tests.support.steps import counted


def _elements(message: StructBase) -> int:
    """The number of array elements and tagged fields of a message that Kafka or our codec has written."""
    count = len(message.unknown_tagged_fields)
    for field in message.declared:
        value = getattr(message, field.name)
        count += field.tag >= 0 and not field.is_default(value)
        if field.kind == "array" and value is not None:
            count += len(value)
            if field.struct_class is not None:
                count += sum(map(_elements, value))
        elif field.kind == "struct" and value is not None:
            count += _elements(value)
    return count


def _elements_of_the_top(message: StructBase) -> int:
    arrays = [getattr(message, field.name) for field in message.declared if field.kind == "array"]
    return sum([len(array) for array in arrays if array is not None])


def test_every_message_is_read_within_its_number_of_elements_and_not_within_one_less() -> None:
    refused = nested = 0
    for vector in vectors():
        codec = vector.message_class.codec(vector.version)
        message, end = codec.parse(vector.data)
        count = _elements(message)
        assert codec.parse_within(vector.data, 0, count) == (message, end)
        assert counted(codec.parse_in_steps(vector.data, 0, count))[0] == (message, end)
        if count:
            with pytest.raises(TooManyElements):
                codec.parse_within(vector.data, 0, count - 1)
            with pytest.raises(TooManyElements):
                counted(codec.parse_in_steps(vector.data, 0, count - 1))
            refused += 1
            nested += count > _elements_of_the_top(message)
    assert refused > 500
    assert nested > 200


def test_nothing_is_made_of_an_array_that_is_too_long() -> None:
    message = OffsetCommitRequest(group_id="g", topics=[OffsetCommitRequestTopic(name="")] * 1000)
    data = message.encode(9)
    with pytest.raises(TooManyElements) as refused:
        OffsetCommitRequest.codec(9).parse_within(data, 0, 999)
    assert (refused.value.count, refused.value.budget, refused.value.name) == (1000, 999, "topics")


def test_there_is_a_step_for_each_element() -> None:
    topics = [OffsetCommitRequestTopic(name="t", partitions=[OffsetCommitRequestPartition()] * 50) for _ in range(20)]
    message = OffsetCommitRequest(group_id="g", topics=topics)
    (read, _), steps = counted(OffsetCommitRequest.codec(9).parse_in_steps(message.encode(9), 0, 20 * 51))
    assert read == message
    assert steps == 20 * 51 + 1


def test_unknown_tagged_fields_are_counted() -> None:
    message = OffsetCommitRequest(group_id="g")
    message.unknown_tagged_fields = tuple([(tag, b"") for tag in range(100)])
    codec = OffsetCommitRequest.codec(9)
    data = message.encode(9)
    assert codec.parse_within(data, 0, 100)[0] == message
    with pytest.raises(TooManyElements):
        codec.parse_within(data, 0, 99)
    topic = OffsetCommitRequestTopic(name="")
    topic.unknown_tagged_fields = message.unknown_tagged_fields
    data = OffsetCommitRequest(group_id="g", topics=[topic] * 10).encode(9)
    assert len(codec.parse_within(data, 0, 1010)[0].topics) == 10
    with pytest.raises(TooManyElements):
        codec.parse_within(data, 0, 1009)
    section = encode_unsigned_varint(300) + b"\x64\x00" * 300
    assert len(unknown_tags(section, 0, len(section), 300)[0]) == 300
    with pytest.raises(TooManyElements):
        unknown_tags(section, 0, len(section), 299)
