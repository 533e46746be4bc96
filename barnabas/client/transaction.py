"""The transaction of a producer: its identity, its partitions, its end (KIP-98, without the epochs of KIP-890).

Every partition is added by AddPartitionsToTxn before data is sent to it, which every broker understands. Calls wait for
the coordinator, and are repeated until the cluster's timeout while it finishes an earlier transaction.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from barnabas.client.accumulator import Identity
from barnabas.client.cluster import TRANSACTION, Cluster
from barnabas.client.connection import NodeConnection
from barnabas.client.errors import raise_for
from barnabas.client.offsets import TopicPartition
from barnabas.wire.errors import ErrorCode
from barnabas.wire.messages.produce import InitProducerIdRequest, InitProducerIdResponse
from barnabas.wire.messages.transactions import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnTopic,
    DescribeTransactionsRequest,
    DescribeTransactionsResponse,
    EndTxnRequest,
    EndTxnResponse,
)

LAST_PRODUCE_VERSION, LAST_ADD_VERSION, LAST_END_VERSION, LAST_INIT_VERSION = 11, 3, 4, 5
"""Newer versions are for transactions that each increase the epoch (KIP-890)."""


@dataclass(eq=False)
class Transaction:
    """The transactions of one transactional id, one after the other."""

    cluster: Cluster
    transactional_id: str
    timeout_ms: int
    identity: Identity = field(default_factory=Identity, init=False)
    _partitions: set[TopicPartition] = field(default_factory=set, init=False)

    def initialize(self) -> Identity:
        """Get a producer id; an open transaction of an earlier producer of this id is aborted, that one is fenced."""
        request = InitProducerIdRequest(transactional_id=self.transactional_id, transaction_timeout_ms=self.timeout_ms)

        def attempt(deadline: float) -> Identity:
            node = self._coordinator(deadline)
            response = node.call(request, InitProducerIdResponse, deadline, LAST_INIT_VERSION)
            raise_for(response.error_code, f"cannot use transactional id {self.transactional_id!r}")
            return Identity(response.producer_id, response.producer_epoch, is_transactional=True)

        self.identity = self.cluster.retry(attempt)
        return self.identity

    def _coordinator(self, deadline: float) -> NodeConnection:
        return self.cluster.node(self.cluster.coordinator_id(self.transactional_id, deadline, TRANSACTION), deadline)

    def add(self, partitions: Iterable[TopicPartition]) -> None:
        """Add partitions that are not in the transaction; the first begins it."""
        new = [partition for partition in partitions if partition not in self._partitions]
        if not new:
            return
        topics: dict[str, list[int]] = {}
        for topic, index in new:
            topics.setdefault(topic, []).append(index)
        request = AddPartitionsToTxnRequest(
            v3_and_below_transactional_id=self.transactional_id,
            v3_and_below_producer_id=self.identity.producer_id,
            v3_and_below_producer_epoch=self.identity.producer_epoch,
            v3_and_below_topics=[
                AddPartitionsToTxnTopic(name=name, partitions=indexes) for name, indexes in topics.items()
            ],
        )

        def attempt(deadline: float) -> None:
            node = self._coordinator(deadline)
            response = node.call(request, AddPartitionsToTxnResponse, deadline, LAST_ADD_VERSION)
            for topic in response.results_by_topic_v3_and_below:
                for result in topic.results_by_partition:
                    raise_for(
                        result.partition_error_code,
                        f"cannot add {topic.name}-{result.partition_index} to a transaction",
                    )

        self.cluster.retry(attempt)
        self._partitions.update(new)

    def end(self, commit: bool) -> None:
        """Commit or abort; nothing is sent when there is no transaction."""
        if not self._partitions:
            return
        request = EndTxnRequest(
            transactional_id=self.transactional_id,
            producer_id=self.identity.producer_id,
            producer_epoch=self.identity.producer_epoch,
            committed=commit,
        )
        about = f"cannot {'commit' if commit else 'abort'} the transaction of {self.transactional_id!r}"

        def attempt(deadline: float) -> None:
            node = self._coordinator(deadline)
            raise_for(node.call(request, EndTxnResponse, deadline, LAST_END_VERSION).error_code, about)

        self.cluster.retry(attempt)
        self._partitions.clear()

    def wait_until_visible(self) -> None:
        """Wait until the markers of the transaction that has ended are written: readers of committed records see it."""
        request = DescribeTransactionsRequest(transactional_ids=[self.transactional_id])

        def attempt(deadline: float) -> None:
            node = self._coordinator(deadline)
            if DescribeTransactionsRequest.api_key not in node.versions:
                return
            state = node.call(request, DescribeTransactionsResponse, deadline).transaction_states[0]
            raise_for(state.error_code, f"transactional id {self.transactional_id!r}")
            if state.transaction_state.startswith("Prepare"):
                raise_for(
                    ErrorCode.CONCURRENT_TRANSACTIONS, f"the markers of {self.transactional_id!r} are not written"
                )

        self.cluster.retry(attempt)
