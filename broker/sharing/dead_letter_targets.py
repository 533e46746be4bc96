"""Where dead letters are written: a partition that this broker leads, or one of another broker (Produce, acks=all)."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final, Protocol

from barnabas.wire.errors import ErrorCode, KafkaError
from barnabas.wire.messages.produce import PartitionProduceData, ProduceRequest, ProduceResponse, TopicProduceData

if TYPE_CHECKING:
    from barnabas.broker.event_loop.loop import Loop
    from barnabas.broker.net.client.network_client import NetworkClient
    from barnabas.broker.replicas.partition import Partition

PRODUCE_BY_NAME: Final = 12
"""The last version of Produce that names topics."""

Then = Callable[[ErrorCode], None]


class Target(Protocol):
    """A partition of a queue."""

    def append(self, batch: bytes) -> None:
        """Write a batch. KafkaError if it cannot be written."""

    def when_committed(self, then: Then) -> None:
        """Call `then` with NONE once all batches are committed, or with an error."""


class LedHere:
    """A partition that this broker leads."""

    def __init__(self, partition: Partition, loop: Loop) -> None:
        self._partition = partition
        self._loop = loop
        self._last = -1

    def append(self, batch: bytes) -> None:
        """Append a batch to the log."""
        partition = self._partition
        if partition.is_closed or not partition.is_leader:  # between two steps
            raise KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER)
        if partition.has_peers:
            partition.check_in_sync_replicas()
        self._last = partition.append(memoryview(bytearray(batch)), self._loop.now()).last_offset

    def when_committed(self, then: Then) -> None:
        """Wait for the last batch."""
        self._partition.when_committed(self._last, then)


class LedElsewhere:
    """A partition of another broker. Its batches are sent one after the other when all are made."""

    def __init__(self, client: NetworkClient, topic: str, index: int, timeout_s: float) -> None:
        self._client = client
        self._topic = topic
        self._index = index
        self._timeout_s = timeout_s
        self._batches: list[bytes] = []

    def append(self, batch: bytes) -> None:
        """Keep a batch."""
        self._batches.append(batch)

    def when_committed(self, then: Then) -> None:
        """Send the batches; the first error ends it."""
        if not self._batches:
            then(ErrorCode.NONE)
            return
        data = PartitionProduceData(index=self._index, records=self._batches.pop(0))
        request = ProduceRequest(
            acks=-1,
            timeout_ms=int(self._timeout_s * 1000),
            topic_data=[TopicProduceData(name=self._topic, partition_data=[data])],
        )

        def then_decide(response: ProduceResponse | KafkaError) -> None:
            if isinstance(response, KafkaError):
                then(response.code)
                return
            error = ErrorCode(response.responses[0].partition_responses[0].error_code)
            if error:
                then(error)
            else:
                self.when_committed(then)

        self._client.send(request, then_decide, timeout_s=self._timeout_s, max_version=PRODUCE_BY_NAME)
