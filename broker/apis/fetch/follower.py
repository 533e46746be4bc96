"""Fetches with a replica id: of followers (from 0 on), and of tools that compare replicas (below -1).

Followers read up to the log end, and each fetch shows what the replica has (R4-R6). The first read of a request records
the follower's position: everything below its fetch offset is on that replica. A later read of the same request records
nothing. In a session only the partitions are read that the follower names or that are not idle
(`replicas.leader.follower_watch`). With the tag of Fetch v18 (KIP-1166) a follower whose high watermark is behind is
answered at once. A fetch that waits in a session is answered in the turn of the append, since acks=all waits for it;
records appended in one turn are read together. One without a session waits as a consumer's does, for the log end
instead of the high watermark.

Tools (Kafka's DEBUGGING_CONSUMER_ID) read any replica, leader or not, up to its log end, committed or not, as in
Kafka's `FetchIsolation`.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING, Any

from barnabas.broker.apis.fetch.plan import FetchPlan
from barnabas.broker.event_loop.waiting import Future
from barnabas.broker.replicas.leader.fetch_sessions import FetchPartition, FollowerPartition, replica_of
from barnabas.broker.replicas.leader.follower_watch import FollowerWatch
from barnabas.wire.errors import KafkaError

if TYPE_CHECKING:
    from barnabas.broker.apis.fetch.plan import Attempt
    from barnabas.broker.context import RequestContext
    from barnabas.broker.replicas.leader.fetch_sessions import FetchSession, PartitionKey
    from barnabas.broker.replicas.partition import Partition
    from barnabas.storage.log import Log
    from barnabas.wire.messages.fetch import FetchRequest, FetchResponse, FetchResponsePartitionData

NO_TAG = 2**63 - 1
"""The high watermark of a follower that does not send it."""


class FollowerFetchPlan(FetchPlan):
    """The partitions of one fetch of a follower."""

    __slots__ = (
        "_broker_epoch",
        "_has_begun",
        "_holds_back",
        "_now",
        "_records_positions",
        "_replica_id",
        "_throttled",
    )

    is_follower = True

    def __init__(
        self,
        ctx: RequestContext,
        request: FetchRequest,
        partitions: dict[PartitionKey, FetchPartition],
        session: FetchSession | None,
    ) -> None:
        super().__init__(ctx, request, partitions, session)
        self._replica_id = replica_of(request)
        self._broker_epoch = request.replica_state.replica_epoch
        self._now = ctx.now
        self._has_begun = self._records_positions = self._holds_back = False
        self._throttled: list[PartitionKey] = []  # these count for the quota
        self.is_committed = False

    @classmethod
    def resumed(cls, ctx: RequestContext, request: FetchRequest, session: FetchSession) -> FetchPlan:
        """The plan for a fetch in a session: with the partitions that are not idle."""
        watch = session.watch
        if watch is None:
            watch = session.watch = FollowerWatch(session, session.partitions, replica_of(request), ctx.now)
        watch.fetched_at = ctx.now
        return FollowerSessionPlan(ctx, request, watch, session)

    def begin(self) -> Attempt:
        """An attempt; only the first one of a request records positions."""
        self._records_positions, self._has_begun = not self._has_begun, True
        return super().begin()

    def read_again(self, attempt: Attempt, keys: Collection[PartitionKey]) -> None:
        """Read these partitions again, without recording positions."""
        self._records_positions = False
        super().read_again(attempt, keys)

    def end_of(self, log: Log) -> int:
        """Followers read up to the log end, or nothing while they are throttled."""
        return log.log_end_offset if not self._holds_back else log.log_start_offset

    def bytes_of(self, partition: Partition) -> int:
        """The bytes that were appended, of which a leader that waits for its own flush counts the flushed ones."""
        committed = partition.committed_bytes
        return partition.bytes_appended if committed is None else committed.total

    def find(self, requested: FetchPartition) -> Partition:
        """The partition. KafkaError unless this broker leads it, in the follower's epoch, and knows the follower."""
        partition = super().find(requested)
        partition.check_leader(requested.current_leader_epoch)
        partition.check_follower(self._replica_id, requested.current_leader_epoch)
        return partition

    def _read_one(
        self, attempt: Attempt, key: PartitionKey, requested: FetchPartition, partition: Partition
    ) -> FetchResponsePartitionData:
        self.watch_from_now(partition, key)
        replication = self.broker.partitions.replication
        self._holds_back = replication.holds_back(partition, self._replica_id)
        data = super()._read_one(attempt, key, requested, partition)
        self._holds_back = False
        if data.records and replication.is_throttled(partition):
            self._throttled.append(key)
        assert isinstance(requested, FollowerPartition)
        if self._records_positions and data.diverging_epoch.epoch == -1:
            partition.follower_fetched(
                self._replica_id,
                self._broker_epoch,
                requested.fetch_offset,
                requested.follower_log_start_offset,
                self._now,
            )
            data.high_watermark = partition.log.high_watermark  # which this fetch may have moved
        if requested.follower_high_watermark < min(data.high_watermark, requested.fetch_offset):
            attempt.is_final = True
        return data

    def watch_from_now(self, partition: Partition, key: PartitionKey) -> None:
        """Do nothing: only sessions watch partitions."""

    def respond(self, attempt: Attempt) -> FetchResponse:
        """The response; the records of throttled partitions count for the quota."""
        if self._throttled:
            throttled = [
                attempt.answers[key][1].records for key in dict.fromkeys(self._throttled) if key in attempt.answers
            ]
            size = sum(len(records) for records in throttled if records)
            self.broker.partitions.replication.quota.record(size, self.broker.loop.now())
        return super().respond(attempt)


class FollowerSessionPlan(FollowerFetchPlan):
    """The partitions of a session that are not idle."""

    __slots__ = ("watch",)

    def __init__(self, ctx: RequestContext, request: FetchRequest, watch: FollowerWatch, session: FetchSession) -> None:
        super().__init__(ctx, request, {}, session)
        self.watch = watch
        self.partitions = self._changed_partitions()

    def _changed_partitions(self) -> dict[PartitionKey, FetchPartition]:
        assert self.session is not None
        known = self.session.partitions
        return {key: known[key] for key in self.watch.changed if key in known}

    def begin(self) -> Attempt:
        """An attempt; one without partitions waits."""
        attempt = super().begin()
        attempt.is_final = False
        return attempt

    def watch_from_now(self, partition: Partition, key: PartitionKey) -> None:
        """Have the session notified when the partition changes."""
        self.watch.watch(partition, key)

    def read_changed(self) -> Attempt:
        """Read the partitions that are not idle now, without recording positions."""
        self.partitions = self._changed_partitions()
        attempt = self.begin()
        for key, requested in self.partitions.items():
            self.read_into(attempt, key, requested)
        return attempt

    def respond(self, attempt: Attempt) -> FetchResponse:
        """The response; partitions whose whole state the follower has then are idle."""
        response = super().respond(attempt)
        for key, (requested, data) in attempt.answers.items():
            assert isinstance(requested, FollowerPartition)
            if data.error_code or data.records or data.diverging_epoch.epoch != -1:
                continue
            if requested.follower_high_watermark != NO_TAG:
                requested.follower_high_watermark = max(requested.follower_high_watermark, data.high_watermark)
            try:
                partition = self.find(requested)
            except KafkaError:
                continue
            if (
                self._replica_id in partition.isr
                and requested.fetch_offset == partition.log.log_end_offset
                and data.high_watermark == partition.log.high_watermark
                and data.log_start_offset == partition.log.log_start_offset
            ):
                self.watch.settle(key)
        return response


async def read_session(plan: FetchPlan, deadline: float) -> Attempt:
    """Wait until a session has more than was read, or until the deadline."""
    assert isinstance(plan, FollowerSessionPlan)
    loop, watch = plan.broker.loop, plan.watch
    is_scheduled = False
    change: Future[bool] = Future()

    def woken() -> None:
        """A partition has changed; others may in the same turn."""
        nonlocal is_scheduled
        if not is_scheduled:
            is_scheduled = True
            loop.call_after_turn(turn_ends)

    def turn_ends() -> None:
        nonlocal is_scheduled
        is_scheduled = False
        change.complete(False)

    watch.on_woken = woken
    timer = loop.timers.at(deadline, lambda: change.complete(True))
    try:
        while True:
            is_over = await change
            attempt = plan.read_changed()
            if is_over or attempt.is_final or attempt.size >= plan.min_bytes:
                return attempt
            change = Future()
    finally:
        timer.cancel()
        if watch.on_woken is woken:  # not the callback of a later fetch of the session
            watch.on_woken = None


class DebuggingFetchPlan(FetchPlan):
    """The partitions of one fetch that looks at replicas as they are."""

    __slots__ = ()

    def __init__(self, *of_plan: Any) -> None:
        super().__init__(*of_plan)
        self.is_committed = False

    def end_of(self, log: Log) -> int:
        """The end of the replica's log."""
        return log.log_end_offset

    def _check_peers(self, _partition: Partition, _requested: FetchPartition) -> FetchResponsePartitionData | None:
        return None
