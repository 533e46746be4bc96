"""A consumer of a share group, as in client libraries (rule G5, KIP-932, KIP-1222).

Heartbeats return the assignment. Records and acknowledgements are sent in a share session on one connection. When the
connection breaks, the session and its locks are lost, and the member starts a new session.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from barnabas.wire.batches.records import iter_batches, iter_records
from barnabas.wire.errors import ErrorCode as E
from barnabas.wire.messages.groups import share_groups as g
from tests.simulation.clients.process import REQUEST_TIMEOUT_S
from tests.simulation.share.ledger import ACCEPT, REJECT, RELEASE, RENEW

if TYPE_CHECKING:
    from tests.simulation.clients.process import Process, Steps

HEARTBEAT_VERSION, VERSION = 1, 2
JOIN_EPOCH, LEAVE_EPOCH = 0, -1
OPEN, CLOSE = 0, -1
RECORD_LIMIT = 1  # acquire mode: max_records is a hard limit (KIP-1206)
BATCH_OPTIMIZED = 0
_LATER = frozenset(
    {E.COORDINATOR_LOAD_IN_PROGRESS, E.COORDINATOR_NOT_AVAILABLE, E.NOT_COORDINATOR, E.KAFKA_STORAGE_ERROR}
)
_FENCED = frozenset({E.UNKNOWN_MEMBER_ID, E.FENCED_MEMBER_EPOCH, E.GROUP_ID_NOT_FOUND})
_NO_SESSION = frozenset({E.SHARE_SESSION_NOT_FOUND, E.INVALID_SHARE_SESSION_EPOCH})
_NO_MORE = frozenset({E.INVALID_RECORD_STATE, E.NOT_LEADER_OR_FOLLOWER, E.UNKNOWN_TOPIC_OR_PARTITION})

Acknowledgements = list[tuple[int, int, int]]
"""Partition, offset, acknowledge type."""


class Delivered(NamedTuple):
    """A record that the member has acquired."""

    partition: int
    offset: int
    value: bytes | None
    """None when there is no record at this offset, but a marker or a gap."""


class SessionObserver(Protocol):
    """Sees the requests of a member's sessions as the member does."""

    def sending(self, member_id: str, lane: str, request: g.ShareFetchRequest | g.ShareAcknowledgeRequest) -> Any:
        """A request is sent; what `answered` gets."""

    def answered(self, sent: Any, response: Any) -> None:
        """It has a response, or None."""


class ShareMember:
    """One member."""

    def __init__(self, process: Process, group: str, topic: str, topic_id: bytes) -> None:
        self.process = process
        self.group = group
        self._topic = topic
        self.topic_id = topic_id
        random = process.random
        self.member_id = f"{process.name}-{random.randrange(1 << 30)}"
        self.epoch = JOIN_EPOCH
        self.assigned: list[int] = []
        self._is_leaving = False
        self.acquire_mode = random.choice((BATCH_OPTIMIZED, RECORD_LIMIT))
        self.max_records = random.choice((1, 3, 100))
        self._sessions: dict[str, ShareSession] = {}
        self.observer: SessionObserver | None = None

    def session(self, lane: str = "data") -> ShareSession:
        """The member's session with a broker, on the connection of this name."""
        if lane not in self._sessions:
            self._sessions[lane] = ShareSession(self, lane)
        return self._sessions[lane]

    # ---- the group

    def send_heartbeats(self) -> Steps[None]:
        """Send heartbeats forever."""
        is_sure = False  # whether the last response arrived; if not, the next request has all fields
        while True:
            while self._is_leaving:
                yield 0.1
            epoch = self.epoch
            sends_all = not is_sure or epoch == JOIN_EPOCH
            request = g.ShareGroupHeartbeatRequest(
                group_id=self.group,
                member_id=self.member_id,
                member_epoch=epoch,
                subscribed_topic_names=[self._topic] if sends_all else None,
            )
            response = yield from self.process.ask(request, HEARTBEAT_VERSION, lane="heartbeat", may_outlive=False)
            error = None if response is None else E(response.error_code)
            is_sure = error == E.NONE
            if self._is_leaving or epoch != self.epoch:
                yield 0.1  # the response is for an earlier epoch
                continue
            if is_sure:
                self.epoch = response.member_epoch
                if response.assignment is not None:
                    topics = response.assignment.topic_partitions
                    self.assigned = [partition for topic in topics for partition in topic.partitions]
                yield response.heartbeat_interval_ms / 1000
                continue
            assert error is None or error in _LATER or error in _FENCED, error
            if error in _FENCED:
                self.epoch, self.assigned = JOIN_EPOCH, []
            yield 0.1

    def leave(self) -> Steps[None]:
        """Close the session, leave the group, and join again."""
        self._is_leaving = True
        for session in self._sessions.values():
            yield from session.close()
        request = g.ShareGroupHeartbeatRequest(group_id=self.group, member_id=self.member_id, member_epoch=LEAVE_EPOCH)
        yield from self.process.ask(request, HEARTBEAT_VERSION, lane="leave", may_outlive=False)
        self.epoch, self.assigned = JOIN_EPOCH, []
        self._is_leaving = False


class ShareSession:
    """A member's session with one broker, on one connection."""

    def __init__(self, member: ShareMember, lane: str) -> None:
        self._member = member
        self._lane = lane
        self._epoch = OPEN
        self._partitions: set[int] = set()

    def close(self) -> Steps[None]:
        """Close the session, which releases its records."""
        if self._epoch != OPEN:
            last = g.ShareAcknowledgeRequest(
                group_id=self._member.group, member_id=self._member.member_id, share_session_epoch=CLOSE, topics=[]
            )
            yield from self._ask(last)
            self._epoch = OPEN

    def _ask(self, request: g.ShareFetchRequest | g.ShareAcknowledgeRequest, wait_s: float = 0.0) -> Steps[Any]:
        """Send a request, and pass it and its response to the observer of the session."""
        process, observer = self._member.process, self._member.observer
        sent = None if observer is None else observer.sending(self._member.member_id, self._lane, request)
        response = yield from process.ask(request, VERSION, lane=self._lane, timeout_s=wait_s + REQUEST_TIMEOUT_S)
        if observer is not None:
            observer.answered(sent, response)
        return response

    def fetch(
        self, requested: set[int], acknowledgements: Acknowledgements, wait_s: float
    ) -> Steps[list[Delivered] | None]:
        """ShareFetch: acknowledge records and acquire more of these partitions; None when the session is lost."""
        is_open = self._epoch == OPEN
        added = requested if is_open else requested - self._partitions
        forgotten = [] if is_open else sorted(self._partitions - requested)
        by_partition = _by_partition([] if is_open else acknowledgements)
        renews = any(kind == RENEW for _, _, kind in acknowledgements) and not is_open
        partitions = [
            g.ShareFetchRequestFetchPartition(
                partition_index=partition, acknowledgement_batches=_batches(by_partition.get(partition, []))
            )
            for partition in sorted({*added, *by_partition})
        ]
        request = g.ShareFetchRequest(
            group_id=self._member.group,
            member_id=self._member.member_id,
            share_session_epoch=self._epoch,
            max_wait_ms=0 if renews else int(wait_s * 1000),
            min_bytes=0 if renews else 1,
            max_bytes=0 if renews else 1 << 16,
            max_records=0 if renews else self._member.max_records,
            batch_size=0 if renews else self._member.max_records,
            share_acquire_mode=self._member.acquire_mode,
            is_renew_ack=renews,
            topics=[g.ShareFetchRequestFetchTopic(topic_id=self._member.topic_id, partitions=partitions)]
            if partitions
            else [],
            forgotten_topics_data=[
                g.ShareFetchRequestForgottenTopic(topic_id=self._member.topic_id, partitions=forgotten)
            ]
            if forgotten
            else [],
        )
        response = yield from self._ask(request, wait_s)
        if not self._continues(response):
            return None
        self._partitions = requested
        delivered = []
        for partition in (data for topic in response.responses for data in topic.partitions):
            errors = {E(partition.error_code), E(partition.acknowledge_error_code)} - {E.NONE} - _LATER - _NO_MORE
            assert not errors, errors
            values = _values(partition)
            for run in partition.acquired_records:
                offsets = range(run.first_offset, run.last_offset + 1)
                delivered += [Delivered(partition.partition_index, offset, values.get(offset)) for offset in offsets]
        return delivered

    def acknowledge(self, acknowledgements: Acknowledgements) -> Steps[bool]:
        """ShareAcknowledge; False when the session is lost."""
        if self._epoch == OPEN:
            return False
        partitions = [
            g.AcknowledgePartition(
                partition_index=partition,
                acknowledgement_batches=_batches(of_it, g.ShareAcknowledgeRequestAcknowledgementBatch),
            )
            for partition, of_it in sorted(_by_partition(acknowledgements).items())
        ]
        request = g.ShareAcknowledgeRequest(
            group_id=self._member.group,
            member_id=self._member.member_id,
            share_session_epoch=self._epoch,
            is_renew_ack=any(kind == RENEW for _, _, kind in acknowledgements),
            topics=[g.AcknowledgeTopic(topic_id=self._member.topic_id, partitions=partitions)],
        )
        response = yield from self._ask(request)
        return self._continues(response)

    def _continues(self, response: g.ShareFetchResponse | g.ShareAcknowledgeResponse | None) -> bool:
        """Whether the session continues after a response."""
        if response is None:
            self._epoch = OPEN
            return False
        error = E(response.error_code)
        if error:
            assert error in _NO_SESSION or error in _LATER, error
            self._epoch = OPEN
            return False
        self._epoch += 1
        return True


def _values(partition: g.ShareFetchResponsePartitionData) -> dict[int, bytes | None]:
    """The values of the records in a response, by offset."""
    batches = iter_batches(bytes(partition.records or b""), partial_ok=True)
    return {record.offset: record.value for batch in batches if not batch.is_control for record in iter_records(batch)}


def _by_partition(acknowledgements: Acknowledgements) -> dict[int, list[tuple[int, int]]]:
    grouped: dict[int, list[tuple[int, int]]] = {}
    for partition, offset, kind in sorted(acknowledgements):
        grouped.setdefault(partition, []).append((offset, kind))
    return grouped


def _batches(
    acknowledgements: list[tuple[int, int]], batch_class: type = g.ShareFetchRequestAcknowledgementBatch
) -> list[object]:
    """One batch for each run of offsets."""
    batches: list[object] = []
    run: list[tuple[int, int]] = []
    for offset, kind in acknowledgements:
        if run and offset != run[-1][0] + 1:
            batches.append(_batch(run, batch_class))
            run = []
        run.append((offset, kind))
    if run:
        batches.append(_batch(run, batch_class))
    return batches


def _batch(run: list[tuple[int, int]], batch_class: type) -> object:
    kinds = [kind for _, kind in run]
    if len(set(kinds)) == 1:
        kinds = kinds[:1]
    return batch_class(first_offset=run[0][0], last_offset=run[-1][0], acknowledge_types=kinds)


FREQUENT_TYPES = (ACCEPT,) * 16 + (RELEASE,) * 3 + (REJECT,)
"""Acknowledgement types, with realistic frequencies."""
