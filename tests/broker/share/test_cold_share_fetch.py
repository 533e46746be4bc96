"""A ShareFetch of records that are not in the page cache: a thread reads what finds them, the loop does not wait."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from barnabas.wire.errors import ErrorCode
from tests.broker.share_member import Member, Queue, acquired, partitions_of
from tests.support.disks.cold_files import ColdFiles

RECORDS = 20
"""Records of the first segment, in a batch each."""


@pytest.fixture
def files() -> ColdFiles:
    return ColdFiles()


@pytest.fixture
def queue(tmp_path: Path, files: ColdFiles) -> Iterator[Queue]:
    """A share partition with two segments, of which the first is not open; the disk waits for the test."""
    queue = Queue(tmp_path / "data", files=files)
    queue.initialize()
    for _ in range(RECORDS):
        queue.produce(b"a" * 1000)
    log = queue.broker.partitions.get("q", 0).log
    log.roll(queue.clock.now)
    queue.produce(b"b")
    log.segments[0].release()
    queue.disk.is_paused = True
    files.waits.clear()
    yield queue
    queue.disk.is_paused = False
    queue.close()


def answer_of(member: Member, files: ColdFiles):
    """The answer of a request that has been sent, after everything that waits for the disk."""
    while member.queue.disk.held:
        files.run(member.queue.disk)
        member.queue.broker.loop.end_turn()
    (response,) = member.answers()
    return response


@pytest.mark.parametrize("max_wait_ms", [0, 5000])
def test_records_are_acquired_after_a_thread_has_found_them(queue: Queue, files: ColdFiles, max_wait_ms: int) -> None:
    member = Member(queue, "one")
    member.send(max_wait_ms=max_wait_ms)
    assert member.answers() == []
    assert acquired(answer_of(member, files)) == [(0, RECORDS - 1, 1)]
    assert files.waits == []


def test_what_is_in_the_page_cache_is_acquired_at_once(queue: Queue, files: ColdFiles) -> None:
    member = Member(queue, "one")
    for first in (0, 5):
        member.send(max_records=5, share_acquire_mode=1, max_wait_ms=5000)
        assert acquired(answer_of(member, files)) == [(first, first + 4, 1)]
    files.is_cached = lambda file, length, position: True  # type: ignore[method-assign]
    assert member.take(max_records=5, share_acquire_mode=1, max_wait_ms=5000) == [(10, 14, 1)]


def test_the_deadline_passes_while_the_thread_reads(queue: Queue, files: ColdFiles) -> None:
    member = Member(queue, "one")
    member.send(min_bytes=1 << 20, max_wait_ms=100)
    queue.advance(1)
    assert member.answers() == []
    assert acquired(answer_of(member, files)) == [(0, RECORDS - 1, 1)]


def test_a_client_may_disconnect_meanwhile(queue: Queue, files: ColdFiles) -> None:
    member = Member(queue, "one")
    member.send(max_wait_ms=5000)
    member.client.connection.close()
    files.run(queue.disk)
    other = Member(queue, "two")
    other.send(max_wait_ms=5000)
    assert acquired(answer_of(other, files)) == [(0, RECORDS - 1, 1)]


def test_a_failure_of_the_disk_is_the_answer(queue: Queue, files: ColdFiles, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*_: object) -> bytes:
        raise OSError(5, "injected")

    member = Member(queue, "one")
    member.send(max_wait_ms=5000)
    monkeypatch.setattr(ColdFiles, "read_file", fails)
    work, then = queue.disk.held.pop(0)
    with pytest.raises(OSError, match="injected") as failure:
        work()
    then(failure.value)
    (response,) = member.answers()
    assert [data.error_code for data in partitions_of(response)] == [ErrorCode.KAFKA_STORAGE_ERROR]
