"""Asks the controller for changes of ISRs (AlterPartition), for all partitions that this broker leads (R11).

One request is in flight at a time; proposals made meanwhile are part of the next one, so a proposal costs no request of
its own when many partitions change together. A proposal stays until it is answered or the partition has moved on. After
an error of the whole request everything is sent again: the broker epoch may have been stale (77, the broker registers
again), or the controller was not reached. The pause before that doubles from failure to failure, and the log has one
line for a reason that stays. A proposal that waits for the metadata is sent again as well, with a line in the log, when
nothing has come for `ASK_AGAIN_S`: the change that the controller has accepted may never be committed. Source: Kafka
4.4 `DefaultAlterPartitionManager`, which waits without end.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from enum import Enum
from functools import partial
from itertools import islice
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
    from barnabas.broker.event_loop.loop import Loop
    from barnabas.broker.event_loop.timers import Timer
    from barnabas.broker.replicas.leader.leader_state import Proposal

logger = logging.getLogger("kafka.server.AlterPartitionManager")

RETRY_S = 0.05
"""Wait before a request is repeated for the first time, seconds."""

MAX_RETRY_S = 0.8
"""The longest wait before a request is repeated, seconds."""

ASK_AGAIN_S = 5.0
"""How long a proposal waits for metadata until it is sent again for the first time, seconds; then twice as long."""

MAX_ASK_AGAIN_S = 60.0
"""The longest time until it is sent again, seconds."""

NAMED_PARTITIONS = 5
"""The most partitions that a line in the log names."""

LOOKED_AT = 500
"""The most waiting proposals that are checked in a turn."""

PARTITIONS_OF_A_REQUEST = 200
"""The most proposals of one request, so that neither it nor its answer holds up a turn."""

Send: TypeAlias = "Callable[[AlterPartitionRequest, Callable[[Any], None]], None]"
"""Sends a request to the active controller; the callback gets the response, or a KafkaError."""


class Outcome(Enum):
    """What happens to a proposal that was answered."""

    SETTLED = "it is over"
    AGAIN = "it is to be sent again soon"
    AWAITS_METADATA = "the controller knows another state of the partition, which the metadata will tell"


class Proposer(Protocol):
    """A partition that proposes a change of its ISR."""

    topic: str
    topic_id: bytes
    index: int

    def open_proposal(self) -> Proposal | None:
        """The change that the partition proposes now, if any."""

    def answered(self, proposal: Proposal, response: AlterPartitionResponsePartitionData) -> Outcome:
        """The controller's answer."""


class _Late:
    """A proposal that waits for the metadata."""

    __slots__ = ("code", "due", "partition", "pause_s", "proposal")

    def __init__(self, partition: Proposer, proposal: Proposal) -> None:
        self.partition = partition
        self.proposal = proposal
        self.code = ErrorCode.NONE
        """The controller's last answer."""
        self.pause_s = ASK_AGAIN_S / 2
        self.due: float | None = None
        """When it is sent again; None while it is being sent."""

    @property
    def is_open(self) -> bool:
        """Whether no metadata has come."""
        return self.partition.open_proposal() is self.proposal


class IsrChanges:
    """The proposals of one broker that the controller has not answered."""

    def __init__(self, loop: Loop, node_id: int, broker_epoch: Callable[[], int], send: Send) -> None:
        """`broker_epoch` returns the epoch of this broker's registration."""
        self._loop = loop
        self._node_id = node_id
        self._broker_epoch = broker_epoch
        self._send = send
        self._waiting: dict[tuple[bytes, int], tuple[Proposer, Proposal]] = {}
        self._is_in_flight = False
        self._is_scheduled = False
        self._retry_s = RETRY_S
        self._reported = ErrorCode.NONE
        self._late: dict[tuple[bytes, int], _Late] = {}
        self._late_timer: Timer | None = None

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
                self._late.pop(key, None)
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
        answers = {
            (topic.topic_id, data.partition_index): data for topic in outcome.topics for data in topic.partitions
        }
        must_retry = False
        for partition, proposal in sent:
            key = (partition.topic_id, partition.index)
            response = answers.get(key)
            result = Outcome.AGAIN if response is None else partition.answered(proposal, response)
            if result is Outcome.AGAIN:
                must_retry = True
                continue
            if self._waiting.get(key) == (partition, proposal):
                del self._waiting[key]
            if response is not None and result is Outcome.AWAITS_METADATA:
                self._await_metadata(partition, proposal, ErrorCode(response.error_code))
            else:
                self._late.pop(key, None)
        if must_retry:
            self._retry()
            return
        self._retry_s = RETRY_S
        if self._waiting:
            self._send_next()

    # -- proposals that wait for the metadata

    def _await_metadata(self, partition: Proposer, proposal: Proposal, code: ErrorCode) -> None:
        key = (partition.topic_id, partition.index)
        late = self._late.pop(key, None)
        if late is None or late.proposal is not proposal:
            late = _Late(partition, proposal)
        late.code = code
        late.pause_s = min(2 * late.pause_s, MAX_ASK_AGAIN_S)
        late.due = self._loop.now() + late.pause_s
        self._late[key] = late
        self._look_later(late.due)

    def _look_later(self, at: float) -> None:
        timer = self._late_timer
        if timer is not None and timer.deadline <= at:
            return
        if timer is not None:
            timer.cancel()
        self._late_timer = self._loop.timers.at(at, self._look)

    def _look(self) -> None:
        """Send the proposals that have waited long enough, and forget those that newer metadata has replaced."""
        self._late_timer = None
        now = self._loop.now()
        again: list[_Late] = []
        for key, late in list(islice(self._late.items(), LOOKED_AT)):
            del self._late[key]
            if late.is_open:
                self._late[key] = late  # at the end: the next look begins with the others
                if late.due is not None and late.due <= now:
                    late.due = None
                    again.append(late)
        if again:
            self._say(again)
        for late in again:
            self.propose(late.partition, late.proposal)
        dues = [late.due for late in self._late.values() if late.due is not None]
        if dues:
            self._look_later(max(min(dues), now))

    def _say(self, again: list[_Late]) -> None:
        """Warn the operator; an answer that only arrives a little before its metadata is normal."""
        names = [f"{late.partition.topic}-{late.partition.index} ({late.code.name})" for late in again]
        more = f" and {len(names) - NAMED_PARTITIONS} more" if len(names) > NAMED_PARTITIONS else ""
        logger.warning(
            "The controller knows another state of %d partitions than this leader, and no metadata that tells it has "
            "come for %g s: their ISRs do not change; asking again. %s%s",
            *(len(again), max(late.pause_s for late in again), ", ".join(names[:NAMED_PARTITIONS]), more),
        )

    def _retry(self) -> None:
        if not self._is_scheduled:
            self._is_scheduled = True
            self._loop.timers.at(self._loop.now() + self._retry_s, self._send_next)
            self._retry_s = min(2 * self._retry_s, MAX_RETRY_S)
