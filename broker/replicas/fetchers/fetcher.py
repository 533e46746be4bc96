"""Fetches all partitions that this broker follows from one leader: one connection, one request at a time (R4, R20).

    changed partitions -> request -> response -> records appended, high watermarks followed -> changed partitions ...

A request names only the partitions that have changed since the previous one (`session`); the leader holds it back until
it has records. So a turn costs as much as there is to do, however many partitions are followed. A partition is left out
while it waits after an error, is truncated, is throttled, or has records that are being flushed. For a flush the whole
request waits for a moment, because the leader would hold it back without the partition that has just got records; a
flush that takes longer does not keep the other partitions from being fetched.

A response is handled for `IN_PLACE_S`; the rest is copied and handled in slices between the turns. Nothing here waits:
an error of one partition delays that partition, an error of the connection delays all of this leader. Source: Kafka's
`AbstractFetcherThread`, `ReplicaFetcherThread`, `RemoteLeaderEndPoint`.
"""

from __future__ import annotations

import logging
from collections.abc import Generator
from functools import partial
from math import ceil, inf
from typing import TYPE_CHECKING, Final, TypeAlias

from barnabas.broker.config.keys.replication import (
    REPLICA_FETCH_BACKOFF_MS,
    REPLICA_FETCH_MAX_BYTES,
    REPLICA_FETCH_MIN_BYTES,
    REPLICA_FETCH_RESPONSE_MAX_BYTES,
    REPLICA_FETCH_WAIT_MAX_MS,
    REPLICA_SOCKET_TIMEOUT_MS,
)
from barnabas.broker.event_loop.guarded import log_failure
from barnabas.broker.event_loop.waiting import start_later
from barnabas.broker.replicas.fetchers import offsets
from barnabas.broker.replicas.fetchers.followed import FIRST_BACKOFF_S, Followed
from barnabas.broker.replicas.fetchers.receiving import AskLeader, Remedy, Truncate, follow_offsets, receive
from barnabas.broker.replicas.fetchers.session import FetchSession, PartitionKey
from barnabas.broker.replicas.fetchers.truncating import truncate
from barnabas.wire.errors import ErrorCode, KafkaError
from barnabas.wire.messages.fetch import FetchRequest, FetchRequestReplicaState

if TYPE_CHECKING:
    from barnabas.broker.event_loop.steps import Steps
    from barnabas.broker.replicas.fetchers.context import FetchContext
    from barnabas.broker.replicas.partition import Partition
    from barnabas.wire.messages.fetch import FetchResponse, FetchResponsePartitionData
    from barnabas.wire.schema import Message

logger = logging.getLogger("kafka.server.ReplicaFetcherThread")

Answers: TypeAlias = "list[tuple[PartitionKey, FetchResponsePartitionData]]"

IN_PLACE_S: Final = 0.002
"""How long a response is handled in the turn in which it has arrived, seconds."""
FLUSH_GRACE_S: Final = 0.05
"""How long a request waits for the flush of partitions, seconds."""
SHORT_WAIT_S: Final = 0.02
"""How long the leader may hold a request back that leaves out a partition which is being flushed, seconds."""
THROTTLED_S: Final = 0.1
"""After what time a throttled partition is considered again, seconds."""
HURRY_S: Final = 0.03
"""How long a partition that was just added waits for the request in flight, which the leader may hold back, seconds."""
REPEAT_S: Final = 30.0
"""Minimum interval between two log lines about an unreachable leader, seconds."""
_SESSION_ERRORS: Final = frozenset(
    {
        ErrorCode.FETCH_SESSION_ID_NOT_FOUND,
        ErrorCode.INVALID_FETCH_SESSION_EPOCH,
        ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR,
        ErrorCode.INCONSISTENT_TOPIC_ID,
    }
)


class Fetcher:
    """The fetches from one leader by one connection."""

    def __init__(self, context: FetchContext, leader_id: int, number: int) -> None:
        """`number` identifies one of the connections to the leader (num.replica.fetchers)."""
        self.leader_id = leader_id
        self.partitions: dict[PartitionKey, Followed] = {}
        self._context = context
        self._loop = context.loop
        self._client = context.client(leader_id, f"fetcher-{number}")
        self._session = FetchSession()
        self._changed: dict[PartitionKey, None] = {}
        self._delayed: dict[PartitionKey, float] = {}
        self._is_scheduled = False
        self._in_flight = 0  # the number of the request in flight, 0 for none
        self._requests = 0
        self._is_handling = False
        self._is_hurrying = self._has_ignored = False
        self._flush_deadline = inf
        self._not_before = 0.0
        self._backoff_s = FIRST_BACKOFF_S
        self._logged_at = -inf

    # -- partitions

    def add(self, partition: Partition) -> None:
        """Follow a partition from its current leader epoch on."""
        followed = Followed(partition)
        self.partitions[followed.key] = followed
        if self._session.is_known_to_leader(followed.key):
            self._has_ignored = True  # earlier responses about it went to its predecessor
        partition.on_own_end = self._flushed
        truncating = self._context.truncating.get(partition)
        if truncating is not None:  # by the fetcher that followed the leader before
            followed.is_busy = True
            truncating.append(partial(self._done, followed))
        self._mark(followed.key)
        if self._in_flight:
            number = self._in_flight
            self._loop.timers.at(self._loop.now() + HURRY_S, lambda: self._hurry(number))

    def remove(self, key: PartitionKey) -> None:
        """Stop following a partition."""
        followed = self.partitions.pop(key, None)
        if followed is not None:
            followed.partition.on_own_end = None
            self._delayed.pop(key, None)
            self._mark(key)

    def close(self) -> None:
        """Stop following all partitions."""
        for key in list(self.partitions):
            self.remove(key)
        if self._in_flight:
            self._in_flight = 0
            self._client.disconnect()

    def _mark(self, key: PartitionKey) -> None:
        """The next fetch of a partition may differ from the last one."""
        self._changed[key] = None
        self._schedule()

    def _flushed(self, partition: Partition) -> None:
        """Records of a partition are flushed: the next fetch may tell the leader that this replica has them."""
        self._mark((partition.topic_id, partition.index))

    def _hurry(self, number: int) -> None:
        """Do not wait until the leader answers: it may hold the request back, and new partitions are not in it.

        That is no failure of the leader: there is no delay, and nothing is logged.
        """
        if self._in_flight == number:
            self._is_hurrying = True
            self._client.disconnect()
            self._is_hurrying = False

    # -- requests

    def _schedule(self) -> None:
        if not self._is_scheduled and not self._in_flight and not self._is_handling:
            self._is_scheduled = True
            self._loop.call_after_turn(self._fetch)

    def _wake_at(self, when: float) -> None:
        self._loop.timers.at(when, self._schedule)

    def _fetch(self) -> None:
        """Send the next request, if there is anything to fetch now."""
        self._is_scheduled = False
        if self._in_flight or self._is_handling or self._context.is_stopped:
            return
        now = self._loop.now()
        if now < self._not_before:
            self._wake_at(self._not_before)
            return
        flushing = self._update_session(now)
        if flushing:
            if self._flush_deadline == inf:
                self._flush_deadline = now + FLUSH_GRACE_S
                self._wake_at(self._flush_deadline)
            if now < self._flush_deadline:
                return
            for key in flushing:
                self._session.forget(key)
        self._flush_deadline = inf
        if self._session.partitions:
            self._send(now, is_short=bool(flushing))

    def _update_session(self, now: float) -> list[PartitionKey]:
        """Update the session with each changed partition; return the partitions that are being flushed."""
        session = self._session
        if self._has_ignored:  # the leader does not repeat unchanged values
            self._has_ignored = False
            session.failed()
        max_bytes = self._context.config[REPLICA_FETCH_MAX_BYTES]
        flushing = []
        changed, self._changed = self._changed, {}
        for key in changed:
            followed = self.partitions.get(key)
            if followed is None or followed.is_busy:
                session.forget(key)
            elif followed.ready_at > now or self._is_throttled(followed, now):
                session.forget(key)
                self._delay(followed)
            elif followed.is_flushing:
                flushing.append(key)
                self._changed[key] = None
            else:
                session.set(key, followed.fields(max_bytes))
        return flushing

    def _delay(self, followed: Followed) -> None:
        """Leave a partition out until it is ready."""
        key, ready_at = followed.key, followed.ready_at
        self._delayed[key] = ready_at

        def ready() -> None:
            if self.partitions.get(key) is followed and self._delayed.get(key) == ready_at:
                del self._delayed[key]
                self._mark(key)

        self._loop.timers.at(ready_at, ready)

    def _is_throttled(self, followed: Followed, now: float) -> bool:
        """Whether a partition has to wait, because throttled replicas have used up their quota (KIP-73)."""
        context = self._context
        rate = context.quota_rate
        if rate is None or followed.lag == 0 or not context.quota.is_exceeded(rate, now):
            return False
        if not context.is_throttled(followed.partition):
            return False
        followed.ready_at = now + THROTTLED_S
        return True

    def _send(self, now: float, *, is_short: bool) -> None:
        config = self._context.config
        wait_s = config[REPLICA_FETCH_WAIT_MAX_MS] / 1000
        if is_short:
            wait_s = min(wait_s, SHORT_WAIT_S)
        if self._delayed:
            wait_s = min(wait_s, max(0.0, min(self._delayed.values()) - now))
        session_id, session_epoch, topics, forgotten = self._session.next_request()
        request = FetchRequest(
            replica_state=FetchRequestReplicaState(
                replica_id=config.node_id, replica_epoch=self._context.broker_epoch()
            ),
            max_wait_ms=ceil(wait_s * 1000),
            min_bytes=config[REPLICA_FETCH_MIN_BYTES],
            max_bytes=config[REPLICA_FETCH_RESPONSE_MAX_BYTES],
            session_id=session_id,
            session_epoch=session_epoch,
            topics=topics,
            forgotten_topics_data=forgotten,
        )
        self._requests += 1
        number = self._in_flight = self._requests
        timeout_s = config[REPLICA_SOCKET_TIMEOUT_MS] / 1000
        self._client.send(request, partial(self._answered, number), timeout_s=timeout_s)

    # -- responses

    def _answered(self, number: int, response: Message | KafkaError) -> None:
        if number != self._in_flight:
            return  # closed
        self._in_flight = 0
        if self._is_hurrying:
            self._session.failed()
            self._schedule()
        elif isinstance(response, KafkaError):
            self._failed(response.code, str(response))
        elif response.error_code:  # type: ignore[attr-defined]
            code = ErrorCode(response.error_code)  # type: ignore[attr-defined]
            self._failed(code, f"it answers {code.name}")
        else:
            self._backoff_s = FIRST_BACKOFF_S
            self._session.answered(response.session_id)  # type: ignore[attr-defined]
            self._handle(response)  # type: ignore[arg-type]

    def _failed(self, code: ErrorCode, reason: str) -> None:
        """The request has failed as a whole: begin a new session, after a delay that grows."""
        self._session.failed(code)
        now = self._loop.now()
        longest_s = self._context.config[REPLICA_FETCH_BACKOFF_MS] / 1000
        if code not in _SESSION_ERRORS or self._backoff_s > FIRST_BACKOFF_S:
            self._not_before = now + min(self._backoff_s, longest_s)
            if now - self._logged_at >= REPEAT_S and code not in _SESSION_ERRORS:
                self._logged_at = now
                logger.warning(
                    "Fetching %d partitions from broker %d: %s", len(self.partitions), self.leader_id, reason
                )
        self._backoff_s = min(2 * self._backoff_s, max(longest_s, FIRST_BACKOFF_S))
        self._schedule()

    def _handle(self, response: FetchResponse) -> None:
        answers = [
            ((topic.topic_id, data.partition_index), data) for topic in response.responses for data in topic.partitions
        ]
        self._is_handling = True
        end = self._loop.now() + IN_PLACE_S
        for at, (key, data) in enumerate(answers):
            self._take(key, data)
            if self._loop.now() >= end and at + 1 < len(answers):
                rest = answers[at + 1 :]
                for _, unhandled in rest:  # the connection's buffer is used again after this call
                    unhandled.records = bytes(unhandled.records) if unhandled.records else b""  # type: ignore[arg-type]
                start_later(self._take_rest(rest), self._loop.slices, self._handled)
                return
        self._handled()

    def _take_rest(self, answers: Answers) -> Generator[None, None, None]:
        for key, data in answers:
            self._take(key, data)
            yield

    def _handled(self, error: Exception | None = None) -> None:
        if error is not None:
            log_failure(f"Handling a response of broker {self.leader_id}", error)
        self._is_handling = False
        self._schedule()

    def _take(self, key: PartitionKey, data: FetchResponsePartitionData) -> None:
        """Handle the answer for one partition, unless the partition does not wait for it any longer."""
        followed = self.partitions.get(key)
        requested = self._session.partitions.get(key)
        if followed is None or requested is None:
            return
        is_awaited = requested.leader_epoch == followed.leader_epoch and followed.is_current and not followed.is_busy
        if not is_awaited or requested.fetch_offset != followed.partition.log.log_end_offset:
            self._has_ignored = True
            return
        if data.records:
            data.records = memoryview(data.records)  # type: ignore[arg-type]
        remedy = receive(self._context, followed, data)
        if remedy is not None:
            self._has_ignored |= isinstance(remedy, Truncate)  # its high watermark was not taken over
            self._apply(followed, remedy)
        self._changed[key] = None

    # -- remedies

    def _apply(self, followed: Followed, remedy: Remedy | None) -> None:
        """Carry out the remedy before a partition is fetched again."""
        context = self._context
        if isinstance(remedy, Truncate):
            log = followed.partition.log
            if remedy.fully or remedy.offset < log.log_end_offset:
                self._truncate(followed, remedy)
            elif not log.leader_epochs.truncate_from_end(log.log_end_offset):  # an epoch in which nothing was appended
                self._postpone(followed)
        elif isinstance(remedy, AskLeader):
            followed.is_busy = True
            client = context.client(self.leader_id, "follower-offsets")
            timeout_s = context.config[REPLICA_SOCKET_TIMEOUT_MS] / 1000
            offsets.ask(client, followed, context.config.node_id, timeout_s, partial(self._advised, followed))
        elif remedy is not None:
            self._postpone(followed)

    def _advised(self, followed: Followed, remedy: Remedy | None) -> None:
        """The leader has answered where its log begins and ends."""
        followed.is_busy = False
        if self.partitions.get(followed.key) is followed and followed.is_current:
            if remedy is None:
                self._postpone(followed)  # its log has changed meanwhile, or it will
            else:
                self._apply(followed, remedy)
        self._mark(followed.key)

    def _postpone(self, followed: Followed) -> None:
        followed.delay(self._loop.now(), self._context.config[REPLICA_FETCH_BACKOFF_MS] / 1000)

    def _truncate(self, followed: Followed, remedy: Truncate) -> None:
        context, partition = self._context, followed.partition
        followed.is_busy = True
        context.truncating[partition] = [partial(self._done, followed)]

        def steps() -> Steps[bool]:
            is_done = yield from truncate(context, followed, remedy.offset, fully=remedy.fully)
            if is_done and remedy.records and followed.is_current:
                log = partition.log
                appended = log.append_as_follower(memoryview(remedy.records), now=context.loop.now())
                partition.appended_as_follower(appended.size)
                follow_offsets(context, followed, remedy.high_watermark, remedy.log_start_offset)
            return is_done

        def ended(is_done: bool) -> None:
            if not is_done:
                self._postpone(followed)
            for done in context.truncating.pop(partition):
                done()

        def failed(error: Exception) -> None:
            log_failure(f"Truncating {partition!r}", error)
            ended(False)

        context.runner.start(steps(), ended, failed)

    def _done(self, followed: Followed) -> None:
        """A truncation has ended."""
        followed.is_busy = False
        self._mark(followed.key)
