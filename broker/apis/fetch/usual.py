"""The usual Fetch: one partition, of a consumer, in a session or not; read and answered without message objects.

A consumer sends the same bytes again and again but for the epoch of its session and the offset. The bytes around these
two (the *prefix*, without them) are looked up (`known_prefixes`), and the response is one `pack` into the bytes around
its offsets, and the records. Both are learned with the codecs from a request that was parsed.

If there is something to return at once, it is returned here. Any other request (it waits, has an error, opens a
session, or is of a follower) takes the usual way of all requests (`fetch`), where it is read as if it came first:
nothing has changed before. Its `FetchRequest` is made from what is known.

Invariant: a prefix is learned only if the codec encodes the parsed request to the same bytes, so a frame that differs
from it in the epoch and the offset only is the same request but for these. Where they are depends on bytes of the
prefix.
"""

from __future__ import annotations

from struct import Struct
from typing import TYPE_CHECKING, Final

from barnabas.broker.apis.known_prefixes import BOUND, KnownPrefixes
from barnabas.broker.config.keys.general import FETCH_MAX_BYTES
from barnabas.broker.net.connection import SMALL_SLICE_BYTES
from barnabas.broker.replicas.leader.fetch_sessions import FINAL_EPOCH, NO_SESSION
from barnabas.coord.security.acls import Operation
from barnabas.wire.errors import ProtocolError
from barnabas.wire.messages.fetch import (
    FetchableTopicResponse,
    FetchRequest,
    FetchRequestFetchPartition,
    FetchRequestFetchTopic,
    FetchResponse,
    FetchResponsePartitionData,
)
from barnabas.wire.varint import encode_unsigned_varint

if TYPE_CHECKING:
    from collections.abc import Callable

    from barnabas.broker.apis.known_prefixes import Bound
    from barnabas.broker.apis.registry import ServeUsual
    from barnabas.broker.context import Broker
    from barnabas.broker.net.connection import Connection
    from barnabas.broker.replicas.leader.fetch_sessions import FetchSession
    from barnabas.storage.files import FileSlice
    from barnabas.storage.log import Log
    from barnabas.wire.types import Chunk

FIRST_VERSION_WITH_START_OFFSET: Final = 5
FIRST_VERSION_WITH_SESSIONS: Final = 7
FIRST_VERSION_WITH_EPOCHS: Final = 9
FIRST_FLEXIBLE_VERSION: Final = 12
FIRST_VERSION_WITH_TOPIC_IDS: Final = 13
FIRST_VERSION_WITH_REPLICA_STATE: Final = 15
MOST_ELEMENTS: Final = 10
"""The usual request has a topic, a partition and their tagged fields; one with more elements is not parsed for it."""
READ_COMMITTED: Final = 1
CONSUMER: Final = -1
"""The replica id of a client that is no replica."""

_READ: Final = int(Operation.READ)  # a plain number is found faster
_EPOCH: Final = Struct(">i")
_OFFSET: Final = Struct(">q")
_OFFSETS: Final = Struct(">qqq")
_TWO_OFFSETS: Final = Struct(">qq")
_SAMPLE_OFFSETS: Final = (0x1122334455667788, 0x2233445566778811, 0x3344556677881122)
_SAMPLE_RECORDS: Final = b"\x99records\x99"
_BEFORE_EPOCH: Final = Struct(">iiibi").size  # max wait, min bytes, max bytes, isolation level, session id
_FLEXIBLE_TAIL: Final = 19
"""In a flexible body, from the end of the offset to the rack's length: last fetched epoch, log start offset, size,
tagged fields of partition and topic, and the number of topics to forget."""


class KnownFetch:
    """What a prefix says, and the responses to it."""

    __slots__ = (
        "_has_start",
        "_head",
        "_middle",
        "_pack",
        "_request",
        "_size",
        "_tail",
        "_write_length",
        "is_committed",
        "key",
        "leader_epoch",
        "max_bytes",
        "min_bytes",
        "partition",
        "rack_id",
        "session_id",
    )

    def __init__(self, request: FetchRequest, version: int) -> None:
        self._request = request
        topic = request.topics[0]
        self.partition = topic.partitions[0]
        """As in the request, with the offset that was asked for last."""
        uses_ids = version >= FIRST_VERSION_WITH_TOPIC_IDS
        self.key: tuple[bytes | str, int] = (topic.topic_id if uses_ids else topic.topic, self.partition.partition)
        self.leader_epoch = self.partition.current_leader_epoch
        self.session_id = request.session_id
        self.is_committed = request.isolation_level == READ_COMMITTED
        self.min_bytes = request.min_bytes
        self.max_bytes = max(0, min(request.max_bytes, self.partition.partition_max_bytes))
        self.rack_id = request.rack_id
        is_flexible = version >= FIRST_FLEXIBLE_VERSION
        self._write_length: Callable[[int], bytes] = _flexible_length if is_flexible else _EPOCH.pack
        self._has_start = version >= FIRST_VERSION_WITH_START_OFFSET
        self._head, self._middle, self._tail = self._around_the_records(version)
        if is_flexible:
            self._head = b"\0" + self._head  # the header's tagged fields
        layout = Struct(f">ii{len(self._head)}s{'qqq' if self._has_start else 'qq'}{len(self._middle)}s")
        self._size = layout.size - 4 + len(self._tail)
        self._pack = layout.pack

    def _around_the_records(self, version: int) -> tuple[bytes, bytes, bytes]:
        """What the codec writes before the three offsets, up to the length of the records, and after the records."""
        high_watermark, last_stable_offset, log_start_offset = _SAMPLE_OFFSETS
        data = FetchResponsePartitionData(
            partition_index=self.partition.partition,
            high_watermark=high_watermark,
            last_stable_offset=last_stable_offset,
            log_start_offset=log_start_offset,
            aborted_transactions=[] if self.is_committed else None,
            records=_SAMPLE_RECORDS,
        )
        topic = self._request.topics[0]
        answers = FetchableTopicResponse(topic=topic.topic, topic_id=topic.topic_id, partitions=[data])
        response = FetchResponse(session_id=self.session_id, responses=[answers])
        if self._has_start:
            offsets = _OFFSETS.pack(*_SAMPLE_OFFSETS)
        else:
            offsets = _TWO_OFFSETS.pack(high_watermark, last_stable_offset)
        head, _, rest = response.encode(version).partition(offsets)
        middle, _, tail = rest.partition(self._write_length(len(_SAMPLE_RECORDS)) + _SAMPLE_RECORDS)
        return head, middle, tail

    def is_next(self, session: FetchSession | None, epoch: int) -> bool:
        """Whether a request with this epoch is the next one of its session, which has this partition only."""
        if session is None:
            return self.session_id == NO_SESSION and epoch == FINAL_EPOCH
        partitions = session.partitions
        return session.epoch == epoch and len(partitions) == 1 and self.key in partitions and not session.is_follower

    def request(self, session_epoch: int, fetch_offset: int) -> FetchRequest:
        """The request with this epoch and offset, as the codec parses it."""
        request, partition = self._request, self.partition
        topic = request.topics[0]
        requested = FetchRequestFetchPartition(
            partition=partition.partition,
            current_leader_epoch=partition.current_leader_epoch,
            fetch_offset=fetch_offset,
            last_fetched_epoch=partition.last_fetched_epoch,
            log_start_offset=partition.log_start_offset,
            partition_max_bytes=partition.partition_max_bytes,
        )
        return FetchRequest(
            max_wait_ms=request.max_wait_ms,
            min_bytes=request.min_bytes,
            max_bytes=request.max_bytes,
            isolation_level=request.isolation_level,
            session_id=request.session_id,
            session_epoch=session_epoch,
            topics=[FetchRequestFetchTopic(topic=topic.topic, topic_id=topic.topic_id, partitions=[requested])],
            rack_id=request.rack_id,
        )

    def answer(self, connection: Connection, correlation_id: int, log: Log, records: FileSlice | memoryview) -> bytes:
        """The frame of the response; b"" if its pieces are in the connection's output already."""
        size = len(records)
        length = self._write_length(size)
        end = log.high_watermark, log.last_stable_offset
        offsets = (*end, log.log_start_offset) if self._has_start else end
        head = self._pack(self._size + len(length) + size, correlation_id, self._head, *offsets, self._middle)
        if size < SMALL_SLICE_BYTES and type(records) is memoryview:
            return b"".join((head, length, records, self._tail))
        pieces: list[Chunk] = [head + length, records, self._tail] if self._tail else [head + length, records]
        connection.out.extend(pieces)
        connection.out_bytes += len(head) + len(length) + size + len(self._tail)
        return b""


def _flexible_length(size: int) -> bytes:
    return encode_unsigned_varint(size + 1)


class UsualFetches:
    """Serves the usual requests of one version of Fetch."""

    __slots__ = ("_epoch_at", "_known", "_topics_at", "_version")

    def __init__(self, version: int, bound: Bound = BOUND) -> None:
        self._version = version
        self._known = KnownPrefixes(self._learn, bound)
        self._epoch_at = _BEFORE_EPOCH  # after the client id
        if version < FIRST_VERSION_WITH_REPLICA_STATE:
            self._epoch_at += 4  # the id of the replica
        if version >= FIRST_FLEXIBLE_VERSION:
            self._epoch_at += 1  # the header's tagged fields
        self._topics_at = self._epoch_at + 4
        if version < FIRST_VERSION_WITH_SESSIONS:
            self._epoch_at = self._topics_at = _BEFORE_EPOCH  # with the replica's id, without the session's and epoch

    def read(self, frame: memoryview, position: int) -> tuple[KnownFetch, int, int] | None:
        """What is known of a frame, its epoch and its offset; None if it is not usual.

        `position` is the one after the client id.
        """
        epoch_at = position + self._epoch_at
        at = position + self._topics_at  # their number
        try:
            if self._version >= FIRST_VERSION_WITH_TOPIC_IDS:
                if frame[at] != 2 or frame[at + 17] != 2:
                    return None
                end = at + 34
            else:
                end = self._end_of_offset(frame, at)
            if self._version >= FIRST_FLEXIBLE_VERSION:
                rack_at = end + _FLEXIBLE_TAIL
                if rack_at + frame[rack_at] + 1 != len(frame):
                    return None  # it has tagged fields, as a follower's
            elif frame[position] < 0x80:
                return None  # a follower's
            prefix = b"".join((frame[position:epoch_at], frame[at : end - 8], frame[end:]))
            known = self._known.get(prefix) or self._known.learned(prefix, frame, position)
            if known is None:
                return None
            epoch = FINAL_EPOCH if at == epoch_at else _EPOCH.unpack_from(frame, epoch_at)[0]
            return known, epoch, _OFFSET.unpack_from(frame, end - 8)[0]
        except IndexError:
            return None

    def _end_of_offset(self, frame: memoryview, at: int) -> int:
        """The end of the offset if the request, which names its topics, has one partition. Else IndexError."""
        if self._version >= FIRST_FLEXIBLE_VERSION:
            end = at + 1 + frame[at + 1]  # a name of more than 126 characters, whose length has two bytes, is not usual
            if frame[at] != 2 or frame[at + 1] >= 0x80 or frame[end] != 2:
                raise IndexError
            return end + 17
        end = at + 6 + frame[at + 5]  # a topic's name has 249 characters at most
        if frame[at + 3] != 1 or frame[end + 3] != 1:
            raise IndexError
        return end + (20 if self._version >= FIRST_VERSION_WITH_EPOCHS else 16)

    def _learn(self, frame: memoryview, position: int) -> KnownFetch | None:
        """What the bytes around epoch and offset say, if the request from `position` on is usual."""
        codec = FetchRequest.codec(self._version)
        body = position + (self._version >= FIRST_FLEXIBLE_VERSION)  # the header's tagged fields
        if body > position and frame[position]:
            return None
        try:
            request, end = codec.parse_within(frame, body, MOST_ELEMENTS)
        except (ProtocolError, IndexError):
            return None
        topics = request.topics
        if end != len(frame) or len(topics) != 1 or len(topics[0].partitions) != 1 or request.forgotten_topics_data:
            return None
        if request.replica_id != CONSUMER or request.replica_state.replica_id != CONSUMER:
            return None  # a follower, or a tool that may read behind the high watermark
        if topics[0].partitions[0].last_fetched_epoch >= 0:
            return None
        if request.encode(self._version) != frame[body:]:
            return None  # it has more than the fields that are known, or another form of a length
        return KnownFetch(request, self._version)

    def serve(
        self, broker: Broker, connection: Connection, frame: memoryview, position: int, correlation_id: int
    ) -> FetchRequest | bytes | None:
        """The response (`registry.ServeUsual`); the request if there is nothing to return at once; None to parse it."""
        usual = self.read(frame, position)
        if usual is None:
            return None
        known, epoch, offset = usual
        try:
            response = _response(known, epoch, offset, broker, connection, correlation_id)
        except Exception:  # it is answered, and logged, when the request is served as any other
            response = None
        return known.request(epoch, offset) if response is None else response


def _response(
    known: KnownFetch, epoch: int, offset: int, broker: Broker, connection: Connection, correlation_id: int
) -> bytes | None:
    """The response, as `KnownFetch.answer`; None, or an exception, if another one is due: nothing has changed then."""
    key = topic, index = known.key
    session = broker.fetch_sessions.find(known.session_id) if known.session_id != NO_SESSION else None
    if not known.is_next(session, epoch):
        return None
    if broker.authorizer is not None and topic not in connection.granted_topics.get(_READ, ()):
        return None
    if broker.loop.gathered:
        broker.loop.write_gathered()  # what came before this request can be read
    partition = broker.partitions.get(topic, index)
    log = partition.log
    limit = log.last_stable_offset if known.is_committed else log.high_watermark
    if (
        offset >= limit
        or known.leader_epoch not in (-1, partition.leader_epoch)
        or (partition.has_peers and (known.rack_id or not partition.is_leader))
    ):
        return None
    most = min(known.max_bytes, broker.config[FETCH_MAX_BYTES])
    read = log.read(offset, most, limit_offset=limit, min_one_batch=True, may_wait=False)
    records = read.slice
    if records is None or records.length < known.min_bytes:
        return None
    if known.is_committed and log.aborted_transactions(offset, read.end_offset):
        return None
    in_memory = None
    if records.length < SMALL_SLICE_BYTES or records.is_in_memory:
        in_memory = records.read_from_cache()
    partition.fetches += 1  # nothing fails from here on
    if session is not None:
        known.partition.fetch_offset = offset
        requested = session.partitions[key]
        requested.update(known.partition)
        requested.high_watermark, requested.log_start_offset = log.high_watermark, log.log_start_offset
        broker.fetch_sessions.advance(session, connection.now)
    if broker.meter is not None:
        broker.meter.sent_bytes[False][key] += records.length
    return known.answer(connection, correlation_id, log, records if in_memory is None else in_memory)


def usual_server(version: int) -> ServeUsual:
    """The function that serves the usual requests of a version."""
    return UsualFetches(version).serve
