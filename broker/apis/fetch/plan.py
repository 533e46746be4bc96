"""Reads the records of one Fetch from the logs, and makes its response."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from typing import TYPE_CHECKING, Final, TypeAlias

from barnabas.broker.apis.access import refused_as_named
from barnabas.broker.apis.current_leaders import MOVED, endpoints_of, leader_of
from barnabas.broker.config.keys.general import FETCH_MAX_BYTES
from barnabas.broker.config.keys.replication import REPLICA_SELECTOR_CLASS
from barnabas.broker.event_loop.guarded import error_code_of, log_failure
from barnabas.broker.replicas.leader.fetch_sessions import (
    NO_SESSION,
    FetchPartition,
    FetchSession,
    PartitionKey,
    replica_of,
)
from barnabas.coord.security.acls import Operation
from barnabas.storage.segments.segment import NotInMemory
from barnabas.wire.errors import ErrorCode, KafkaError
from barnabas.wire.messages.fetch import (
    AbortedTransaction,
    FetchableTopicResponse,
    FetchRequest,
    FetchResponse,
    FetchResponseEpochEndOffset,
    FetchResponseLeaderIdAndEpoch,
    FetchResponseNodeEndpoint,
    FetchResponsePartitionData,
    FetchResponseSnapshotId,
)

if TYPE_CHECKING:
    from barnabas.broker.context import Broker, RequestContext
    from barnabas.broker.replicas.partition import Partition
    from barnabas.storage.files import FileSlice
    from barnabas.storage.log import Log

Answers: TypeAlias = "dict[PartitionKey, tuple[FetchPartition, FetchResponsePartitionData]]"

RACK_AWARE: Final = "org.apache.kafka.common.replica.RackAwareReplicaSelector"
FIRST_VERSION_WITH_RACK = 11
FIRST_VERSION_WITH_TOPIC_IDS = 13
FIRST_VERSION_WITH_LEADERS = 16
BYTES_OF_A_PARTITION = 64
"""About the size of a partition in a response, without its records, where its bytes are counted for a quota."""

# Shared by all responses: never modified.
_NO_DIVERGENCE = FetchResponseEpochEndOffset()
_NO_LEADER = FetchResponseLeaderIdAndEpoch()
_NO_SNAPSHOT = FetchResponseSnapshotId()

_WITHOUT_READING: Final = frozenset(
    {
        ErrorCode.TOPIC_AUTHORIZATION_FAILED,
        ErrorCode.UNKNOWN_TOPIC_ID,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    }
)
"""The errors of partitions that Kafka refuses before it looks at their logs."""


class _IsCommitted(dict[int, bool]):
    """By isolation level, whether only committed records are read."""

    def __missing__(self, level: int) -> bool:
        raise KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR, f"The isolation level {level} is unknown")


IS_COMMITTED: Final = _IsCommitted({0: False, 1: True})


class Attempt:
    """The answers of the partitions of a plan that were read."""

    __slots__ = ("answers", "is_final", "size", "sizes")

    def __init__(self) -> None:
        self.answers: Answers = {}
        self.sizes: dict[PartitionKey, int] = {}  # of the answers with records, in bytes
        self.size = 0
        self.is_final = False  # an error, for example, which is not held back until there are `min_bytes`

    def forget_records(self) -> None:
        """Keep only the sizes of the records, because slices of files keep these open."""
        for key in self.sizes:
            self.answers[key][1].records = b""


class FetchPlan:
    """The partitions of one Fetch, and its limits."""

    is_follower = False

    __slots__ = (
        "broker",
        "cold",
        "ctx",
        "is_committed",
        "leaders",
        "max_bytes",
        "may_be_cold",
        "min_bytes",
        "partitions",
        "refused",
        "request",
        "session",
        "uses_topic_ids",
        "wants_session",
    )

    def __init__(
        self,
        ctx: RequestContext,
        request: FetchRequest,
        partitions: dict[PartitionKey, FetchPartition],
        session: FetchSession | None,
    ) -> None:
        self.ctx = ctx
        self.broker: Broker = ctx.broker
        self.uses_topic_ids = ctx.api_version >= FIRST_VERSION_WITH_TOPIC_IDS
        try:
            self.is_committed = IS_COMMITTED[request.isolation_level]
        except KafkaError:
            self.is_committed = False
            self._refuse_to_read(partitions)
        self.min_bytes = request.min_bytes
        self.max_bytes = min(request.max_bytes, ctx.broker.config[FETCH_MAX_BYTES])
        self.partitions = partitions
        self.session = session
        self.request = request
        self.wants_session = False
        self.refused: Collection[bytes | str] = ()
        """The topics, by name or id as in the keys of partitions, that the client may not read."""
        self.leaders: Collection[int] = ()
        """Of partitions that are led elsewhere."""
        self.may_be_cold = True
        """Whether `read` leaves out partitions whose lookup would wait for the disk, and adds them to `cold`."""
        self.cold: dict[PartitionKey, Callable[[], None]] = {}
        """By partition, the function that reads the data of its lookup from the disk, in a thread."""
        if ctx.usage is not None:
            if self.is_follower:
                ctx.usage.is_exempt = True
            else:
                most = ctx.usage.most_fetched()
                self.max_bytes = int(min(self.max_bytes, max(most - BYTES_OF_A_PARTITION * len(partitions), most / 2)))
                self.min_bytes = min(self.min_bytes, self.max_bytes)

    def _refuse_to_read(self, partitions: dict[PartitionKey, FetchPartition]) -> None:
        """KafkaError for an unknown isolation level, as in Kafka only if a partition would be read."""
        named = [topic for topic, _ in partitions]
        refused = refused_as_named(self.ctx, Operation.READ, named) if self.ctx.broker.authorizer is not None else ()
        for (topic, _), requested in partitions.items():
            if topic in refused:
                continue
            try:
                self.find(requested)
            except KafkaError as error:
                if error.code in _WITHOUT_READING:
                    continue
            raise KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR, "The isolation level is unknown")

    @property
    def names_leaders(self) -> bool:
        """Whether the response has current leaders in the client's version."""
        return self.ctx.api_version >= FIRST_VERSION_WITH_LEADERS

    @classmethod
    def resumed(cls, ctx: RequestContext, request: FetchRequest, session: FetchSession) -> FetchPlan:
        """The plan for a fetch in a session."""
        return cls(ctx, request, session.partitions, session)

    def begin(self) -> Attempt:
        """An attempt that has read nothing yet; it is final without partitions."""
        attempt = Attempt()
        attempt.is_final = not self.partitions
        return attempt

    def read(self) -> Attempt:
        """Read every partition, up to the limits."""
        attempt = self.begin()
        for key, requested in self.partitions.items():
            self.read_into(attempt, key, requested)
        return attempt

    def read_again(self, attempt: Attempt, keys: Collection[PartitionKey]) -> None:
        """Read these partitions again; the answers of the others stay as they are."""
        for key in keys:
            attempt.size -= attempt.sizes.pop(key, 0)
        for key in keys:
            self.read_into(attempt, key, attempt.answers[key][0])

    def read_missed(self, attempt: Attempt, keys: Iterable[PartitionKey] = ()) -> None:
        """Read these partitions again, and all that have changed since `attempt`, while the fetch has waited."""
        changed = [key for key, requested in self.partitions.items() if self._has_changed(attempt, key, requested)]
        self.read_again(attempt, dict.fromkeys([*keys, *changed]))

    def _has_changed(self, attempt: Attempt, key: PartitionKey, requested: FetchPartition) -> bool:
        """Whether the answer that `attempt` has for a partition may be outdated or incomplete."""
        try:
            partition = self.find(requested)
            partition.check_epoch(requested.current_leader_epoch)
        except KafkaError:
            return True
        if key in attempt.sizes:
            return attempt.size < self.min_bytes
        return self.end_of(partition.log) != requested.fetch_offset

    def read_into(self, attempt: Attempt, key: PartitionKey, requested: FetchPartition) -> None:
        """Read one partition, within the rest of the limits. An error is its answer."""
        try:
            if self.refused and key[0] in self.refused:
                raise KafkaError(ErrorCode.TOPIC_AUTHORIZATION_FAILED)
            data = self._read_one(attempt, key, requested, self.find(requested))
        except Exception as error:
            data = self._failed(requested, error)
        size = len(data.records)  # type: ignore[arg-type]
        if size:
            attempt.sizes[key] = size
            attempt.size += size
        if data.error_code or data.diverging_epoch is not _NO_DIVERGENCE:
            attempt.is_final = True
        attempt.answers[key] = (requested, data)

    def _failed(self, requested: FetchPartition, error: Exception) -> FetchResponsePartitionData:
        """The answer of a partition that could not be read, which is reported if the disk or a bug is the reason."""
        if self.broker.meter is not None:
            partition = self.broker.partitions.find(requested.topic, requested.index)
            self.broker.meter.failed_fetch(partition, int(error_code_of(error)))
        if self.names_leaders and isinstance(error, KafkaError) and error.code in MOVED:
            return self._moved(requested, error.code)
        if self.session is not None and isinstance(error, KafkaError) and error.code == ErrorCode.UNKNOWN_TOPIC_ID:
            error = self._recreated(requested, error)
        cause = error.__cause__ if isinstance(error, KafkaError) else error
        if isinstance(cause, OSError):
            self.find(requested).report_unreadable(cause)
        elif cause is error:
            log_failure(f"Reading the partition {requested.topic}-{requested.index}", error)
        return failed(requested.index, error_code_of(error))

    def _recreated(self, requested: FetchPartition, error: KafkaError) -> KafkaError:
        """The error for an unknown topic id in a session, which remembers the name that the topic had, as in Kafka."""
        if not requested.topic:
            return error
        if self.broker.partitions.find(requested.topic, requested.index) is None:
            return KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        return KafkaError(ErrorCode.INCONSISTENT_TOPIC_ID)

    def _moved(self, requested: FetchPartition, code: ErrorCode) -> FetchResponsePartitionData:
        """The answer of a partition that is led by another broker, or in another epoch (KIP-951)."""
        data = failed(requested.index, code)
        leader, epoch = leader_of(self.broker, requested.topic, requested.topic_id, requested.index)
        data.current_leader = FetchResponseLeaderIdAndEpoch(leader_id=leader, leader_epoch=epoch)
        self.leaders = {*self.leaders, leader}
        return data

    def end_of(self, log: Log) -> int:
        """The offset up to which the client may read: the last stable offset, or the high watermark."""
        return log.last_stable_offset if self.is_committed else log.high_watermark

    def bytes_of(self, partition: Partition) -> int:
        """The number of appended bytes, an upper bound of the bytes that the client may read."""
        return partition.bytes_appended

    def find(self, requested: FetchPartition) -> Partition:
        """The partition. KafkaError if it is not served here."""
        topic = requested.topic_id if self.uses_topic_ids else requested.topic
        return self.broker.partitions.get(topic, requested.index)

    def _read_one(
        self, attempt: Attempt, key: PartitionKey, requested: FetchPartition, partition: Partition
    ) -> FetchResponsePartitionData:
        partition.check_epoch(requested.current_leader_epoch)
        if partition.has_peers:
            preferred = self._check_peers(partition, requested)
            if preferred is not None:
                attempt.is_final = True
                return preferred
        partition.fetches += 1
        log = partition.log
        diverging = _NO_DIVERGENCE
        if requested.last_fetched_epoch >= 0:
            diverging = _divergence(partition, requested)
        high_watermark = log.high_watermark
        limit = self.end_of(log)
        records: bytes | FileSlice = b""
        aborted = None
        read = None
        if diverging is _NO_DIVERGENCE:
            most = min(requested.max_bytes, self.max_bytes - attempt.size)
            max_bytes = most if most >= 0 else self._no_bytes(attempt, requested, log.log_start_offset, limit)
            try:
                read = log.read(
                    requested.fetch_offset,
                    max_bytes,
                    limit_offset=limit,
                    min_one_batch=not attempt.size,
                    may_wait=not self.may_be_cold,
                )
            except NotInMemory as cold:
                self.cold[key] = cold.lookup
        if read is not None:
            if read.slice is not None:
                if read.end_offset < limit and read.slice.length < max_bytes:
                    attempt.is_final = True  # the segment ends here: waiting would not make it longer
                records = read.slice.read() if read.slice.is_in_memory else read.slice
            if self.is_committed:
                aborted = [
                    AbortedTransaction(producer_id=ended.producer_id, first_offset=ended.first_offset)
                    for ended in log.aborted_transactions(requested.fetch_offset, read.end_offset)
                ]
        return FetchResponsePartitionData(
            partition_index=requested.index,
            error_code=0,
            high_watermark=high_watermark,
            last_stable_offset=log.last_stable_offset,
            log_start_offset=log.log_start_offset,
            diverging_epoch=diverging,
            current_leader=_NO_LEADER,
            snapshot_id=_NO_SNAPSHOT,
            aborted_transactions=aborted,
            preferred_read_replica=-1,
            records=records,
        )

    def _no_bytes(self, attempt: Attempt, requested: FetchPartition, start: int, limit: int) -> int:
        """No bytes of a partition, since its request was full before; KafkaError, as in Kafka, if a limit is negative.

        The limit of the whole request fails only the first partition that is read, and only if it has records there.
        """
        if not start <= requested.fetch_offset < limit:
            return 0
        is_first = all(data.error_code in _WITHOUT_READING for _, data in attempt.answers.values())
        if requested.max_bytes < 0 or (self.max_bytes < 0 and is_first):
            raise KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR, "A number of bytes to fetch is negative")
        return 0

    def _check_peers(self, partition: Partition, requested: FetchPartition) -> FetchResponsePartitionData | None:
        """A consumer reads a partition that has other replicas: the answer that sends it to one of them, if any.

        KafkaError(NOT_LEADER_OR_FOLLOWER) when the client may read from the leader only (KIP-392, version 11).
        """
        if self.is_follower:
            return None  # `find` has checked it
        if not partition.is_leader:
            if self.ctx.api_version < FIRST_VERSION_WITH_RACK:
                raise KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER)
            return None
        rack_id = self.request.rack_id
        if not rack_id or self.broker.config[REPLICA_SELECTOR_CLASS] is None:
            return None
        replica = _preferred_replica(self.broker, partition, requested.fetch_offset, rack_id)
        if replica is None:
            return None
        log = partition.log
        data = failed(requested.index, ErrorCode.NONE)
        data.preferred_read_replica = replica
        data.high_watermark = log.high_watermark
        data.last_stable_offset = log.last_stable_offset
        data.log_start_offset = log.log_start_offset
        return data

    def respond(self, attempt: Attempt) -> FetchResponse:
        """The response: in a session only partitions with changes, otherwise all; nothing for a throttled client."""
        response = FetchResponse()
        if self.ctx.usage is not None and not self.is_follower:
            listed = attempt.answers if self.session is None else attempt.sizes
            size = attempt.size + BYTES_OF_A_PARTITION * len(listed)
            response.throttle_time_ms = self.ctx.usage.fetch_throttle_ms(size)
            if response.throttle_time_ms:
                response.session_id = NO_SESSION if self.session is None else self.session.session_id
                return response
        answers = attempt.answers
        if self.session is not None:
            answers = self._changed(self.session, answers)
            response.session_id = self.session.session_id
        elif self.wants_session:
            response.session_id = self._create_session(answers)
        if self.leaders:
            response.node_endpoints = endpoints_of(self.ctx, self.leaders, FetchResponseNodeEndpoint)
        topics = response.responses
        current: bytes | str | None = None
        for key, (requested, data) in answers.items():
            if key[0] != current:
                current = key[0]
                topic = FetchableTopicResponse(topic=requested.topic, topic_id=requested.topic_id, partitions=[])
                topics.append(topic)
            topic.partitions.append(data)
        if self.broker.meter is not None:
            sent = self.broker.meter.sent_bytes[self.is_follower]
            for key, size in attempt.sizes.items():
                sent[key] += size
        return response

    @staticmethod
    def _changed(session: FetchSession, answers: Answers) -> Answers:
        changed = {}
        for key, item in answers.items():
            requested, data = item
            if requested.update_response(data):
                changed[key] = item
                if data.records:
                    session.move_to_end(key)
        return changed

    def _create_session(self, answers: Answers) -> int:
        session_id = self.broker.fetch_sessions.create(
            self.partitions,
            uses_topic_ids=self.uses_topic_ids,
            replica_id=replica_of(self.request),
            now=self.broker.loop.now(),
        )
        if session_id != NO_SESSION:
            for requested, data in answers.values():
                requested.update_response(data)
        return session_id


def _preferred_replica(broker: Broker, partition: Partition, fetch_offset: int, rack_id: str) -> int | None:
    """The follower that a client in this rack should read from; None for this leader (KIP-392, R21).

    `replica.selector.class` names Kafka's class. RackAwareReplicaSelector: a replica of the client's rack, the leader
    if it is one of them, else the one that has most. Any other class keeps consumers at the leader; the start warns of
    it.
    """
    leading = partition.leading
    if leading is None or broker.config[REPLICA_SELECTOR_CLASS] != RACK_AWARE:
        return None
    brokers = broker.image.brokers
    own = brokers.get(broker.node_id)
    if own is not None and own.rack == rack_id:
        return None
    best = None
    for follower in leading.state.followers.values():
        image = brokers.get(follower.broker_id)
        if (
            image is not None
            and not image.fenced
            and image.rack == rack_id
            and follower.broker_id in partition.isr
            and follower.log_start_offset <= fetch_offset <= follower.log_end_offset
            and (best is None or follower.log_end_offset > best.log_end_offset)
        ):
            best = follower
    return None if best is None else best.broker_id


def _divergence(partition: Partition, requested: FetchPartition) -> FetchResponseEpochEndOffset:
    """Where the client's log diverges from this one, if it does (KIP-595)."""
    epoch, end_offset = partition.end_offset_for_epoch(requested.last_fetched_epoch)
    if epoch == -1 or end_offset == -1:
        raise KafkaError(ErrorCode.OFFSET_OUT_OF_RANGE)
    if requested.fetch_offset < partition.log.log_start_offset:
        raise KafkaError(ErrorCode.OFFSET_OUT_OF_RANGE)
    if epoch < requested.last_fetched_epoch or end_offset < requested.fetch_offset:
        return FetchResponseEpochEndOffset(epoch=epoch, end_offset=end_offset)
    return _NO_DIVERGENCE


def failed(index: int, code: ErrorCode, *, is_read: bool = True) -> FetchResponsePartitionData:
    """The response of a partition with an error; `is_read` is False if the whole request is refused."""
    return FetchResponsePartitionData(
        partition_index=index,
        error_code=int(code),
        high_watermark=-1,
        diverging_epoch=_NO_DIVERGENCE,
        current_leader=_NO_LEADER,
        snapshot_id=_NO_SNAPSHOT,
        aborted_transactions=None if is_read and code not in _WITHOUT_READING else [],
        records=b"",
    )
