"""Moves between log directories at their edges: appends and kills at every step, compaction, damage (KIP-113)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from barnabas.broker.coordinators.replay import RECORD_COST, replay_log
from barnabas.broker.replicas.log_dirs.dir_moves import TELL_AGAIN_S
from barnabas.storage import layout
from barnabas.storage.directories.checkpoints import OffsetCheckpoint
from barnabas.wire.batches.records import RecordFields
from barnabas.wire.errors import ErrorCode as E
from barnabas.wire.messages.log_dirs import (
    AlterReplicaLogDir,
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirsResponse,
    AlterReplicaLogDirTopic,
)
from barnabas.wire.messages.produce import ProduceResponse
from tests.broker.moving import Moving
from tests.support.logs.cleaning_driver import clean, close_segment, put
from tests.support.memory.broker import batch
from tests.support.requests.fetch import append
from tests.support.requests.produce import answers, produce, to

ALWAYS = {"barnabas.log.sync": "always"}


def steps_of_a_move(moving: Moving) -> Iterator[int]:
    """Begin a move and do it one disk operation at a time; yields before each, and when it is done."""
    memory = moving.memory
    for executor in (memory.disk, memory.flushes):
        executor.is_paused = True
    target = moving.other()
    client = memory.client()
    topics = [AlterReplicaLogDirTopic(name="t", partitions=[0])]
    client.send(AlterReplicaLogDirsRequest(dirs=[AlterReplicaLogDir(path=target, topics=topics)]), 2)
    number = 0
    while moving.dir_of() != target or memory.disk.held:
        yield number
        number += 1
        if memory.disk.held:
            memory.run_disk()
        elif memory.flushes.held:
            memory.run_flush()
        else:
            memory.advance(0.1)
            memory.broker.loop.end_turn()
    yield number


def at_each_step(tmp_path: Path, make: Callable[[Path], Moving]) -> Iterator[Moving]:
    """A broker in the middle of a move, for each step of the move."""
    at, is_done = 0, False
    while not is_done:
        moving = make(tmp_path / str(at))
        is_done = True
        for number in steps_of_a_move(moving):
            if number == at:
                is_done = False
                break
        if not is_done:
            yield moving
        at += 1


def test_records_are_acknowledged_whenever_a_move_meets_them(tmp_path: Path) -> None:
    """With sync=always, a single record that is appended at any step of a move, and none after it that would help."""

    def make(path: Path) -> Moving:
        moving_broker = Moving(path, ALWAYS)
        moving_broker.memory.create_topic("t")
        append(moving_broker.memory, "t", b"a")
        return moving_broker

    count = 0
    for moving in at_each_step(tmp_path, make):
        memory = moving.memory
        client = memory.client()
        client.send(produce(to(0, batch(b"b")), topic="t"), 9)
        for _ in range(20):
            memory.run_all()
            memory.advance(0.1)
            memory.broker.loop.end_turn()
        (response,) = client.answers()
        assert isinstance(response, ProduceResponse)
        assert answers(response)[0].error_code == 0, f"at step {count}"
        assert memory.broker.partitions.get("t", 0).log.high_watermark == 2
        memory.broker.log_dirs.release()
        count += 1
    assert count > 10


def test_a_move_ends_while_records_are_appended(tmp_path: Path) -> None:
    """Flushes are held back for it: else the log would always have something durable that the copy has not."""
    moving = Moving(tmp_path, ALWAYS)
    memory = moving.memory
    memory.create_topic("t")
    client = memory.client()
    for number in steps_of_a_move(moving):
        assert number < 100
        client.send(produce(to(0, batch(b"%d" % number)), topic="t"), 9)
        if memory.flushes.held:
            memory.run_flush()
        answered = len(client.answers())
    for executor in (memory.disk, memory.flushes):
        executor.is_paused = False
    memory.run_all()
    assert answered + len(client.answers()) > 0
    memory.close()


def test_a_compacted_log_is_whole_after_a_kill_at_any_step(tmp_path: Path) -> None:
    """Its closed segments have gaps, which are in the last segment of the copy; at its end records are gone."""

    def make(path: Path) -> Moving:
        moving_broker = Moving(path, {"log.cleanup.policy": "compact", "log.cleaner.delete.retention.ms": "0"})
        moving_broker.memory.create_topic("t")
        log = moving_broker.memory.broker.partitions.get("t", 0).log
        for number in range(12):
            put(log, (b"%d" % (number % 4), b"%d" % number))
        put(log, (b"gone", None))
        close_segment(log)
        clean(log)
        clean(log, checkpoint=0, now_ms=10**13)
        close_segment(log)
        return moving_broker

    count = 0
    for moving in at_each_step(tmp_path, make):
        moving.memory.broker.log_dirs.release()
        moving.start()
        log = moving.memory.broker.partitions.get("t", 0).log
        assert (log.log_end_offset, moving.read()) == (13, [b"8", b"9", b"10", b"11"]), f"at step {count}"
        moving.memory.broker.log_dirs.release()
        count += 1
    assert count > 10


def test_nothing_is_copied_while_the_log_is_cleaned(moving: Moving) -> None:
    """Else the copy would have what the cleaning removes, below the offset up to which it counts as clean."""
    log = moving.memory.broker.partitions.get("t", 0).log
    log.is_cleaning = True
    target = moving.other()
    assert moving.alter(target) == E.NONE
    moving.settle()
    assert moving.memory.broker.log_dirs.futures.logs["t", 0].log.log_end_offset == 0
    log.is_cleaning = False
    moving.settle()
    assert moving.dir_of() == target


def test_a_coordinator_that_loads_reads_on_in_the_new_directory(moving: Moving) -> None:
    partition = moving.memory.broker.partitions.get("t", 0)
    seen: list[bytes | None] = []

    def replay(record: RecordFields) -> int:
        seen.append(record[3])
        return RECORD_COST

    counts = replay_log(partition, lambda _: replay)
    next(counts)
    target = moving.other()
    moving.alter(target)
    moving.settle()
    assert moving.dir_of() == target
    append(moving.memory, "t", b"c")
    assert list(counts)[-1] == 3
    assert seen == [b"a", b"b", b"c"]


def test_a_flush_that_was_requested_in_the_former_directory_is_not_begun_there(tmp_path: Path) -> None:
    """It may sync the whole file system, and the new directory is on another one."""
    moving = Moving(tmp_path, ALWAYS)
    memory = moving.memory
    memory.create_topic("t")
    policy = memory.broker.partitions.get("t", 0).flush_policy
    assert policy is not None
    memory.flushes.is_paused = True
    client = memory.client()
    client.connection.receive(memoryview(bytearray(client.frame(produce(to(0, batch(b"a")), topic="t"), 9))), 0.0)
    requested = []
    policy.release(requested.append)
    memory.broker.loop.end_turn()
    assert requested == [policy]
    assert memory.flushes.held == []
    memory.broker.log_dirs.release()


def test_a_replica_that_is_named_twice_is_answered_once(moving: Moving) -> None:
    topics = [AlterReplicaLogDirTopic(name="t", partitions=[0])]
    target = moving.other()
    dirs = [AlterReplicaLogDir(path=path, topics=topics) for path in ("/nowhere", target)]
    response = moving.memory.client().ask(AlterReplicaLogDirsRequest(dirs=dirs), 2, AlterReplicaLogDirsResponse)
    assert [part.error_code for part in response.results[0].partitions] == [0]
    moving.settle()
    assert moving.dir_of() == target


def recovery_points(moving: Moving, path: str) -> dict[tuple[str, int], int]:
    files = moving.memory.broker.partitions.get("t", 0).log.files
    return OffsetCheckpoint(files, f"{path}/{layout.RECOVERY_POINT_CHECKPOINT}").read()


def test_the_offsets_of_a_copy_that_was_given_up_are_not_those_of_the_next(moving: Moving) -> None:
    """They would say of the new copy that more of it is durable than there is."""
    current, target = moving.dir_of(), moving.half_moved()
    moving.memory.close()
    moving.start()
    moving.memory.broker.log_dirs.write_checkpoint(layout.RECOVERY_POINT_CHECKPOINT)
    assert recovery_points(moving, target)["t", 0] > 0
    assert moving.alter(current) == E.NONE
    assert moving.alter(target) == E.NONE
    moving.settle(0.5)
    assert recovery_points(moving, target).get(("t", 0), 0) == 0
    moving.throttle(None)
    moving.settle()
    assert moving.described() == [(target, False, 0)]


def future_dir(moving: Moving, target: str) -> Path:
    (name,) = [name for name in moving.names(target) if name.endswith(layout.FUTURE_DIR_SUFFIX)]
    return Path(target) / name


def test_a_damaged_copy_is_made_again(moving: Moving, caplog: pytest.LogCaptureFixture) -> None:
    target = moving.half_moved()
    moving.memory.close()
    (future_dir(moving, target) / f"{0:020d}.log").write_bytes(b"")
    moving.start()
    assert "begins again" in caplog.text
    moving.throttle(None)
    moving.settle()
    assert moving.described() == [(target, False, 0)]
    assert len(moving.read()) == 22


def test_the_copy_of_a_former_topic_of_that_name_is_removed(moving: Moving) -> None:
    current, target = moving.dir_of(), moving.half_moved()
    moving.memory.close()
    (future_dir(moving, target) / layout.PARTITION_METADATA).write_text(
        "version: 0\ntopic_id: AAAAAAAAAAAAAAAAAAAAAQ\n"
    )
    moving.start()
    moving.throttle(None)
    moving.settle()
    assert moving.described() == [(current, False, 0)]
    assert all(name.endswith(layout.DELETE_DIR_SUFFIX) for name in moving.names(target))


def test_a_damaged_partition_leaves_no_former_directory_that_it_could_be_made_in(moving: Moving) -> None:
    """A follower's damaged log is made anew and filled by its leader, in any directory (L2)."""
    former, target = moving.dir_of(), moving.other()
    moving.alter(target)
    moving.settle(1)
    assert "t-0" in moving.names(former)
    moving.memory.broker.partitions.get("t", 0).fail("it is damaged")
    moving.memory.broker.loop.end_turn()
    assert "t-0" not in moving.names(former)
    assert "t-0" in moving.names(target)


def test_the_copy_of_a_damaged_partition_is_not_in_the_way_of_another(moving: Moving) -> None:
    target = moving.half_moved()
    moving.memory.broker.partitions.get("t", 0).fail("it is damaged")
    moving.settle()
    assert moving.memory.broker.log_dirs.futures.logs == {}
    assert future_dir(moving, target).exists()


def test_a_mark_of_an_earlier_move_does_not_count(moving: Moving) -> None:
    """There and back, then a crash before the last change of names: the log in use is the one that is found."""
    first, second = moving.dir_of(), moving.other()
    moving.alter(second)
    moving.settle(1)
    moving.alter(first)
    moving.settle(1)
    assert moving.dir_of() == first
    names = {path: (Path(path) / "t-0" / layout.MOVED).exists() for path in (first, second)}
    assert names == {first: True, second: False}


def test_the_controller_is_told_until_it_knows_that_a_replica_stays(
    moving: Moving, caplog: pytest.LogCaptureFixture
) -> None:
    """KIP-858: else the controller would take the directory of the abandoned copy for the replica's."""
    moves = moving.memory.broker.dir_moves
    current = moving.dir_of()
    reports: list[tuple[bytes, Callable[[E], None]]] = []
    moves._assign = lambda topic_id, index, directory, then: reports.append((directory, then))
    target = moving.other()
    assert moving.alter(target) == E.NONE
    moving.settle()
    ((copy, then),) = reports
    for executor in (moving.memory.disk, moving.memory.flushes):
        executor.is_paused = True
    then(E.NONE)  # the copy is about to take over
    assert moving.alter(current) == E.NONE
    moving.memory.run_all()
    (_, (original, then)) = reports
    assert original != copy
    then(E.REQUEST_TIMED_OUT)
    moving.memory.advance(TELL_AGAIN_S)
    assert [directory for directory, _ in reports] == [copy, original, original]
    assert "stays in its directory" in caplog.text
    reports[-1][1](E.NONE)
    moving.memory.advance(10 * TELL_AGAIN_S)
    assert len(reports) == 3
