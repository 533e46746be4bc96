"""Idempotent producers, compared with a naive model: repeats, gaps and epochs (I1-I4)."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from barnabas.wire.errors import ErrorCode, KafkaError
from tests.storage.producers.producer_driver import BIG, MAX, refused, send
from tests.support.logs.log_driver import (
    PROPERTY,
    open_log,
    restart,
)


def test_exact_repeat_is_answered_with_the_original_offset(tmp_path: Path) -> None:
    """I1: each of the last five batches may be repeated."""
    log = open_log(tmp_path, BIG)
    offsets = [send(log, sequence * 2, 2)[0] for sequence in range(7)]
    for at in range(2, 7):
        assert send(log, at * 2, 2) == (offsets[at], True)
    assert log.log_end_offset == 14


def test_repeat_older_than_five_batches_is_out_of_order(tmp_path: Path) -> None:
    """I2: as in Kafka, which never answers DUPLICATE_SEQUENCE_NUMBER."""
    log = open_log(tmp_path, BIG)
    for sequence in range(6):
        send(log, sequence)
    assert refused(log, 0) == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER


def test_gap_is_out_of_order(tmp_path: Path) -> None:
    """I2."""
    log = open_log(tmp_path, BIG)
    send(log, 0, 3)
    assert refused(log, 4) == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert refused(log, 2) == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert send(log, 3) == (3, False)


def test_sequences_wrap_after_the_greatest_int(tmp_path: Path) -> None:
    """I2: 2^31-1 is followed by 0, between batches and inside one."""
    log = open_log(tmp_path, BIG)
    send(log, MAX - 1)
    assert send(log, MAX, 3) == (1, False)
    assert refused(log, 1) == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert send(log, MAX, 3) == (1, True)
    assert send(log, 2) == (4, False)


def test_sequence_after_the_greatest_int_is_zero(tmp_path: Path) -> None:
    """I2: also when a batch ends exactly at the greatest int."""
    log = open_log(tmp_path, BIG)
    send(log, MAX - 1, 2)
    assert refused(log, 1) == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert send(log, 0, 2) == (2, False)


def test_wrapped_batch_is_known_after_a_restart(tmp_path: Path) -> None:
    """I2, I5: the snapshot keeps only the last sequence; the first one wraps backwards."""
    log = open_log(tmp_path, BIG)
    send(log, MAX - 1, 4)
    log = restart(log)
    assert send(log, MAX - 1, 4) == (0, True)
    assert send(log, 2) == (4, False)


def test_new_epoch_starts_at_zero(tmp_path: Path) -> None:
    """I3."""
    log = open_log(tmp_path, BIG)
    send(log, 0, 3)
    assert refused(log, 3, epoch=1) == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert send(log, 0, epoch=1) == (3, False)
    assert refused(log, 3, epoch=0) == ErrorCode.INVALID_PRODUCER_EPOCH
    assert send(log, 1, epoch=1) == (4, False)


def test_new_epoch_forgets_the_batches_of_the_old_one(tmp_path: Path) -> None:
    """I3: the same sequences under a new epoch are new batches, and their repeats get the new offsets."""
    log = open_log(tmp_path, BIG)
    for sequence in range(3):
        send(log, sequence)
    for sequence in range(3):
        assert send(log, sequence, epoch=1) == (3 + sequence, False)
    for sequence in range(3):
        assert send(log, sequence, epoch=1) == (3 + sequence, True)


def test_unknown_producer_may_start_anywhere(tmp_path: Path) -> None:
    """I4: its state may have been deleted with its records."""
    log = open_log(tmp_path, BIG)
    assert send(log, 41) == (0, False)
    assert refused(log, 43) == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER


def test_producers_and_partitions_are_independent(tmp_path: Path) -> None:
    log = open_log(tmp_path, BIG)
    send(log, 0, producer_id=1)
    assert send(log, 0, producer_id=2) == (1, False)
    assert send(log, 0, producer_id=1) == (0, True)


@PROPERTY
@given(
    st.lists(st.tuples(st.integers(0, 1), st.sampled_from([0, 1]), st.integers(-7, 2), st.integers(1, 3)), max_size=40),
    st.sampled_from([0, 5, MAX - 4]),
)
def test_answers_equal_the_model(
    tmp_path_factory: pytest.TempPathFactory, attempts: list[tuple[int, int, int, int]], start: int
) -> None:
    """I1-I4: a model that keeps all batches of each producer as a list."""
    log = open_log(tmp_path_factory.mktemp("producers"), BIG)
    epochs: dict[int, int] = {}
    batches: dict[int, list[tuple[int, int, int]]] = {1: [], 2: []}
    for producer, epoch, step, count in attempts:
        producer_id = producer + 1
        known = batches[producer_id] if epochs.get(producer_id) == epoch else []
        following = (known[-1][1] + 1) % (MAX + 1) if known else (start if producer_id not in epochs else 0)
        first = (following + step) % (MAX + 1) if known else following + max(step, 0)
        last = (first + count - 1) % (MAX + 1)
        end = log.log_end_offset
        repeat = next((entry[2] for entry in known[-5:] if entry[:2] == (first, last)), None)
        if repeat is not None:
            expected: object = (repeat, True)
        elif epoch < epochs.get(producer_id, -1):
            expected = ErrorCode.INVALID_PRODUCER_EPOCH
        elif first != following and producer_id in epochs:
            expected = ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
        else:
            expected = (end, False)
            epochs[producer_id] = epoch
            batches[producer_id] = [*known, (first, last, end)]
        try:
            outcome: object = send(log, first, count, producer_id=producer_id, epoch=epoch)
        except KafkaError as error:
            outcome = error.code
        assert outcome == expected
