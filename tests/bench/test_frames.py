"""The frames that the bench builds itself decode correctly with the declared messages and the record reader."""

from __future__ import annotations

import struct
from collections import Counter

from barnabas.wire.batches.records import BatchView, iter_batches, iter_records
from barnabas.wire.messages.list_offsets import (
    ListOffsetsPartitionResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopicResponse,
)
from tests.support.requests import frames

HEADER_BYTES = 4 + 10 + len(frames.CLIENT_ID)


def _batch_of(raw: bytes) -> BatchView:
    (view,) = iter_batches(raw)
    assert view.crc_is_valid()
    return view


def test_a_list_offsets_frame_asks_for_every_partition() -> None:
    frame = frames.list_offsets({"one": range(2), "two": [7]}, 123)
    assert struct.unpack_from(">ihh", frame) == (len(frame) - 4, 2, 1)
    request = ListOffsetsRequest.decode(frame[HEADER_BYTES:], 1)
    requested = [
        (topic.name, partition.partition_index, partition.timestamp)
        for topic in request.topics
        for partition in topic.partitions
    ]
    assert requested == [("one", 0, 123), ("one", 1, 123), ("two", 7, 123)]


def test_a_list_offsets_answer_gives_error_and_offset_of_each_partition() -> None:
    answers = {"one": [(0, 0, 50), (1, 6, -1)], "other": [(3, 0, 7)]}
    topics = [
        ListOffsetsTopicResponse(
            name=topic,
            partitions=[
                ListOffsetsPartitionResponse(partition_index=n, error_code=code, timestamp=-1, offset=offset)
                for n, code, offset in partitions
            ],
        )
        for topic, partitions in answers.items()
    ]
    body = struct.pack(">i", 1) + bytes(ListOffsetsResponse(topics=topics).encode(1))
    assert frames.listed_offsets(body) == {("one", 0): (0, 50), ("one", 1): (6, -1), ("other", 3): (0, 7)}


def test_a_moved_batch_is_the_same_some_time_later() -> None:
    batch = frames.spread_batch(5, 20, 1_000_000)
    moved = frames.moved_batch(batch, 500)
    before, after = list(iter_records(_batch_of(batch))), list(iter_records(_batch_of(moved)))
    assert [record.timestamp for record in before] == [1_000_000 + n for n in range(5)]
    assert [record.timestamp for record in after] == [1_000_500 + n for n in range(5)]
    assert [record.value for record in after] == [record.value for record in before]
    assert _batch_of(moved).max_timestamp == 1_000_504


def test_a_keyed_batch_has_a_record_for_each_key() -> None:
    batch = frames.keyed_batch([b"a", b"b", b"a"], [b"x" * 9])
    assert Counter(record.key for record in iter_records(_batch_of(batch))) == {b"a": 2, b"b": 1}
