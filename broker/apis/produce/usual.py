"""The usual Produce: one batch for one partition, no transactional id; read and answered without message objects.

A producer sends the same bytes again and again up to the length of its records: acks, timeout, topic, partition. So
these bytes (the *prefix*) are looked up instead of parsed, and the response is one `pack` into the bytes around the
three offsets. Both are learned with the codecs from a request that was parsed, so this file knows one thing about the
format: where the records begin. Any other request, and any error, takes the usual way of all requests.

Why this and not only the codecs: a one-record Produce takes 2,582 bytecodes with the codecs and 1,900 so
(`python -m tests.costs`), with the same bytes in the log and on the wire (`tests/broker/produce/test_usual.py`).

Invariants: `Usual.read` returns None unless the codec would return the same request; a prefix is learned only if the
codec encodes the parsed request to the same bytes. What is known is bounded (`known_prefixes`).
"""

from __future__ import annotations

from struct import Struct
from typing import TYPE_CHECKING, Final, TypeAlias

from barnabas.broker.apis.known_prefixes import BOUND, KnownPrefixes
from barnabas.wire.batches.records import HEADER_SIZE
from barnabas.wire.errors import ProtocolError
from barnabas.wire.frame import response_header_version
from barnabas.wire.messages.produce import (
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
    TopicProduceResponse,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from barnabas.broker.apis.known_prefixes import Bound
    from barnabas.broker.net.connection import Connection
    from barnabas.broker.replicas.partition import Partition
    from barnabas.storage.append.offset_assignment import AppendInfo
    from barnabas.storage.batch_content import UnfinishedCheck
    from barnabas.wire.errors import KafkaError
    from barnabas.wire.types import Uuid

FIRST_FLEXIBLE_VERSION: Final = 9
FIRST_VERSION_WITH_TOPIC_IDS: Final = 13
FIRST_VERSION_WITH_START_OFFSET: Final = 5
MOST_ELEMENTS: Final = 10
"""The usual request has a topic, a partition and their tagged fields; one with more elements is not parsed for it."""

_LENGTH: Final = Struct(">i")
_OFFSETS: Final = Struct(">qqq")
_TWO_OFFSETS: Final = Struct(">qq")
_FRAME_HEAD: Final = Struct(">ii")  # size, correlation id
_SAMPLE_OFFSETS: Final = (0x1122334455667788, 0x2233445566778811, 0x3344556677881122)
_NO_TAGS: Final = b"\0\0\0"  # of the partition, the topic and the request
_TOPIC_AT: Final = 8
"""In a flexible body: after the transactional id, acks, the timeout and the number of topics. A name of more than 126
characters is left to the codec: its length has two bytes."""
_AFTER_NAME: Final = 5  # the number of partitions and the partition's index

ReadUsual: TypeAlias = "Callable[[memoryview, int], UsualProduce | None]"


class UsualProduce:
    """One request, with the fields of a `ProduceRequest`; its `topic_data` is made when it is asked for."""

    __slots__ = ("_topic_data", "known", "outcome", "records")

    transactional_id = None

    def __init__(self, known: Known, records: memoryview) -> None:
        self.known = known
        self.records: memoryview | None = records
        self._topic_data: list[TopicProduceData] | None = None
        self.outcome: tuple[Partition, AppendInfo | UnfinishedCheck | Exception] | None = None
        """The partition that has not acknowledged the batch yet, and why."""

    @property
    def acks(self) -> int:
        """As in the request."""
        return self.known.acks

    @property
    def timeout_ms(self) -> int:
        """As in the request."""
        return self.known.timeout_ms

    @property
    def topic_data(self) -> list[TopicProduceData]:
        """As in the request. From now on it holds the records: it may be given a copy of them."""
        if self._topic_data is None:
            known = self.known
            data = PartitionProduceData(index=known.index, records=self.records)
            self._topic_data = [TopicProduceData(name=known.topic, topic_id=known.topic_id, partition_data=[data])]
            self.records = None
        return self._topic_data


class Known:
    """What a prefix says, and the response to it."""

    __slots__ = (
        "_has_start",
        "_head",
        "_pack",
        "_size",
        "_tail",
        "_version",
        "acks",
        "index",
        "name",
        "timeout_ms",
        "topic",
        "topic_id",
    )

    def __init__(self, request: ProduceRequest, version: int) -> None:
        self._version = version
        self.acks = request.acks
        self.timeout_ms = request.timeout_ms
        topic = request.topic_data[0]
        self.topic = topic.name
        self.topic_id: Uuid = topic.topic_id
        self.index = topic.partition_data[0].index
        self.name: str | Uuid = self.topic_id if version >= FIRST_VERSION_WITH_TOPIC_IDS else self.topic
        """The name or the id, as the request names its topic."""
        head, tail = _around_the_offsets(topic, self.index, version)
        if response_header_version(ProduceRequest.api_key, version) >= 1:
            head = b"\0" + head  # the header's tagged fields
        self._has_start = version >= FIRST_VERSION_WITH_START_OFFSET
        layout = Struct(f">ii{len(head)}s{'qqq' if self._has_start else 'qq'}{len(tail)}s")
        self._size = layout.size - 4
        self._head = head
        self._tail = tail
        self._pack = layout.pack

    def response(self, correlation_id: int, offset: int, append_time_ms: int, log_start_offset: int) -> bytes:
        """The frame of the response to a batch that was appended at `offset`, its size included; b"" with acks=0."""
        if not self.acks:
            return b""
        if not self._has_start:
            return self._pack(self._size, correlation_id, self._head, offset, append_time_ms, self._tail)
        return self._pack(self._size, correlation_id, self._head, offset, append_time_ms, log_start_offset, self._tail)

    def fail(self, connection: Connection, correlation_id: int, response: bytes, error: KafkaError) -> None:
        """Replace a response in a connection's output: the batch was not written. With acks=0, close the connection."""
        if not response:
            connection.is_closing = True  # R13
            return
        connection.replace(response, self._failed(correlation_id, error))

    def _failed(self, correlation_id: int, error: KafkaError) -> bytes:
        refused = PartitionProduceResponse(
            index=self.index, error_code=int(error.code), base_offset=-1, error_message=error.message
        )
        answers = TopicProduceResponse(name=self.topic, topic_id=self.topic_id, partition_responses=[refused])
        body = ProduceResponse(responses=[answers]).encode(self._version)
        if response_header_version(ProduceRequest.api_key, self._version) >= 1:
            body = b"\0" + body
        return _FRAME_HEAD.pack(4 + len(body), correlation_id) + body


def _around_the_offsets(topic: TopicProduceData, index: int, version: int) -> tuple[bytes, bytes]:
    """What the codec writes before and after the three offsets of a response without an error."""
    base_offset, log_append_time_ms, log_start_offset = _SAMPLE_OFFSETS
    partition_response = PartitionProduceResponse(
        index=index,
        base_offset=base_offset,
        log_append_time_ms=log_append_time_ms,
        log_start_offset=log_start_offset,
    )
    answers = TopicProduceResponse(name=topic.name, topic_id=topic.topic_id, partition_responses=[partition_response])
    body = ProduceResponse(responses=[answers]).encode(version)
    if version >= FIRST_VERSION_WITH_START_OFFSET:
        offsets = _OFFSETS.pack(*_SAMPLE_OFFSETS)
    else:
        offsets = _TWO_OFFSETS.pack(base_offset, log_append_time_ms)
    head, _, tail = body.partition(offsets)
    return head, tail


class Usual:
    """Reads the usual requests of one version of Produce."""

    __slots__ = ("_known", "_version", "read")

    def __init__(self, version: int, bound: Bound = BOUND) -> None:
        self._version = version
        self._known = KnownPrefixes(self._learn, bound)
        self.read: Callable[[memoryview, int], UsualProduce | None] = (
            self._read_flexible if version >= FIRST_FLEXIBLE_VERSION else self._read_plain
        )

    def _read_flexible(self, frame: memoryview, position: int) -> UsualProduce | None:
        """The request of a frame, None if it is not usual; `position` is the one after the client id."""
        try:
            if frame[position + 1]:
                return None  # a transactional id
            name_at = position + 1 + _TOPIC_AT
            if self._version >= FIRST_VERSION_WITH_TOPIC_IDS:
                at = name_at + 16 + _AFTER_NAME
            else:
                at = name_at + frame[name_at] + _AFTER_NAME
            size = frame[at]
            start = at + 1
            if size >= 0x80:
                byte = frame[start]
                size = size & 0x7F | (byte & 0x7F) << 7
                start += 1
                if byte >= 0x80:
                    byte = frame[start]
                    if byte >= 0x80:
                        return None  # larger than 2 MB
                    size |= byte << 14
                    start += 1
            end = start + size - 1
            if size <= HEADER_SIZE or frame[end:] != _NO_TAGS:  # type: ignore[comparison-overlap]
                return None
        except IndexError:
            return None
        prefix = bytes(frame[position:at])
        known = self._known.get(prefix) or self._known.learned(prefix, frame, position)
        return None if known is None else UsualProduce(known, frame[start:end])

    def _read_plain(self, frame: memoryview, position: int) -> UsualProduce | None:
        """As `_read_flexible`, in the versions with lengths of fixed size."""
        try:
            at = position + 14 + frame[position + 13] + 8  # a topic's name has 249 characters at most
            (size,) = _LENGTH.unpack_from(frame, at)
        except Exception:
            return None
        start = at + 4
        if size < HEADER_SIZE or start + size != len(frame):
            return None
        prefix = bytes(frame[position:at])
        known = self._known.get(prefix) or self._known.learned(prefix, frame, position)
        return None if known is None else UsualProduce(known, frame[start:])

    def _learn(self, frame: memoryview, position: int) -> Known | None:
        """What the bytes before the records say, if the request from `position` on is usual."""
        codec = ProduceRequest.codec(self._version)
        body = position + (self._version >= FIRST_FLEXIBLE_VERSION)  # the header's tagged fields
        if body > position and frame[position]:
            return None
        try:
            request, end = codec.parse_within(frame, body, MOST_ELEMENTS)
        except (ProtocolError, IndexError):
            return None
        topics = request.topic_data
        if end != len(frame) or request.transactional_id is not None or request.acks not in (-1, 0, 1):
            return None
        if len(topics) != 1 or len(topics[0].partition_data) != 1 or topics[0].partition_data[0].records is None:
            return None
        if request.encode(self._version) != frame[body:]:
            return None  # it has more than the fields that are known, or another form of a length
        return Known(request, self._version)


def usual_reader(version: int) -> ReadUsual:
    """The function that reads the usual requests of a version."""
    return Usual(version).read
