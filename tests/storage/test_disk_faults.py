"""Any one file operation of a log fails: the state in memory equals the file, now and after any restart."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from random import Random

import pytest

from barnabas.storage import layout
from barnabas.storage.log import Log
from barnabas.storage.segments.txn_index import AbortedTransaction
from barnabas.wire.errors import ErrorCode, KafkaError
from tests.support.disks.broken import require
from tests.support.disks.faulty_disk import OPERATIONS, Fault, FaultyDisk
from tests.support.logs.log_driver import (
    append,
    append_marker,
    batch_of,
    kill,
    open_log,
    restart,
    small_config,
    values_from,
)
from tests.support.volume import first_seed, how_many

FAULTS = how_many("BARNABAS_FAULTS", 200)
CONFIG = {"segment_bytes": 450, "index_interval_bytes": 100}


def steps() -> list[Callable[[Log], object]]:
    """Three producers, one of them with aborted transactions, in several leader epochs, over several segments."""
    actions: list[Callable[[Log], object]] = []
    for at in range(6):
        data = {"producer": (1, 0, 2 * at), "transactional": True}
        actions += [
            lambda log, data=data, at=at: append(log, batch_of([b"t%d" % at, b"u"], **data), leader_epoch=at // 2),
            lambda log, at=at: append(log, batch_of([b"i%d" % at], producer=(2, 0, at)), leader_epoch=at // 2),
            lambda log, at=at: append(log, batch_of([b"p%d" % at]), leader_epoch=at // 2),
            lambda log, at=at: append_marker(log, commit=at % 2 == 0, producer_id=1),
            lambda log, at=at: log.flush(data_only=at % 2 == 0),
        ]
    actions.insert(22, _delete_records)
    return actions


def _delete_records(log: Log) -> None:
    log.high_watermark = log.log_end_offset
    log.advance_log_start_offset(10)
    log.delete_segments_below(10)


State = tuple[list[tuple[int, bytes | None]], list[AbortedTransaction], list[tuple[int, int]], object]


def state_of(log: Log) -> State:
    """Records, aborted transactions, leader epochs with records, and producers."""
    producers = {
        producer_id: (entry.producer_epoch, entry.last_sequence, entry.current_txn_first_offset)
        for producer_id, entry in log.producers.producers.items()
    }
    start, end = log.log_start_offset, log.log_end_offset
    aborted = log.aborted_transactions(start, end)
    epochs = [(epoch, first) for epoch, first in log.leader_epochs.entries() if first < end]
    return values_from(log, start), aborted, epochs, producers


def open_faulty() -> tuple[FaultyDisk, Log]:
    disk = FaultyDisk({})
    return disk, open_log("/data", small_config(**CONFIG), disk)


def faults() -> Iterator[Fault]:
    disk, log = open_faulty()
    disk.arm()
    for step in steps():
        step(log)
    for error in OPERATIONS:
        for number in range(1, disk.counts[error] + 1):
            for is_sticky in (False, True):
                yield Fault(number, error, is_sticky)


def check(fault: Fault, expected: list[State]) -> None:
    """All steps with a fault; a refused step has changed nothing, and is repeated once the disk works again.

    After a fault that stays the log is stopped cleanly and opened again before that.
    """
    disk, log = open_faulty()
    disk.arm(fault)
    for at, step in enumerate(steps()):
        try:
            step(log)
        except (KafkaError, OSError) as error:
            code = error.code if isinstance(error, KafkaError) else ErrorCode.KAFKA_STORAGE_ERROR
            require(bool(disk.failed) and code == ErrorCode.KAFKA_STORAGE_ERROR, repr(error))
            disk.heal()
            log = restart(log) if fault.is_sticky else log
            assert state_of(log) in expected[at : at + 1 + (step is _delete_records)], step
            step(log)
    disk.heal()
    assert state_of(log) == expected[-1]
    for stop in (kill, restart, kill):
        log = stop(log)
        assert state_of(log) == expected[-1], stop


def test_a_log_does_not_depend_on_a_failed_operation() -> None:
    """Operations and errors, only once or from then on; `BARNABAS_FAULTS=10000` tries each."""
    _, log = open_faulty()
    expected = [state_of(log)]
    for step in steps():
        step(log)
        expected.append(state_of(log))
    assert len(expected[-1][1]) == 2  # the log start has removed the first of three aborted transactions
    failures = []
    every = list(faults())
    assert len(every) > 600
    tried = Random(first_seed()).sample(every, min(FAULTS, len(every)))
    for fault in tried:
        try:
            check(fault, expected)
        except Exception as error:
            failures.append(f"{fault}: {type(error).__name__}: {str(error)[:300]}")
    assert not failures, f"{len(failures)} of {len(tried)}:\n" + "\n".join(failures[:10])


def test_a_segment_whose_roll_has_failed_is_not_on_the_disk() -> None:
    """A batch that fits is appended to the old segment next: a file at its offset would end the log at a start."""
    disk, log = open_faulty()
    for at in range(4):
        append(log, batch_of([bytes(80)], producer=(1, 0, at)))
    count = len(log.segments)
    disk.arm()
    size = len(batch_of([bytes(300)]))
    assert log.segments.active.size + size > 450
    for number in range(1, 30):
        disk.arm(Fault(number, "EIO"))
        with pytest.raises(KafkaError):
            append(log, batch_of([bytes(300)]))
        disk.heal()
        if len(log.segments) > count:
            break
        if disk.failed[-1].startswith("size"):
            append(log, batch_of([b"small"]))
            end = log.log_end_offset
            assert [offset for offset, _ in values_from(restart(log), 0)] == list(range(end))
            return
    raise AssertionError("the size of the new segment was not asked for")


def test_what_a_deletion_has_left_is_deleted_by_the_next() -> None:
    """L5: the segments in memory are those on the disk, whichever rename fails."""
    failed = 0
    for number in range(1, 30):
        disk, log = open_faulty()
        for at in range(12):
            append(log, batch_of([bytes(80)], producer=(1, 0, at)))
        log.flush()
        log.high_watermark = log.log_end_offset
        log.advance_log_start_offset(9)
        disk.arm(Fault(number, "EIO"))
        try:
            log.delete_segments_below(9)
        except OSError:
            pass
        disk.heal()
        failed += len(disk.failed)
        on_disk = [name for name, _ in disk.list_files(log.directory) if name.endswith(layout.LOG_SUFFIX)]
        assert sorted(on_disk) == [
            layout.segment_name(segment.base_offset, layout.LOG_SUFFIX) for segment in log.segments
        ]
        log.delete_segments_below(9)
        assert log.segments[1].base_offset > 9
    assert failed > 8
