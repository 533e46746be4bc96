"""A follower's fetcher: sessions, truncation until both agree, errors with backoff, flushes before fetches."""

from __future__ import annotations

import errno
from pathlib import Path
from typing import Any

import pytest

from barnabas.broker.replicas.flush.flusher import Flusher
from barnabas.storage.log import Log
from barnabas.wire.errors import ErrorCode
from tests.broker.replicas.following import FOLLOWER, LEADER, FakeLeader, Following
from tests.support.cases import for_each
from tests.support.logs.log_driver import append, batch_of, open_log, small_config, truncate


def content(log: Log) -> bytes:
    """All bytes of a log."""
    return b"".join(segment.read_bytes(0, segment.size) for segment in log.segments)


def fill(log: Log, count: int, epoch: int = 0, *, value: bytes = b"v") -> None:
    """Append batches of two records."""
    for _ in range(count):
        append(log, batch_of([value] * 2), leader_epoch=epoch)


def leader_of(directory: Path, count: int = 1, **changes: object) -> FakeLeader:
    """A leader with empty logs."""
    return FakeLeader(
        {index: open_log(directory / f"leader-{index}", small_config(**changes)) for index in range(count)}
    )


def test_a_follower_becomes_equal_and_follows_the_high_watermark(tmp_path: Path) -> None:
    """R1, R4, R8: the fetch offset acknowledges; the high watermark is the leader's, at most the own end."""
    leader = leader_of(tmp_path)
    fill(leader.logs[0], 10)
    leader.high_watermark = 100
    following = Following(tmp_path, leader)
    following.follow()
    following.run()
    assert content(following.log) == content(leader.logs[0])
    assert following.log.high_watermark == 20
    request = leader.requests[-1]
    assert (request.replica_state.replica_id, request.replica_state.replica_epoch) == (FOLLOWER, 42)
    assert request.topics[0].partitions[0].fetch_offset == 20
    assert request.topics[0].partitions[0].last_fetched_epoch == 0


def test_a_session_names_only_what_has_changed(tmp_path: Path) -> None:
    """R20: the first request is full; then only partitions whose offset has changed, and removed ones once."""
    leader = leader_of(tmp_path, 5)
    following = Following(tmp_path, leader, 5)
    following.follow()
    following.run()
    fill(leader.logs[3], 1)
    following.run()
    named = [
        [partition.partition for topic in request.topics for partition in topic.partitions]
        for request in leader.requests
    ]
    assert named == [[0, 1, 2, 3, 4], [], [3]]
    following.fetcher.remove(following.fetcher.partitions[next(iter(following.fetcher.partitions))].key)
    leader.answer(even_if_empty=True)
    following.run()
    forgotten = leader.requests[-1].forgotten_topics_data
    assert [partition.partitions for partition in forgotten] == [[0]]


def test_a_log_that_is_opened_again_before_the_next_request_begins_a_new_session(tmp_path: Path) -> None:
    """The leader does not repeat the high watermark, which the log that was opened again has from its checkpoint."""
    leader = leader_of(tmp_path)
    following = Following(tmp_path, leader)
    following.follow()
    following.run()
    (key,) = following.fetcher.partitions
    following.fetcher.remove(key)
    leader.answer(even_if_empty=True)
    following.run()
    count = len(leader.requests)
    following.fetcher.add(following.partitions[0])
    following.run()
    assert leader.requests[count].session_epoch == 0


@pytest.mark.parametrize("code", [ErrorCode.FETCH_SESSION_ID_NOT_FOUND, ErrorCode.INVALID_FETCH_SESSION_EPOCH])
def test_an_error_of_the_session_begins_a_new_one(tmp_path: Path, code: ErrorCode) -> None:
    """R20: a full request at once; it closes the old session unless the leader has none."""
    leader = leader_of(tmp_path, 2)
    following = Following(tmp_path, leader, 2)
    following.follow()
    following.run()
    leader.errors = [code]
    fill(leader.logs[1], 1)
    following.run()
    request = next(received for received in reversed(leader.requests) if received.session_epoch == 0)
    assert request.session_id == (0 if code == ErrorCode.FETCH_SESSION_ID_NOT_FOUND else 77)
    assert len(request.topics[0].partitions) == 2
    assert following.partitions[1].log.log_end_offset == 2


def test_a_leader_without_sessions_is_told_everything(tmp_path: Path) -> None:
    """Session id 0 in the answer: every request is full."""
    leader = leader_of(tmp_path, 3)
    leader.keeps_sessions = False
    fill(leader.logs[0], 1)
    following = Following(tmp_path, leader, 3)
    following.follow()
    for _ in range(3):
        following.turn()
        leader.answer()
    assert all(len(request.topics[0].partitions) == 3 for request in leader.requests)
    assert following.log.log_end_offset == 2


def diverged(
    directory: Path, own: list[tuple[int, int]], leaders: list[tuple[int, int]]
) -> tuple[Following, FakeLeader]:
    """Two logs, each as (batches, epoch); batches of equal number and epoch at the beginning are the same."""
    leader = leader_of(directory, segment_bytes=300)
    following = Following(directory, leader)
    for count, epoch in leaders:
        fill(leader.logs[0], count, epoch, value=b"leader")
    common = 0
    for (count, epoch), (other, other_epoch) in zip(own, leaders, strict=False):
        if epoch != other_epoch:
            break
        common += min(count, other)
        if count != other:
            break
    size = len(content(leader.logs[0])) // max(1, sum(count for count, _ in leaders)) * common
    if size:
        following.log.append_as_follower(memoryview(content(leader.logs[0])[:size]), now=0.0)
    skip = common
    for count, epoch in own:
        taken = min(skip, count)
        skip -= taken
        fill(following.log, count - taken, epoch, value=b"nobody")
    leader.epoch = max(epoch for _, epoch in own + leaders) + 1
    leader.logs[0].leader_epochs.assign(leader.epoch, leader.logs[0].log_end_offset)
    following.set_role(following.partitions[0], LEADER, leader.epoch)
    return following, leader


@for_each(
    ("own", "leaders"),
    [
        ([(5, 0)], [(3, 0)]),
        ([(5, 0)], [(5, 0), (2, 1)]),
        ([(5, 0), (3, 1)], [(5, 0), (2, 2)]),
        ([(5, 0), (3, 1)], [(4, 0), (6, 2)]),
        ([(2, 0), (2, 1), (4, 3)], [(2, 0), (6, 2)]),
        ([(2, 0), (2, 1), (2, 3), (2, 5)], [(2, 0), (1, 1), (3, 2), (2, 4), (1, 6)]),
        ([(4, 1)], [(4, 2)]),
    ],
    ids=["longer", "behind", "other epoch", "both", "two rounds", "interleaved", "nothing in common"],
)
def test_a_follower_truncates_until_both_agree(
    tmp_path: Path, own: list[tuple[int, int]], leaders: list[tuple[int, int]]
) -> None:
    """R5: the divergence cases; repeated until the follower's log is a prefix, then it becomes equal."""
    following, leader = diverged(tmp_path, own, leaders)
    following.follow()
    following.run()
    assert content(following.log) == content(leader.logs[0])
    assert following.log.leader_epochs.entries() == leader.logs[0].leader_epochs.entries()[:-1]


def test_an_epoch_in_which_nothing_was_appended_is_forgotten(tmp_path: Path) -> None:
    """A leader that had just begun its epoch and follows now: only the epoch is truncated (Kafka's truncateTo)."""
    leader = leader_of(tmp_path)
    fill(leader.logs[0], 2)
    following = Following(tmp_path, leader)
    following.log.append_as_follower(memoryview(content(leader.logs[0])), now=0.0)
    following.log.leader_epochs.assign(3, 4)
    leader.epoch = 4
    fill(leader.logs[0], 1, 4)
    following.set_role(following.partitions[0], LEADER, 4)
    following.follow()
    following.run()
    assert content(following.log) == content(leader.logs[0])
    assert following.log.leader_epochs.entries() == [(0, 0), (4, 4)]


def test_the_recovery_point_is_lowered_before_the_log_is_truncated(tmp_path: Path) -> None:
    """L2: a crash in between must not look like damage."""
    following, _ = diverged(tmp_path, [(5, 0)], [(3, 0)])
    following.log.flush()
    following.follow()
    following.run()
    assert following.failures.checkpoints == [("recovery-point-offset-checkpoint", 5)]


def test_a_refused_checkpoint_postpones_the_truncation(tmp_path: Path) -> None:
    """A full disk: nothing is truncated, and it is tried again."""
    following, leader = diverged(tmp_path, [(5, 0)], [(3, 0)])
    following.failures.refuses = True
    following.follow()
    following.run()
    assert following.log.log_end_offset == 10
    following.failures.refuses = False
    following.run(5.0)
    assert content(following.log) == content(leader.logs[0])


def test_a_follower_below_the_leaders_start_begins_there(tmp_path: Path) -> None:
    """R24: everything is removed; the log continues at the leader's log start."""
    leader = leader_of(tmp_path, segment_bytes=200)
    fill(leader.logs[0], 10)
    leader.logs[0].high_watermark = leader.high_watermark = 20
    following = Following(tmp_path, leader)
    following.log.append_as_follower(memoryview(content(leader.logs[0])[: len(content(leader.logs[0])) // 10]), now=0)
    leader.logs[0].advance_log_start_offset(12)
    leader.logs[0].delete_segments_below(12)
    following.follow()
    following.run(1.0)
    assert (following.log.log_start_offset, following.log.log_end_offset) == (12, 20)


def test_a_leaders_start_within_a_batch(tmp_path: Path) -> None:
    """R24: DeleteRecords has moved the leader's start into a batch, with which the follower's log begins."""
    leader = leader_of(tmp_path)
    append(leader.logs[0], batch_of([b"v"] * 10))
    leader.logs[0].high_watermark = leader.high_watermark = 10
    leader.logs[0].advance_log_start_offset(5)
    following = Following(tmp_path, leader)
    following.follow()
    following.run(1.0)
    assert content(following.log) == content(leader.logs[0])
    assert (following.log.log_start_offset, following.log.log_end_offset) == (5, 10)


def test_a_follower_above_the_leaders_end_truncates_there(tmp_path: Path) -> None:
    """R24: after an unclean election, when neither log has an epoch that would say so."""
    leader = leader_of(tmp_path)
    following = Following(tmp_path, leader)
    truncate(following.log, 50, fully=True)
    following.follow()
    following.run(1.0)
    assert (following.log.log_start_offset, following.log.log_end_offset) == (0, 0)


def test_the_leaders_log_start_is_followed(tmp_path: Path) -> None:
    """L5: as far as the high watermark of the follower; then it is persisted."""
    leader = leader_of(tmp_path)
    fill(leader.logs[0], 5)
    leader.logs[0].high_watermark = leader.high_watermark = 10
    following = Following(tmp_path, leader)
    following.follow()
    following.run()
    leader.logs[0].advance_log_start_offset(6)
    fill(leader.logs[0], 1)
    following.run()
    assert following.log.log_start_offset == 6
    assert following.persists > 0


@for_each("code", [6, 74, 75, 100, 3, 56, 2, 103])
def test_an_error_of_a_partition_delays_only_this_partition(tmp_path: Path, code: int) -> None:
    """The delay grows up to replica.fetch.backoff.ms; the other partition goes on."""
    leader = leader_of(tmp_path, 2)
    for log in leader.logs.values():
        fill(log, 1)
    leader.partition_errors = {0: [ErrorCode(code)] * 10}
    following = Following(tmp_path, leader, 2)
    following.follow()
    following.run(0.5)
    assert following.partitions[1].log.log_end_offset == 2
    assert 4 <= 10 - len(leader.partition_errors[0]) <= 6
    following.run(20.0)
    assert following.partitions[0].log.log_end_offset == 2


def test_an_unreachable_leader_is_asked_again_after_growing_delays(tmp_path: Path) -> None:
    """A failed connection delays everything of this leader; it never spins."""
    leader = leader_of(tmp_path)
    fill(leader.logs[0], 1)
    leader.is_unreachable = True
    following = Following(tmp_path, leader)
    following.follow()
    following.run(10.0)
    assert 10 <= len(leader.requests) <= 16
    leader.is_unreachable = False
    following.run(2.0)
    assert following.log.log_end_offset == 2


def test_damaged_records_are_fetched_again(tmp_path: Path) -> None:
    """A wrong CRC is no reason to stop; nothing of it gets into the log."""
    leader = leader_of(tmp_path)
    fill(leader.logs[0], 1)
    following = Following(tmp_path, leader)
    following.follow()
    following.turn()
    assert leader.waiting is not None
    request, then = leader.waiting
    leader.waiting = None
    response: Any = leader._fetch(request, even_if_empty=True)
    response.responses[0].partitions[0].records = memoryview(content(leader.logs[0])[:-1] + b"?")
    then(response)
    assert following.log.log_end_offset == 0
    following.run(1.0)
    assert content(following.log) == content(leader.logs[0])


def test_what_is_not_flushed_is_not_acknowledged(tmp_path: Path) -> None:
    """`sync=always`: the next fetch waits for the flush; another partition is fetched while the disk is slow."""
    leader = leader_of(tmp_path, 2)
    fill(leader.logs[0], 1)
    following = Following(tmp_path, leader, 2)
    always(following)
    following.disk.is_slow = True
    following.follow()
    following.turn()
    leader.answer()
    sent = len(leader.requests)
    following.turn()
    following.turn()
    assert following.log.log_end_offset == 2
    assert len(leader.requests) == sent, "a short flush is waited for"
    fill(leader.logs[1], 1)
    following.run(0.1)
    assert following.partitions[1].log.log_end_offset == 2
    assert offsets_in(leader) == {0}
    following.disk.is_slow = False
    following.run(1.0)
    assert offsets_in(leader) == {0, 2}


def offsets_in(leader: FakeLeader) -> set[int]:
    """The fetch offsets of all requests."""
    return {
        partition.fetch_offset
        for request in leader.requests
        for topic in request.topics
        for partition in topic.partitions
    }


def always(following: Following) -> None:
    """Flush every record before it is acknowledged."""
    log_dir: Any = type("Dir", (), {"failure": None, "path": "d", "sync": staticmethod(_sync)})()
    flusher = Flusher(following.loop, log_dir, following.failures, following.disk)  # type: ignore[arg-type]
    for partition in following.partitions:
        partition.apply_flush_policy("always", flusher)


def _sync(jobs: list[Any], *, whole_file_system: bool) -> None:
    for job in jobs:
        job.run()
        job.sync_directories()


def test_a_disk_that_fails_does_not_stop_the_fetcher(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The failure is reported; the other partition goes on."""
    leader = leader_of(tmp_path, 2)
    for log in leader.logs.values():
        fill(log, 1)
    following = Following(tmp_path, leader, 2)
    write_at = type(following.files).write_at

    def fails(files: Any, file: Any, data: Any, position: int) -> None:
        if "follower-0" in file.path and file.path.endswith(".log"):
            raise OSError(errno.EIO, "the disk is broken", file.path)
        write_at(files, file, data, position)

    monkeypatch.setattr(type(following.files), "write_at", fails)
    following.follow()
    following.run(1.0)
    assert "write" in following.failures.reported
    assert following.partitions[1].log.log_end_offset == 2


def test_a_truncation_is_given_up_when_the_broker_begins_to_lead(tmp_path: Path) -> None:
    """Until the log is cut nothing has happened."""
    following, _ = diverged(tmp_path, [(5, 0)], [(3, 0)])
    following.disk.is_slow = True
    following.log.segments.active.release()
    following.follow()
    following.turn()
    following.leader.answer()
    assert following.disk.waiting, "the lookup waits for the disk"
    following.fetcher.remove(next(iter(following.fetcher.partitions)))
    following.set_role(following.partitions[0], LEADER, following.leader.epoch + 1)
    following.disk.is_slow = False
    following.turn()
    assert following.log.log_end_offset == 10
    assert following.log.recovery_limit is None


def test_a_new_partition_does_not_wait_for_the_request_in_flight(tmp_path: Path) -> None:
    """The leader holds a request back for replica.fetch.wait.max.ms: a new partition interrupts it."""
    leader = leader_of(tmp_path, 2)
    following = Following(tmp_path, leader, 2)
    following.fetcher.add(following.partitions[0])
    following.run()
    fill(leader.logs[1], 1)
    following.fetcher.add(following.partitions[1])
    following.run(0.05)
    assert leader.disconnects == 1
    assert following.partitions[1].log.log_end_offset == 2


def test_interrupted_requests_are_no_failures_of_the_leader(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """Topics are created one after the other: each interrupts the unanswered request of the one before."""
    leader = leader_of(tmp_path, 4)
    following = Following(tmp_path, leader, 4)
    leader.is_stalled = True
    for partition in following.partitions:
        following.fetcher.add(partition)
        following.run(0.04)
    assert leader.disconnects == 3
    assert len(leader.requests) == 4
    assert caplog.records == []
    leader.is_stalled = False
    fill(leader.logs[3], 1)
    following.run(0.05)
    assert following.partitions[3].log.log_end_offset == 2


def test_throttled_replicas_wait_for_their_quota(tmp_path: Path) -> None:
    """KIP-73: over ten seconds no more than the rate; others are not throttled."""
    leader = leader_of(tmp_path, 2, segment_bytes=1 << 20)
    for log in leader.logs.values():
        fill(log, 100, value=b"v" * 100)
    leader.high_watermark = 1000
    following = Following(tmp_path, leader, 2, {"replica.fetch.max.bytes": "1000"})
    following.config.set_dynamic({"follower.replication.throttled.rate": "500"}, {})
    for partition in following.partitions:
        partition.log.config.follower_replication_throttled_replicas = (f"0:{FOLLOWER}",)
    following.follow()
    following.run(1.0)
    assert following.partitions[1].log.log_end_offset == 200
    assert 5000 <= following.log.size_bytes <= 7000
    following.run(100.0)
    assert content(following.log) == content(leader.logs[0])


def test_a_long_response_is_handled_in_slices(tmp_path: Path) -> None:
    """A turn takes milliseconds however many partitions a response has; the buffer is free after the first turn."""
    leader = leader_of(tmp_path, 30)
    for log in leader.logs.values():
        fill(log, 2)
    following = Following(tmp_path, leader, 30)
    following.follow()
    following.turn()
    ticking = following.loop.now
    following.clock.now += 0.0

    def slow_clock() -> float:
        following.clock.now += 0.0005
        return following.clock.now

    following.loop.now = slow_clock
    leader.answer()
    done = sum(partition.log.log_end_offset == 4 for partition in following.partitions)
    assert 1 <= done < 10
    following.loop.now = ticking
    following.run()
    assert all(partition.log.log_end_offset == 4 for partition in following.partitions)


def test_only_what_differs_is_truncated(tmp_path: Path) -> None:
    """R5: not down to the high watermark, which a follower may not have heard of; what was acknowledged stays."""
    following, leader = diverged(tmp_path, [(5, 0), (3, 1)], [(5, 0), (2, 2)])
    following.follow()
    following.run()
    assert following.log.log_end_offset == leader.logs[0].log_end_offset
    assert min(offsets_in(leader)) == 10


def test_a_partition_that_comes_back_is_told_everything_again(tmp_path: Path) -> None:
    """R20: the leader does not repeat a high watermark that it has sent to the partition's predecessor."""
    leader = leader_of(tmp_path)
    following = Following(tmp_path, leader)
    following.follow()
    following.run()
    (key,) = following.fetcher.partitions
    following.fetcher.remove(key)
    following.fetcher.add(following.partitions[0])
    leader.answer(even_if_empty=True)
    following.run()
    assert [request.session_epoch for request in leader.requests].count(0) == 2
