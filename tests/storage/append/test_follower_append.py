"""A follower's log: byte for byte its leader's, whatever slices it receives (R1, R2, R5, R24, I5, I7)."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from barnabas.storage.append.follower_append import UnexpectedOffset
from barnabas.storage.log import Log
from barnabas.storage.recover.truncation import Truncation
from barnabas.wire.errors import ErrorCode, KafkaError
from tests.storage.producers.producer_driver import full_replay, snapshot_fields
from tests.support.logs.log_driver import (
    PROPERTY,
    append,
    append_marker,
    batch_of,
    kill,
    open_log,
    restart,
    small_config,
    truncate,
)

STEPS = st.lists(
    st.tuples(st.integers(1, 3), st.sampled_from(["send", "send", "plain", "begin", "commit", "abort", "epoch"])),
    min_size=1,
    max_size=30,
)


class _Leader:
    """A leader's log with producers, transactions and leader epochs."""

    def __init__(self, directory: Path) -> None:
        self.log = open_log(directory, small_config(segment_bytes=700))
        self.epoch = 0
        self._sequences: dict[int, int] = {}
        self._open: set[int] = set()

    def do(self, producer_id: int, step: str) -> None:
        """Append what the step says."""
        if step == "epoch":
            self.epoch += producer_id
        elif step == "plain":
            append(self.log, batch_of([b"v" * producer_id] * producer_id), leader_epoch=self.epoch)
        elif step in ("commit", "abort"):
            append_marker(self.log, commit=step == "commit", producer_id=producer_id)
            self._open.discard(producer_id)
        else:
            if step == "begin":
                self._open.add(producer_id)
            sequence = self._sequences.get(producer_id, 0)
            self._sequences[producer_id] = sequence + 1
            batch = batch_of([b"v"], producer=(producer_id, 0, sequence), transactional=producer_id in self._open)
            append(self.log, batch, leader_epoch=self.epoch)


def content(log: Log) -> bytes:
    """All bytes of a log."""
    return b"".join(segment.read_bytes(0, segment.size) for segment in log.segments)


def follow(follower: Log, leader: Log, sizes: list[int]) -> None:
    """Fetch slices of these sizes, in rotation, until the follower has everything."""
    at = 0
    while follower.log_end_offset < leader.log_end_offset:
        size = sizes[at % len(sizes)]
        at += 1
        read = leader.read(follower.log_end_offset, size, limit_offset=leader.log_end_offset, min_one_batch=True)
        assert read.slice is not None
        before = follower.log_end_offset
        follower.append_as_follower(memoryview(read.slice.read()), now=0.0)
        assert follower.log_end_offset > before, "a response has at least one whole batch"


def aborted(log: Log) -> list[tuple[int, ...]]:
    """Everything in the indexes of aborted transactions."""
    return [tuple(entry) for entry in log.aborted_transactions(0, log.log_end_offset)]


@PROPERTY
@given(STEPS, st.lists(st.integers(1, 900), min_size=1, max_size=5))
def test_a_follower_is_byte_equal_with_its_leader(
    tmp_path_factory: pytest.TempPathFactory, steps: list[tuple[int, str]], sizes: list[int]
) -> None:
    """R1, R2, I5: bytes, leader epochs, producers and aborted transactions, also after a kill and after a stop."""
    directory = tmp_path_factory.mktemp("follower")
    leader = _Leader(directory / "leader")
    follower = open_log(directory / "follower", small_config(segment_bytes=450))
    for producer_id, step in steps:
        leader.do(producer_id, step)
    follow(follower, leader.log, sizes)
    for log in (follower, kill(follower), restart(follower)):
        assert content(log) == content(leader.log)
        assert log.log_end_offset == leader.log.log_end_offset
        assert log.leader_epochs.entries() == leader.log.leader_epochs.entries()
        assert snapshot_fields(log.producers) == snapshot_fields(leader.log.producers) == full_replay(leader.log)
        assert aborted(log) == aborted(leader.log)
        assert log.producers.first_undecided_durable is None or log.producers.first_undecided_durable >= 0


@PROPERTY
@given(STEPS, STEPS, st.integers(0, 100))
def test_a_truncation_leaves_what_was_there_before(
    tmp_path_factory: pytest.TempPathFactory, first: list[tuple[int, str]], second: list[tuple[int, str]], cut: int
) -> None:
    """R2, R5, I7: after a truncation everything is as if the truncated batches had never been, then goes on."""
    directory = tmp_path_factory.mktemp("truncated")
    leader = _Leader(directory / "leader")
    other = _Leader(directory / "other")
    follower = open_log(directory / "follower", small_config(segment_bytes=450))
    for producer_id, step in first:
        leader.do(producer_id, step)
    follow(follower, leader.log, [300])
    starts = [header.base_offset for segment in leader.log.segments for header in segment.scan(0)]
    offset = starts[cut * (len(starts) - 1) // 100] if starts else 0
    if offset:
        bytes_before = b"".join(segment.read_bytes(0, segment.size) for segment in leader.log.segments)
        end = next(at for at, start in _positions(leader.log) if start == offset)
        other.log.append_as_follower(memoryview(bytes_before[:end]), now=0.0)
    other.epoch = leader.epoch + 1
    truncate(follower, offset)
    _assert_equal(follower, other.log)
    _assert_equal(kill(follower), other.log)
    for producer_id, step in second:
        other.do(producer_id + 3, step)
    follow(follower, other.log, [200])
    _assert_equal(follower, other.log)
    _assert_equal(kill(follower), other.log)
    _assert_equal(restart(follower), other.log)


def _positions(log: Log) -> list[tuple[int, int]]:
    """(position in the whole log, base offset) of each batch."""
    positions, base = [], 0
    for segment in log.segments:
        positions += [(base + header.position, header.base_offset) for header in segment.scan(0)]
        base += segment.size
    return positions


def _assert_equal(log: Log, expected: Log) -> None:
    assert content(log) == content(expected)
    assert log.log_end_offset == expected.log_end_offset
    assert log.leader_epochs.entries() == expected.leader_epochs.entries()
    assert snapshot_fields(log.producers) == full_replay(expected)
    assert aborted(log) == aborted(expected)


def _slice(directory: Path, batches: int = 3) -> tuple[Log, bytes]:
    leader = open_log(directory / "leader", small_config(segment_bytes=1 << 20))
    for number in range(batches):
        append(leader, batch_of([b"v%d" % number] * 2), leader_epoch=number)
    return leader, content(leader)


def test_what_the_network_damages_is_refused_and_changes_nothing(tmp_path: Path) -> None:
    """A wrong CRC, a wrong length, another magic."""
    _, data = _slice(tmp_path)
    follower = open_log(tmp_path / "follower")
    for at, code in ((len(data) - 1, ErrorCode.CORRUPT_MESSAGE), (16, ErrorCode.INVALID_RECORD)):
        broken = bytearray(data)
        broken[at] ^= 1
        with pytest.raises(KafkaError) as caught:
            follower.append_as_follower(memoryview(broken), now=0.0)
        assert caught.value.code == code
    broken = bytearray(data)
    broken[8:12] = (5).to_bytes(4, "big")
    with pytest.raises(KafkaError) as caught:
        follower.append_as_follower(memoryview(broken), now=0.0)
    assert caught.value.code == ErrorCode.CORRUPT_MESSAGE
    assert (follower.log_end_offset, follower.size_bytes, follower.leader_epochs.entries()) == (0, 0, [])


def test_offsets_must_not_go_back(tmp_path: Path) -> None:
    """The first batch has to begin at the log end or behind it, each further one behind the one before."""
    _, data = _slice(tmp_path)
    size = len(data) // 3
    follower = open_log(tmp_path / "follower")
    follower.append_as_follower(memoryview(data[:size]), now=0.0)
    with pytest.raises(UnexpectedOffset) as unexpected:
        follower.append_as_follower(memoryview(data), now=0.0)
    assert (unexpected.value.first_offset, unexpected.value.last_offset) == (0, 1)
    with pytest.raises(KafkaError) as caught:
        follower.append_as_follower(memoryview(data[2 * size :] + data[size : 2 * size]), now=0.0)
    assert caught.value.code == ErrorCode.INVALID_RECORD
    assert follower.log_end_offset == 2


def test_a_gap_of_a_compacted_leader_is_kept_over_a_crash(tmp_path: Path) -> None:
    """Compaction removes batches; the follower's active segment has the gap, and recovery must not cut there."""
    _, data = _slice(tmp_path)
    size = len(data) // 3
    follower = open_log(tmp_path / "follower", is_replica=True)
    appended = follower.append_as_follower(memoryview(data[:size] + data[2 * size :]), now=0.0)
    assert (appended.batches, follower.log_end_offset) == (2, 6)
    assert kill(follower, is_replica=True).log_end_offset == 6


def test_a_part_of_a_batch_is_left_out(tmp_path: Path) -> None:
    """A response may end within a batch; of a batch that is cut nothing is appended."""
    _, data = _slice(tmp_path)
    size = len(data) // 3
    follower = open_log(tmp_path / "follower")
    for end in (0, 5, size - 1):
        assert follower.append_as_follower(memoryview(data[:end]), now=0.0) == (0, 0)
    assert follower.append_as_follower(memoryview(data[: 2 * size + 20]), now=0.0) == (2 * size, 2)


def test_batches_larger_than_a_segment_are_written_in_pieces(tmp_path: Path) -> None:
    """A response may have more than segment.bytes, and a batch may have as well."""
    leader = open_log(tmp_path / "leader", small_config(segment_bytes=1 << 20))
    for number in range(10):
        append(leader, batch_of([b"v" * 60 * number] * 3))
    follower = open_log(tmp_path / "follower", small_config(segment_bytes=500))
    follower.append_as_follower(memoryview(content(leader)), now=0.0)
    assert content(follower) == content(leader)
    assert len(follower.segments) > 5


def test_offsets_too_far_apart_for_a_segment_begin_a_new_one(tmp_path: Path) -> None:
    """Index entries have 31 bits."""
    _, data = _slice(tmp_path, 2)
    size = len(data) // 2
    far = bytearray(data[size:])
    far[:8] = (2**33).to_bytes(8, "big")
    follower = open_log(tmp_path / "follower")
    follower.append_as_follower(memoryview(data[:size] + far), now=0.0)
    assert [segment.base_offset for segment in follower.segments] == [0, 2**33]
    assert follower.log_end_offset == 2**33 + 2


def test_a_full_truncation_starts_at_the_leaders_log_start(tmp_path: Path) -> None:
    """R24: nothing of the old log comes back, neither at once nor after a crash, and appends go on there."""
    follower = open_log(tmp_path, small_config(segment_bytes=200))
    for number in range(8):
        append(follower, batch_of([b"v"], producer=(1, 0, number)), leader_epoch=number)
    follower.flush()
    truncate(follower, 100, fully=True)
    for log in (follower, kill(follower)):
        assert (log.log_start_offset, log.high_watermark, log.log_end_offset) == (100, 100, 100)
        assert (log.leader_epochs.entries(), log.producers.producers, content(log)) == ([], {}, b"")
    batch = batch_of([b"v"])
    batch[:8] = (100).to_bytes(8, "big")
    follower.append_as_follower(memoryview(batch), now=0.0)
    assert kill(follower).log_end_offset == 101


def test_an_abandoned_truncation_changes_nothing(tmp_path: Path) -> None:
    """The partition may begin to lead before the log is cut."""
    log = open_log(tmp_path)
    append(log, batch_of([b"v"] * 5))
    append(log, batch_of([b"v"] * 5))
    log.flush()
    truncation = Truncation(log, 5)
    for wait in truncation.prepare():
        assert wait is None or wait() is None
    truncation.announce()
    assert log.recovery_point_to_write == 4
    truncation.abandon()
    assert (log.recovery_point_to_write, log.log_end_offset) == (10 - 1, 10)
