"""How many producers a partition remembers: idle ones make room, those at work are not forgotten."""

from __future__ import annotations

from pathlib import Path

import pytest

from barnabas.storage.log import Log
from barnabas.storage.producers.producer_state import IDLE_MS, SWEEP_MS
from barnabas.wire.errors import ErrorCode, KafkaError
from tests.storage.producers.producer_driver import BIG
from tests.support.logs.log_driver import append, append_marker, batch_of, open_log, restart

START_MS = 1_000_000


def write(
    log: Log, producer_id: int, at_ms: int, sequence: int = 0, *, transactional: bool = False, origin: str = "client"
) -> bool:
    """A batch of a producer with this time; whether it was accepted, and not refused because of the limit."""
    batch = batch_of([b"v"], timestamps=[at_ms], producer=(producer_id, 0, sequence), transactional=transactional)
    before = log.log_end_offset
    try:
        append(log, batch, now_ms=at_ms, origin=origin)
    except KafkaError as error:
        code = error.code
    else:
        return True
    assert code == ErrorCode.POLICY_VIOLATION
    assert log.log_end_offset == before
    return False


@pytest.fixture
def log(tmp_path: Path) -> Log:
    log = open_log(tmp_path, BIG)
    log.max_producers = 3
    assert all(write(log, number, START_MS) for number in (1, 2, 3))
    return log


def test_another_one_is_refused_and_those_that_are_known_go_on(log: Log) -> None:
    assert not write(log, 4, START_MS + 1)
    assert write(log, 1, START_MS + 1, 1)
    assert append(log, batch_of([b"v"]))  # without a producer id


def test_who_is_idle_makes_room(log: Log) -> None:
    assert write(log, 1, START_MS + 1, 1)
    assert not write(log, 4, START_MS + IDLE_MS - 1)
    assert write(log, 4, START_MS + IDLE_MS + SWEEP_MS)
    assert write(log, 5, START_MS + IDLE_MS + SWEEP_MS)
    assert sorted(log.producers.producers) == [4, 5]


def test_idle_ones_are_looked_for_once_a_second(log: Log) -> None:
    """A producer that is refused again and again costs nothing."""
    assert not write(log, 4, START_MS + IDLE_MS - 1)
    assert not write(log, 4, START_MS + IDLE_MS)
    assert write(log, 4, START_MS + IDLE_MS - 1 + SWEEP_MS)


def test_an_open_transaction_is_not_forgotten(tmp_path: Path) -> None:
    log = open_log(tmp_path, BIG)
    log.max_producers = 1
    assert write(log, 1, START_MS, transactional=True)
    assert not write(log, 2, START_MS + 2 * IDLE_MS)
    append_marker(log, commit=True, producer_id=1)
    assert write(log, 2, START_MS + 3 * IDLE_MS)


def test_what_is_in_the_log_is_loaded_and_what_a_leader_has_accepted_is_taken(log: Log) -> None:
    assert write(log, 4, START_MS, origin="replication")
    again = restart(log)
    again.max_producers = 2
    assert sorted(again.producers.producers) == [1, 2, 3, 4]
    assert write(again, 4, START_MS, 1)
