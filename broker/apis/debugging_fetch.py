"""Fetches with a replica id below -1: tools that compare the replicas of a partition (Kafka's DEBUGGING_CONSUMER_ID).

As in Kafka's `FetchIsolation` they read any replica, leader or not, up to its log end, whatever is committed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from barnabas.broker.apis.fetch_plan import FetchPlan

if TYPE_CHECKING:
    from barnabas.broker.context import RequestContext
    from barnabas.broker.replicas.fetch_sessions import FetchPartition, FetchSession, PartitionKey
    from barnabas.broker.replicas.partition import Partition
    from barnabas.storage.log import Log
    from barnabas.wire.messages.fetch import FetchRequest, FetchResponsePartitionData


class DebuggingFetchPlan(FetchPlan):
    """The partitions of one fetch that looks at replicas as they are."""

    __slots__ = ()

    def __init__(
        self,
        ctx: RequestContext,
        request: FetchRequest,
        partitions: dict[PartitionKey, FetchPartition],
        session: FetchSession | None,
    ) -> None:
        super().__init__(ctx, request, partitions, session)
        self.is_committed = False

    def end_of(self, log: Log) -> int:
        """Everything that the replica has."""
        return log.log_end_offset

    def _check_peers(self, _partition: Partition, _wanted: FetchPartition) -> FetchResponsePartitionData | None:
        return None
