"""The usual OffsetCommit: one partition, without metadata; read and answered without message objects.

A member sends the same bytes again and again but for the last ones (16 in the flexible versions): the offset, its
leader epoch, the empty metadata and the empty tagged fields. The bytes before (the *prefix*) are looked up
(`known_prefixes`); the response is always the same. Any other request, any that is not accepted, and all of a broker
with an authorizer take the usual way of all requests. The commits of a turn are written as one batch
(`coordinators.gathered_commits`).

Invariant: a prefix is learned only if the codec encodes the parsed request to the same bytes, so a frame that differs
from it in offset and leader epoch only is the same request but for these.
"""

from __future__ import annotations

from functools import partial
from struct import Struct
from typing import TYPE_CHECKING, Final

from barnabas.broker.apis.known_prefixes import BOUND, KnownPrefixes
from barnabas.broker.event_loop.guarded import answer_for
from barnabas.coord.groups.committed_offset import USUAL_SIZE
from barnabas.coord.groups.offsets import commit_error
from barnabas.coord.groups.records import offset_key
from barnabas.wire.batches.batch_builder import record_head
from barnabas.wire.errors import ErrorCode, ProtocolError
from barnabas.wire.messages.groups.offsets import OffsetCommitRequest, OffsetCommitResponse

if TYPE_CHECKING:
    from barnabas.broker.apis.known_prefixes import Bound
    from barnabas.broker.apis.registry import ServeUsual
    from barnabas.broker.context import Broker
    from barnabas.broker.net.connection import Connection

FIRST_FLEXIBLE_VERSION: Final = 8
FIRST_VERSION_WITH_TOPIC_IDS: Final = 10
MOST_ELEMENTS: Final = 10
"""The usual request has a topic, a partition and their tagged fields; one with more elements is not parsed for it."""

FIRST_VERSION_WITH_LEADER_EPOCHS: Final = 6

NO_RETENTION: Final = -1
"""No time of its own after which the offset expires, which a request may have up to version 4."""

_OFFSET: Final = Struct(">qi")  # offset, leader epoch
_PLAIN_OFFSET: Final = Struct(">q")
_FLEXIBLE_END: Final = frozenset({b"\1\0\0\0", b"\0\0\0\0"})
"""Empty or null metadata, then the tagged fields of partition, topic and request."""
_PLAIN_END: Final = frozenset({b"\0\0", b"\xff\xff"})
_FRAME_HEAD: Final = Struct(">ii")  # size, correlation id


class KnownCommit:
    """What a prefix says, and the responses to it: a `coordinators.gathered_commits.UsualCommit`."""

    __slots__ = ("_body", "_name", "api_version", "index", "key", "record_head", "request", "topic", "topic_id")

    def __init__(self, request: OffsetCommitRequest, version: int) -> None:
        self.request = request
        self.api_version = version
        self.topic = request.topics[0]
        self.topic_id = self.topic.topic_id if version >= FIRST_VERSION_WITH_TOPIC_IDS else None
        self.index = self.topic.partitions[0].partition_index
        self._body = self._encoded(commit_error(request, ErrorCode.NONE))
        self._name = ""
        self.key = self.record_head = b""

    def named(self, name: str, topic_id: bytes) -> None:
        """The topic has this name and id."""
        self.topic.name, self.topic.topic_id = name, topic_id
        if name != self._name:
            self._name = name
            self.key = offset_key(self.request.group_id, name, self.index)
            self.record_head = record_head(self.key, USUAL_SIZE)

    def response(self, correlation_id: int) -> bytes:
        """The frame of the response without an error."""
        body = self._body
        return _FRAME_HEAD.pack(len(body) + 4, correlation_id) + body

    def failed(self, correlation_id: int, error: ErrorCode) -> bytes:
        """The frame of the response with an error."""
        body = self._encoded(commit_error(self.request, error))
        return _FRAME_HEAD.pack(len(body) + 4, correlation_id) + body

    def _encoded(self, response: OffsetCommitResponse) -> bytes:
        tags = b"\0" if self.api_version >= FIRST_FLEXIBLE_VERSION else b""  # of the header
        return tags + response.encode(self.api_version)


def learn(version: int, frame: memoryview, position: int) -> KnownCommit | None:
    """What the request says whose client id ends at `position`; None if it is not usual."""
    codec = OffsetCommitRequest.codec(version)
    body = position + (version >= FIRST_FLEXIBLE_VERSION)  # the header's tagged fields
    if body > position and frame[position]:
        return None
    try:
        request, end = codec.parse_within(frame, body, MOST_ELEMENTS)
    except (ProtocolError, IndexError):
        return None
    if end != len(frame) or len(request.topics) != 1 or len(request.topics[0].partitions) != 1:
        return None
    if request.topics[0].partitions[0].committed_metadata or request.retention_time_ms != NO_RETENTION:
        return None
    if request.encode(version) != frame[body:]:
        return None  # it has more than the fields that are known, or another form of a length
    return KnownCommit(request, version)


def usual_commits(version: int, bound: Bound = BOUND) -> KnownPrefixes[KnownCommit]:
    """What is known of the usual requests of a version."""
    return KnownPrefixes(partial(learn, version), bound)


def usual_commit_server(version: int) -> ServeUsual:
    """The function that serves the usual requests of a version."""
    return partial(_serve, usual_commits(version), *end_of_usual(version))


def end_of_usual(version: int) -> tuple[Struct, frozenset[bytes]]:
    """How the end of a usual request begins, and what may follow: no metadata."""
    if version >= FIRST_FLEXIBLE_VERSION:
        return _OFFSET, _FLEXIBLE_END
    return _OFFSET if version >= FIRST_VERSION_WITH_LEADER_EPOCHS else _PLAIN_OFFSET, _PLAIN_END


def _serve(
    commits: KnownPrefixes[KnownCommit],
    offset_and_epoch: Struct,
    ends: frozenset[bytes],
    broker: Broker,
    connection: Connection,
    frame: memoryview,
    position: int,
    correlation_id: int,
) -> bytes | None:
    last = len(frame) - (4 if ends is _FLEXIBLE_END else 2)
    end = last - offset_and_epoch.size
    if end <= position or bytes(frame[last:]) not in ends or broker.authorizer is not None:
        return None
    prefix = bytes(frame[position:end])
    commit = commits.get(prefix) or commits.learned(prefix, frame, position)
    if commit is None:
        return None
    image = broker.image
    topic_id = commit.topic_id
    topic = image.topics.get(commit.topic.name) if topic_id is None else image.topics_by_id.get(topic_id)
    if topic is None or commit.index not in topic.partitions:
        return None
    commit.named(topic.name, topic.topic_id)
    offset, *epoch = offset_and_epoch.unpack_from(frame, end)
    leader_epoch = epoch[0] if epoch else -1
    try:
        return broker.group_coordinators.commit(commit, topic, offset, leader_epoch, connection, correlation_id)
    except Exception as error:
        what = f"OFFSET_COMMIT v{commit.api_version} from {connection.peer_host}:{connection.peer_port}"
        return commit.failed(correlation_id, answer_for(what, error).code)
