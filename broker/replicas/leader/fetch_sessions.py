"""Fetch sessions (KIP-227): the broker remembers a client's partitions, the client sends only changes. R20.

A session has the client's partitions, in order, with the last reported state of each. An incremental response has only
partitions with changes; those with records move to the end, so that a busy partition does not starve the others. The
number of sessions is limited (max.incremental.fetch.session.cache.slots): a new session may evict one that has been
idle for two minutes, or one that is older than that and smaller. A session belongs to one reader: a consumer, or a
follower, which sends more fields of each partition. It remembers the name of each topic id, by which Kafka tells the
client that a topic is gone (UNKNOWN_TOPIC_OR_PARTITION) or was created again (INCONSISTENT_TOPIC_ID).
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from barnabas.broker.replicas.leader.session_ranking import SessionRanking
from barnabas.wire.errors import ErrorCode, KafkaError

if TYPE_CHECKING:
    from barnabas.broker.replicas.leader.follower_watch import FollowerWatch
    from barnabas.wire.messages.fetch import FetchRequest, FetchRequestFetchPartition, FetchResponsePartitionData

INITIAL_EPOCH = 0
FINAL_EPOCH = -1
NO_SESSION = 0
EVICTION_S = 120.0
_MAX_EPOCH = 2**31 - 1

PartitionKey = tuple[bytes | str, int]
"""Topic id (from version 13 on) or topic name, and partition."""


class FetchPartition:
    """One partition that a client reads, and its last reported state."""

    __slots__ = (
        "current_leader_epoch",
        "fetch_offset",
        "high_watermark",
        "index",
        "last_fetched_epoch",
        "log_start_offset",
        "max_bytes",
        "topic",
        "topic_id",
    )

    def __init__(self, topic: str, topic_id: bytes, requested: FetchRequestFetchPartition) -> None:
        self.topic = topic
        self.topic_id = topic_id
        self.index = requested.partition
        self.high_watermark = -1
        self.log_start_offset = -1
        self.current_leader_epoch = requested.current_leader_epoch
        self.update(requested)

    def update(self, requested: FetchRequestFetchPartition) -> None:
        """Take over the values of a request. In another leader epoch nothing counts as reported."""
        if requested.current_leader_epoch != self.current_leader_epoch:
            self.high_watermark = self.log_start_offset = -1
        self.fetch_offset = requested.fetch_offset
        self.max_bytes = requested.partition_max_bytes
        self.current_leader_epoch = requested.current_leader_epoch
        self.last_fetched_epoch = requested.last_fetched_epoch

    def update_response(self, answer: FetchResponsePartitionData) -> bool:
        """Record that `answer` is reported; returns whether an incremental response must include it."""
        has_changed = bool(answer.records)
        if answer.high_watermark != self.high_watermark:
            self.high_watermark = answer.high_watermark
            has_changed = True
        if answer.log_start_offset != self.log_start_offset:
            self.log_start_offset = answer.log_start_offset
            has_changed = True
        if answer.preferred_read_replica != -1:
            has_changed = True
        if answer.error_code or answer.diverging_epoch.epoch != -1:
            self.high_watermark = -1  # so that the recovery is reported as well
            has_changed = True
        return has_changed


class FollowerPartition(FetchPartition):
    """One partition that a follower reads, and what the follower reports about its replica."""

    __slots__ = ("follower_high_watermark", "follower_log_start_offset")

    def update(self, requested: FetchRequestFetchPartition) -> None:
        """Take over the values of a request."""
        super().update(requested)
        self.follower_log_start_offset = requested.log_start_offset
        self.follower_high_watermark = requested.high_watermark


class FetchSession:
    """The partitions that one client reads."""

    __slots__ = (
        "created",
        "epoch",
        "is_closed",
        "last_used",
        "partitions",
        "replica_id",
        "session_id",
        "uses_topic_ids",
        "watch",
    )

    def __init__(
        self,
        session_id: int,
        partitions: dict[PartitionKey, FetchPartition],
        *,
        uses_topic_ids: bool,
        replica_id: int,
        now: float,
    ) -> None:
        self.session_id = session_id
        self.partitions = partitions
        self.uses_topic_ids = uses_topic_ids
        self.replica_id = replica_id
        self.epoch = 1
        self.created = now
        self.last_used = now
        self.is_closed = False
        self.watch: FollowerWatch | None = None
        """Of a follower's session: which of its partitions a fetch has to read."""

    @property
    def is_follower(self) -> bool:
        """Whether a follower reads."""
        return self.replica_id >= 0

    def update(self, request: FetchRequest, name_of: Callable[[bytes], str]) -> None:
        """Add, change and remove the partitions that an incremental request names."""
        partitions = self.partitions
        for key, topic, topic_id, requested in requested_partitions(request, uses_topic_ids=self.uses_topic_ids):
            known = partitions.get(key)
            if self.watch is not None:
                self.watch.changed[key] = None
            if known is None:
                kind = FollowerPartition if self.is_follower else FetchPartition
                partitions[key] = kind(name_of(topic_id) if self.uses_topic_ids else topic, topic_id, requested)
            else:
                known.update(requested)
        for forgotten in request.forgotten_topics_data:
            name = forgotten.topic_id if self.uses_topic_ids else forgotten.topic
            for index in forgotten.partitions:
                partitions.pop((name, index), None)
                if self.watch is not None:
                    self.watch.forget((name, index))

    def move_to_end(self, key: PartitionKey) -> None:
        """The partition had records: the others are read first next time."""
        partitions = self.partitions
        partitions[key] = partitions.pop(key)


def requested_partitions(
    request: FetchRequest, *, uses_topic_ids: bool
) -> Iterable[tuple[PartitionKey, str, bytes, FetchRequestFetchPartition]]:
    """The partitions that a request names, in its order."""
    for topic in request.topics:
        name: bytes | str = topic.topic_id if uses_topic_ids else topic.topic
        for requested in topic.partitions:
            yield (name, requested.partition), topic.topic, topic.topic_id, requested


def replica_of(request: FetchRequest) -> int:
    """The id of the replica that fetches; up to version 14 it is a field of the request. Negative: not a follower."""
    state = request.replica_state
    return state.replica_id if state.replica_id >= 0 else request.replica_id


class FetchSessions:
    """The sessions of all clients, and which one is evicted first; a new session costs O(log n)."""

    def __init__(self, slots: int, new_id: Callable[[], int], name_of: Callable[[bytes], str]) -> None:
        """`new_id` yields random positive int32 numbers, `name_of` the name of a topic id, empty if it is unknown."""
        self._slots = slots
        self._new_id = new_id
        self._name_of = name_of
        self._sessions: OrderedDict[int, FetchSession] = OrderedDict()
        """By id; the least recently used session is the first."""
        self._ranking = SessionRanking(self._sessions)

    def __len__(self) -> int:
        return len(self._sessions)

    def find(self, session_id: int) -> FetchSession | None:
        """An open session."""
        return self._sessions.get(session_id)

    def close(self, session_id: int) -> None:
        """Remove a session, if it exists."""
        session = self._sessions.pop(session_id, None)
        if session is not None:
            session.is_closed = True
            if session.watch is not None:
                session.watch.close()

    def resume(self, request: FetchRequest, *, uses_topic_ids: bool, now: float) -> FetchSession | None:
        """The session of an incremental request, updated by the request; None if it has no partitions any more.

        KafkaError: FETCH_SESSION_ID_NOT_FOUND, INVALID_FETCH_SESSION_EPOCH or FETCH_SESSION_TOPIC_ID_ERROR. The
        client then opens a new session.
        """
        session = self._sessions.get(request.session_id)
        if session is None or session.replica_id != replica_of(request):
            raise KafkaError(ErrorCode.FETCH_SESSION_ID_NOT_FOUND)
        if session.epoch != request.session_epoch:
            raise KafkaError(ErrorCode.INVALID_FETCH_SESSION_EPOCH)
        if session.uses_topic_ids != uses_topic_ids:
            raise KafkaError(ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR)
        session.update(request, self._name_of)
        if not session.partitions:
            self.close(session.session_id)
            return None
        self.advance(session, now)
        return session

    def advance(self, session: FetchSession, now: float) -> None:
        """A request of the session is served: the next one has the next epoch."""
        session.last_used = now
        self._sessions.move_to_end(session.session_id)
        session.epoch = session.epoch + 1 if session.epoch < _MAX_EPOCH else 1

    def create(
        self, partitions: dict[PartitionKey, FetchPartition], *, uses_topic_ids: bool, replica_id: int, now: float
    ) -> int:
        """Open a session of the reader `replica_id` (-1: consumers); returns its id, or 0 if the cache is full."""
        if not partitions or self._slots <= 0:
            return NO_SESSION
        if len(self._sessions) >= self._slots and not self._evict_for(len(partitions), replica_id >= 0, now):
            return NO_SESSION
        if uses_topic_ids:
            for requested in partitions.values():
                requested.topic = self._name_of(requested.topic_id)
        session_id = self._new_id()
        while session_id in self._sessions or session_id == NO_SESSION:
            session_id = self._new_id()
        self._sessions[session_id] = session = FetchSession(
            session_id, partitions, uses_topic_ids=uses_topic_ids, replica_id=replica_id, now=now
        )
        self._ranking.add(session)
        return session_id

    def _evict_for(self, size: int, is_follower: bool, now: float) -> bool:
        """Evict a session with lower priority than a new one of `size` partitions; returns whether there was one."""
        stalest = next(iter(self._sessions.values()))
        if now - stalest.last_used > EVICTION_S:
            self.close(stalest.session_id)
            return True
        least = self._ranking.least(now - EVICTION_S)
        if least is None or (is_follower and least.is_follower):
            return False
        if (least.is_follower, len(least.partitions)) > (is_follower, size):
            return False
        self.close(least.session_id)
        return True
