"""AlterPartition for many partitions: one request in flight, what waits goes with the next (R11)."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

import pytest

from barnabas.broker.event_loop.loop import Loop
from barnabas.broker.replicas.leader.isr_changes import (
    ASK_AGAIN_S,
    LOOKED_AT,
    MAX_ASK_AGAIN_S,
    MAX_RETRY_S,
    PARTITIONS_OF_A_REQUEST,
    RETRY_S,
    IsrChanges,
    Outcome,
)
from barnabas.broker.replicas.leader.leader_state import Proposal
from barnabas.wire.errors import ErrorCode, KafkaError
from barnabas.wire.messages.replication import (
    AlterPartitionRequest,
    AlterPartitionResponse,
    AlterPartitionResponsePartitionData,
    AlterPartitionResponseTopicData,
)


class Proposing:
    """A partition that wants another ISR until it gets an answer."""

    def __init__(self, topic_id: bytes, index: int) -> None:
        self.topic = "t"
        self.topic_id = topic_id
        self.index = index
        self.proposal: Proposal | None = Proposal((1, 2), 3, 4, (101, 102))
        self.answers: list[ErrorCode] = []
        self.retries = 0
        self.is_overtaken = False

    def open_proposal(self) -> Proposal | None:
        return self.proposal

    def answered(self, proposal: Proposal, response: AlterPartitionResponsePartitionData) -> Outcome:
        assert proposal is self.proposal
        self.answers.append(ErrorCode(response.error_code))
        if self.retries:
            self.retries -= 1
            return Outcome.AGAIN
        if self.is_overtaken:
            return Outcome.AWAITS_METADATA
        self.proposal = None
        return Outcome.SETTLED


class Driver:
    def __init__(self) -> None:
        self.now = 0.0
        self.loop = Loop(lambda: self.now, lambda: 0)
        self.sent: list[tuple[AlterPartitionRequest, Callable[[Any], None]]] = []
        self.broker_epoch = 7
        self.changes = IsrChanges(
            self.loop, 1, lambda: self.broker_epoch, lambda request, then: self.sent.append((request, then))
        )

    def propose(self, *partitions: Proposing) -> None:
        for partition in partitions:
            assert partition.proposal is not None
            self.changes.propose(partition, partition.proposal)
        self.loop.end_turn()

    def named(self) -> list[int]:
        """The partitions of the request in flight."""
        ((request, _),) = self.sent
        return [partition.partition_index for topic in request.topics for partition in topic.partitions]

    def answer(
        self,
        *,
        without: frozenset[int] = frozenset(),
        error: ErrorCode | None = None,
        code: ErrorCode = ErrorCode.NONE,
    ) -> None:
        """`error` is the error of the request, `code` the error code of each partition."""
        ((request, then),) = self.sent
        self.sent.clear()
        if error is not None:
            then(KafkaError(error))
        else:
            then(
                AlterPartitionResponse(
                    topics=[
                        AlterPartitionResponseTopicData(
                            topic_id=topic.topic_id,
                            partitions=[
                                AlterPartitionResponsePartitionData(
                                    partition_index=partition.partition_index, error_code=int(code)
                                )
                                for partition in topic.partitions
                                if partition.partition_index not in without
                            ],
                        )
                        for topic in request.topics
                    ]
                )
            )
        self.loop.end_turn()

    def advance(self, seconds: float) -> None:
        end = self.now + seconds
        while (deadline := self.loop.timers.next_deadline()) <= end:
            self.now = max(self.now, deadline)
            self.loop.timers.fire(self.now)
            self.loop.end_turn()
        self.now = end


def several(count: int) -> list[Proposing]:
    return [Proposing(b"t" * 16, index) for index in range(count)]


def test_what_is_proposed_in_a_turn_is_one_request() -> None:
    driver, partitions = Driver(), several(3)
    driver.propose(*partitions)
    assert driver.named() == [0, 1, 2]
    ((request, _),) = driver.sent
    assert (request.broker_id, request.broker_epoch) == (1, 7)
    (first, *_) = request.topics[0].partitions
    assert [(state.broker_id, state.broker_epoch) for state in first.new_isr_with_epochs] == [(1, 7), (2, 102)]
    driver.answer()
    assert driver.sent == []
    assert [partition.answers for partition in partitions] == [[ErrorCode.NONE]] * 3


def test_what_is_proposed_meanwhile_waits_for_the_answer() -> None:
    driver, (first, second, third) = Driver(), several(3)
    driver.propose(first)
    driver.propose(second)
    driver.propose(third)
    assert driver.named() == [0]
    driver.answer()
    assert driver.named() == [1, 2]


def test_a_request_is_bounded() -> None:
    driver, partitions = Driver(), several(PARTITIONS_OF_A_REQUEST + 5)
    driver.propose(*partitions)
    assert len(driver.named()) == PARTITIONS_OF_A_REQUEST
    driver.answer()
    assert len(driver.named()) == 5
    driver.answer()
    assert all(partition.answers for partition in partitions)


def test_a_failed_request_is_sent_again_with_the_epoch_of_then() -> None:
    driver, partitions = Driver(), several(2)
    driver.propose(*partitions)
    driver.answer(error=ErrorCode.STALE_BROKER_EPOCH)
    assert driver.sent == []
    driver.broker_epoch = 8
    driver.advance(RETRY_S)
    assert driver.named() == [0, 1]
    assert driver.sent[0][0].broker_epoch == 8


def test_a_proposal_that_the_metadata_has_overtaken_is_not_sent_again() -> None:
    driver, (first, second) = Driver(), several(2)
    driver.propose(first, second)
    driver.answer(error=ErrorCode.REQUEST_TIMED_OUT)
    first.proposal = None
    driver.advance(RETRY_S)
    assert driver.named() == [1]


def test_a_partition_that_is_missing_in_the_answer_or_wants_it_is_sent_again() -> None:
    driver, (first, second, third) = Driver(), several(3)
    second.retries = 1
    driver.propose(first, second, third)
    driver.answer(without=frozenset({0}))
    driver.advance(RETRY_S)
    assert driver.named() == [0, 1]
    driver.answer()
    assert (first.answers, second.answers, third.answers) == (
        [ErrorCode.NONE],
        [ErrorCode.NONE, ErrorCode.NONE],
        [ErrorCode.NONE],
    )


def test_a_newer_proposal_of_a_partition_replaces_the_older() -> None:
    driver, (first,) = Driver(), several(1)
    driver.propose(first)
    older = driver.sent[0][0].topics[0].partitions[0].partition_epoch
    driver.answer(error=ErrorCode.REQUEST_TIMED_OUT)
    first.proposal = Proposal((1,), 3, 5, (101,))
    driver.propose(first)
    driver.advance(RETRY_S)
    assert driver.sent[0][0].topics[0].partitions[0].partition_epoch == 5 != older


def test_failures_are_told_once_and_make_the_pause_longer(caplog: pytest.LogCaptureFixture) -> None:
    driver, (first,) = Driver(), several(1)
    driver.propose(first)
    with caplog.at_level(logging.WARNING):
        for error in [ErrorCode.STALE_BROKER_EPOCH] * 8 + [ErrorCode.REQUEST_TIMED_OUT]:
            driver.answer(error=error)
            driver.advance(MAX_RETRY_S)
    assert [record.getMessage().rpartition(" ")[2] for record in caplog.records] == [
        "STALE_BROKER_EPOCH",
        "REQUEST_TIMED_OUT",
    ]
    driver.answer(error=ErrorCode.REQUEST_TIMED_OUT)
    driver.advance(MAX_RETRY_S / 2)
    assert driver.sent == []
    driver.advance(MAX_RETRY_S / 2)
    driver.answer()
    assert first.answers == [ErrorCode.NONE]

    first.proposal = Proposal((1,), 3, 5, (101,))  # after a success it begins anew
    driver.propose(first)
    driver.answer(error=ErrorCode.REQUEST_TIMED_OUT)
    driver.advance(RETRY_S)
    assert driver.named() == [0]
    assert caplog.text.count("REQUEST_TIMED_OUT") == 2


def overtaken(count: int) -> list[Proposing]:
    partitions = several(count)
    for partition in partitions:
        partition.is_overtaken = True
    return partitions


def test_what_waits_for_metadata_that_does_not_come_is_asked_again(caplog: pytest.LogCaptureFixture) -> None:
    """R11: the state that the answer was about may never be committed, as when its controller stops."""
    driver, (first, second) = Driver(), overtaken(2)
    driver.propose(first, second)
    with caplog.at_level(logging.WARNING):
        driver.answer(code=ErrorCode.INVALID_UPDATE_VERSION)
        driver.advance(ASK_AGAIN_S - 0.1)
        assert (driver.sent, caplog.records) == ([], [])
        second.proposal = None  # the metadata has come
        driver.advance(0.1)
        assert driver.named() == [0]
        (line,) = caplog.records
        assert "1 partitions" in line.getMessage()
        assert "t-0 (INVALID_UPDATE_VERSION)" in line.getMessage()
        driver.answer(code=ErrorCode.INVALID_UPDATE_VERSION)
        driver.advance(2 * ASK_AGAIN_S - 0.1)
        assert driver.sent == []
        driver.advance(0.1)
        assert driver.named() == [0]
        first.is_overtaken = False
        driver.answer()
        driver.advance(10 * MAX_ASK_AGAIN_S)
    assert driver.sent == []
    assert len(caplog.records) == 2
    assert first.answers == [ErrorCode.INVALID_UPDATE_VERSION] * 2 + [ErrorCode.NONE]


def test_the_pause_between_two_such_questions_is_bounded() -> None:
    driver, (first,) = Driver(), overtaken(1)
    driver.propose(first)
    pauses = []
    for _ in range(6):
        driver.answer(code=ErrorCode.FENCED_LEADER_EPOCH)
        began = driver.now
        while not driver.sent:
            driver.advance(1)
        pauses.append(driver.now - began)
    assert pauses == [5, 10, 20, 40, 60, 60]


def test_many_that_wait_for_metadata_are_looked_at_in_pieces() -> None:
    driver, partitions = Driver(), overtaken(2 * LOOKED_AT)
    driver.propose(*partitions)
    for _ in range(0, len(partitions), PARTITIONS_OF_A_REQUEST):
        driver.answer(code=ErrorCode.INVALID_UPDATE_VERSION)
    for partition in partitions:
        partition.is_overtaken = False
    driver.advance(ASK_AGAIN_S)
    while driver.sent:
        driver.answer()
        driver.advance(0)
    assert all(partition.proposal is None for partition in partitions)
    assert driver.changes._late == {}


def test_a_partition_that_is_closed_is_not_kept() -> None:
    driver, (first,) = Driver(), overtaken(1)
    driver.propose(first)
    driver.answer(code=ErrorCode.UNKNOWN_TOPIC_ID)
    first.proposal = None
    driver.advance(ASK_AGAIN_S)
    assert (driver.changes._late, driver.changes._waiting) == ({}, {})
