"""A failing disk: no operation is half done, and the log continues when the disk does."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from barnabas.storage.files import Buffer, File, UnsyncedFiles
from barnabas.storage.log import Log
from barnabas.wire.errors import ErrorCode, KafkaError
from tests.support.cases import for_each
from tests.support.disks.failing_files import FailingFiles
from tests.support.logs.log_driver import append, batch_of, kill, open_log, restart, small_config, values_from


class ShortWriteFiles(UnsyncedFiles):
    """Writes a few bytes per call, as a system may."""

    def write_at(self, file: File, data: Buffer, position: int) -> None:
        head, rest = memoryview(data)[:7], memoryview(data)[7:]
        os.pwrite(file.fd, head, position)
        self._write_rest(file, rest, position + len(head))


def size_of(log: Log) -> int:
    return Path(log.segments.active.stem + ".log").stat().st_size


@pytest.mark.parametrize("part", [0.0, 0.3, 0.99])
def test_full_disk_undoes_the_append(tmp_path: Path, part: float) -> None:
    """KAFKA_STORAGE_ERROR, no bytes left, no offset and no sequence used; the retry succeeds."""
    files = FailingFiles(is_synced=False)
    log = open_log(tmp_path, small_config(segment_bytes=1 << 20), files)
    append(log, batch_of([b"a"], producer=(1, 0, 0)))
    size = size_of(log)
    files.errors["write"], files.times, files.part = errno.ENOSPC, 1, part
    with pytest.raises(KafkaError) as caught:
        append(log, batch_of([b"b"], producer=(1, 0, 1)))
    assert caught.value.code == ErrorCode.KAFKA_STORAGE_ERROR
    assert (log.log_end_offset, log.size_bytes, size_of(log)) == (1, size, size)
    info = append(log, batch_of([b"b"], producer=(1, 0, 1)))
    assert (info.first_offset, info.duplicate) == (1, False)
    assert values_from(log, 0) == [(0, b"a"), (1, b"b")]


@for_each("nth", range(12))
def test_log_works_after_a_failure_at_any_write(tmp_path: Path, nth: int) -> None:
    """Also during a roll: index files, the new segment, the snapshot, the epoch checkpoint."""
    files = FailingFiles(is_synced=False)
    log = open_log(tmp_path, small_config(segment_bytes=300, index_interval_bytes=0), files)
    files.errors["write"], files.skip, files.times = errno.ENOSPC, nth, 1
    acknowledged, refused = [], []
    for at in range(12):
        value = b"%d" % at
        try:
            info = append(log, batch_of([value], producer=(1, at, 0)), leader_epoch=at // 3)
        except KafkaError as error:
            refused.append(error.code)
        else:
            acknowledged.append((info.first_offset, value))
    assert refused in ([], [ErrorCode.KAFKA_STORAGE_ERROR])
    assert values_from(log, 0) == acknowledged
    for stop in (kill, restart, kill):
        log = stop(log)
        assert values_from(log, 0) == acknowledged


def test_failed_sync_is_raised_and_advances_nothing(tmp_path: Path) -> None:
    """After a failed fsync the state on disk is unknown; the recovery point stays."""
    files = FailingFiles(is_synced=False)
    log = open_log(tmp_path, files=files)
    append(log, batch_of([b"a"]))
    files.errors["sync"] = errno.EIO
    with pytest.raises(KafkaError) as caught:
        log.flush()
    assert caught.value.code == ErrorCode.KAFKA_STORAGE_ERROR
    assert log.recovery_point == 0


def test_short_writes_are_continued(tmp_path: Path) -> None:
    log = open_log(tmp_path, files=ShortWriteFiles())
    for at in range(5):
        append(log, batch_of([b"%d" % at * 50]))
    assert [offset for offset, _ in values_from(kill(log), 0)] == [0, 1, 2, 3, 4]


def test_a_path_that_cannot_be_looked_up_does_not_count_as_missing(tmp_path: Path) -> None:
    """A log that seems to be missing would be made anew, empty."""
    files = UnsyncedFiles()
    (tmp_path / "file").write_bytes(b"")
    assert files.exists(f"{tmp_path}/file")
    assert not files.exists(f"{tmp_path}/other")
    assert not files.exists(f"{tmp_path}/file/below")
    with pytest.raises(OSError, match="File name too long"):
        files.exists(f"{tmp_path}/{'a' * 300}")
