"""Asks the controller for changes of ISRs (AlterPartition), for all partitions that this broker leads (R11).

One request is in flight at a time; what is proposed meanwhile is part of the next one, so a proposal costs no request
of its own when many partitions change together. A proposal stays until it is answered or the partition has moved on.
After an error of the whole request everything is sent again: the broker epoch may have been stale (77, the broker
registers again), or the controller was not reached. The pause before that doubles from failure to failure, and the log
has one line for a reason that stays. Source: Kafka 4.4 `DefaultAlterPartitionManager`.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

from barnabas.wire.errors import ErrorCode, KafkaError
from barnabas.wire.messages.replication import (
    AlterPartitionRequest,
    AlterPartitionRequestPartitionData,
    AlterPartitionRequestTopicData,
    AlterPartitionResponse,
    AlterPartitionResponsePartitionData,
    BrokerState,
)

if TYPE_CHECKING:
    from barnabas.broker.loop import Loop
    from barnabas.broker.replicas.leader_state import Proposal

logger = logging.getLogger("kafka.server.AlterPartitionManager")

RETRY_S = 0.05
"""Wait before a request is repeated for the first time, seconds."""

MAX_RETRY_S = 0.8
"""The longest wait before a request is repeated, seconds."""

PARTITIONS_OF_A_REQUEST = 200
"""The most proposals of one request, so that neither it nor its answer holds up a turn."""

Send: TypeAlias = "Callable[[AlterPartitionRequest, Callable[[Any], None]], None]"
"""Sends a request to the active controller; the callback gets the response, or a KafkaError."""


class Proposer(Protocol):
    """A partition that proposes a change of its ISR."""

    topic_id: bytes
    index: int

    def open_proposal(self) -> Proposal | None:
        """The change that it wants now, if any."""

    def answered(self, proposal: Proposal, answer: AlterPartitionResponsePartitionData) -> bool:
        """The controller's answer; whether the same proposal is to be sent again."""


class IsrChanges:
    """The proposals of one broker that the controller has not answered."""

    def __init__(self, loop: Loop, node_id: int, broker_epoch: Callable[[], int], send: Send) -> None:
        """`broker_epoch` gives the epoch of this broker's registration."""
        self._loop = loop
        self._node_id = node_id
        self._broker_epoch = broker_epoch
        self._send = send
        self._waiting: dict[tuple[bytes, int], tuple[Proposer, Proposal]] = {}
        self._is_in_flight = False
        self._is_scheduled = False
        self._retry_s = RETRY_S
        self._reported = ErrorCode.NONE

    def propose(self, partition: Proposer, proposal: Proposal) -> None:
        """Send a proposal with the next request; it replaces an older one of the partition."""
        self._waiting[partition.topic_id, partition.index] = (partition, proposal)
        if not self._is_in_flight and not self._is_scheduled:
            self._is_scheduled = True
            self._loop.call_after_turn(self._send_next)

    def _send_next(self) -> None:
        self._is_scheduled = False
        if self._is_in_flight:
            return
        sent: list[tuple[Proposer, Proposal]] = []
        for key, (partition, proposal) in list(self._waiting.items()):
            if partition.open_proposal() is not proposal:
                del self._waiting[key]  # the metadata has overtaken it
            elif len(sent) < PARTITIONS_OF_A_REQUEST:
                sent.append((partition, proposal))
        if sent:
            self._is_in_flight = True
            self._send(self._request(sent), partial(self._answered, sent))

    def _request(self, sent: list[tuple[Proposer, Proposal]]) -> AlterPartitionRequest:
        own_epoch = self._broker_epoch()
        topics: dict[bytes, AlterPartitionRequestTopicData] = {}
        for partition, proposal in sent:
            topic = topics.get(partition.topic_id)
            if topic is None:
                topic = topics[partition.topic_id] = AlterPartitionRequestTopicData(
                    topic_id=partition.topic_id, partitions=[]
                )
            topic.partitions.append(
                AlterPartitionRequestPartitionData(
                    partition_index=partition.index,
                    leader_epoch=proposal.leader_epoch,
                    new_isr_with_epochs=[
                        BrokerState(
                            broker_id=broker_id, broker_epoch=own_epoch if broker_id == self._node_id else epoch
                        )
                        for broker_id, epoch in zip(proposal.isr, proposal.broker_epochs, strict=True)
                    ],
                    leader_recovery_state=0,
                    partition_epoch=proposal.partition_epoch,
                )
            )
        return AlterPartitionRequest(broker_id=self._node_id, broker_epoch=own_epoch, topics=list(topics.values()))

    def _answered(self, sent: list[tuple[Proposer, Proposal]], outcome: AlterPartitionResponse | KafkaError) -> None:
        self._is_in_flight = False
        code = outcome.code if isinstance(outcome, KafkaError) else ErrorCode(outcome.error_code)
        if code or isinstance(outcome, KafkaError):
            if code != self._reported:
                logger.warning("The controller did not take %d changes of ISRs: %s", len(sent), code.name)
            self._reported = code
            self._retry()
            return
        self._reported = ErrorCode.NONE
        answers = {(topic.topic_id, one.partition_index): one for topic in outcome.topics for one in topic.partitions}
        must_retry = False
        for partition, proposal in sent:
            key = (partition.topic_id, partition.index)
            answer = answers.get(key)
            if answer is None or partition.answered(proposal, answer):
                must_retry = True
            elif self._waiting.get(key) == (partition, proposal):
                del self._waiting[key]
        if must_retry:
            self._retry()
            return
        self._retry_s = RETRY_S
        if self._waiting:
            self._send_next()

    def _retry(self) -> None:
        if not self._is_scheduled:
            self._is_scheduled = True
            self._loop.timers.at(self._loop.now() + self._retry_s, self._send_next)
            self._retry_s = min(2 * self._retry_s, MAX_RETRY_S)
