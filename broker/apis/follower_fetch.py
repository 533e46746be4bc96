"""Fetches of followers (replica id from 0 on): they read up to the log end, and each says what its replica has (R4-R6).

The first read of a request records the follower's position: everything below its fetch offset is on that replica. A
fetch that is looked at again when records have come says nothing new. In a session, a partition with nothing to tell
costs only that: it is not read, since a follower names every partition of its leader in each fetch. With the tag of
Fetch v18 (KIP-1166) a follower whose high watermark is behind is answered at once.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from barnabas.broker.apis.fetch_plan import FetchPlan
from barnabas.broker.replicas.fetch_sessions import FetchPartition, FollowerPartition

if TYPE_CHECKING:
    from barnabas.broker.apis.fetch_plan import Attempt
    from barnabas.broker.context import RequestContext
    from barnabas.broker.replicas.fetch_sessions import FetchSession, PartitionKey
    from barnabas.broker.replicas.partition import Partition
    from barnabas.storage.log import Log
    from barnabas.wire.messages.fetch import FetchRequest, FetchResponsePartitionData


class FollowerFetchPlan(FetchPlan):
    """The partitions of one fetch of a follower."""

    __slots__ = ("_broker_epoch", "_now", "_records_positions", "_replica_id")

    is_follower = True

    def __init__(
        self,
        ctx: RequestContext,
        request: FetchRequest,
        partitions: dict[PartitionKey, FetchPartition],
        session: FetchSession | None,
    ) -> None:
        super().__init__(ctx, request, partitions, session)
        state = request.replica_state
        self._replica_id = state.replica_id if state.replica_id >= 0 else request.replica_id
        self._broker_epoch = state.replica_epoch
        self._now = ctx.now
        self._records_positions: bool | None = None
        self.is_committed = False

    def begin(self) -> Attempt:
        """An attempt; only the first one of a request records positions."""
        self._records_positions = self._records_positions is None
        return super().begin()

    def read_again(self, attempt: Attempt, keys: object) -> None:
        """Read these partitions again, without recording positions."""
        self._records_positions = False
        super().read_again(attempt, keys)  # type: ignore[arg-type]

    def end_of(self, log: Log) -> int:
        """Followers read up to the log end."""
        return log.log_end_offset

    def find(self, wanted: FetchPartition) -> Partition:
        """The partition. KafkaError unless this broker leads it, in the follower's epoch, and knows the follower."""
        partition = super().find(wanted)
        partition.check_leader(wanted.current_leader_epoch)
        partition.check_follower(self._replica_id, wanted.current_leader_epoch)
        return partition

    def _read_one(self, attempt: Attempt, key: PartitionKey, wanted: FetchPartition) -> FetchResponsePartitionData:
        answer = super()._read_one(attempt, key, wanted)
        assert isinstance(wanted, FollowerPartition)
        partition = self.find(wanted)
        if self._records_positions and answer.diverging_epoch.epoch == -1:
            partition.follower_fetched(
                self._replica_id,
                self._broker_epoch,
                wanted.fetch_offset,
                wanted.follower_log_start_offset,
                self._now,
            )
            answer.high_watermark = partition.log.high_watermark  # which this fetch may have moved
        if wanted.follower_high_watermark < min(answer.high_watermark, wanted.fetch_offset):
            attempt.is_final = True
        return answer
