"""Log files are opened on demand; above their share the least recently used is closed; no error is lost (L14)."""

from __future__ import annotations

import errno
import os
import stat
import threading
from collections.abc import Callable
from pathlib import Path
from weakref import WeakSet

import pytest

from barnabas.storage import layout
from barnabas.storage.damage import DamagedLog
from barnabas.storage.directories.log_dirs import LogDirs
from barnabas.storage.files import File, Files, FileSlice, UnsyncedFiles
from barnabas.storage.log import Log
from barnabas.wire.errors import ErrorCode, KafkaError
from tests.support.cases import for_each
from tests.support.logs.log_driver import TOPIC_ID, append, batch_of, small_config, values_from


class WriteReportingDisk(UnsyncedFiles):
    """A disk that reports a failed write as Linux does in the worst case.

    The descriptors of the file that are open at that moment get the error, each once, and so does each lock of the file
    system. A descriptor that is opened later gets nothing.
    """

    def __init__(self, *, reports_for_file_system: bool = True) -> None:
        super().__init__()
        self.reports_for_file_system = reports_for_file_system
        self.open_now: WeakSet[TrackedFile] = WeakSet()
        self.most_open = 0
        self.failed: WeakSet[File] = WeakSet()
        self.file_system_syncs = 0

    def open(self, path: str) -> File:
        file = TrackedFile(super()._open(path, os.O_RDWR | os.O_CREAT), path)
        self.open_now.add(file)
        self.most_open = max(self.most_open, len(self.open_now))
        return file

    def open_logs(self) -> list[str]:
        """The names of the partitions whose log files are open."""
        return sorted(Path(file.path).parent.name for file in self.open_now if file.path.endswith(".log"))

    def fail_writes_of(self, path: str) -> None:
        """The system cannot write the file's data to the disk."""
        self.failed.update(file for file in self.open_now if file.path == path or file.path.endswith(layout.LOCK))

    def sync(self, file: File) -> None:
        if file in self.failed:
            self.failed.remove(file)
            raise OSError(errno.EIO, os.strerror(errno.EIO), file.path)

    def can_sync_file_system(self) -> bool:
        return self.reports_for_file_system

    def sync_file_system(self, file: File) -> bool:
        self.file_system_syncs += 1
        self.sync(file)
        return True


class TrackedFile(File):
    __slots__ = ("__weakref__",)


def opened(path: Path, files: Files, *, share: int = 2**31, logs: int = 10) -> tuple[LogDirs, list[Log]]:
    """A log directory with logs `t-0` ..., of which `share` may be open."""
    files.open_files.share = share
    dirs = LogDirs(files, [str(path)], lambda: os.urandom(16))
    dirs.open(1)
    config = small_config(file_delete_delay_ms=0, segment_bytes=1 << 20)
    return dirs, [dirs.open_log("t", index, config, topic_id=TOPIC_ID, now_ms=10_000, now=0.0) for index in range(logs)]


def path_of(log: Log) -> str:
    return f"{log.segments.active.stem}.log"


def close_early(log: Log) -> None:
    """The file of a log is closed because descriptors are needed for others."""
    while log.segments.active.is_open:
        assert log.files.open_files.make_room()


def test_only_the_share_is_open_and_everything_is_served(tmp_path: Path) -> None:
    disk = WriteReportingDisk()
    _, logs = opened(tmp_path, disk, share=3)
    for value in (b"a", b"b", b"c"):
        for log in logs:
            append(log, batch_of([value]))
            assert len(disk.open_logs()) <= 3
    for log in logs:
        assert values_from(log, 0) == [(0, b"a"), (1, b"b"), (2, b"c")]
        assert len(disk.open_logs()) <= 3
    assert len(disk.open_files) == len(disk.open_logs()) == 3


@pytest.mark.parametrize("use", [lambda log: append(log, batch_of([b"v"])), lambda log: values_from(log, 0)])
def test_a_file_that_is_used_stays_open(tmp_path: Path, use: Callable[[Log], object]) -> None:
    disk = WriteReportingDisk()
    _, logs = opened(tmp_path, disk, share=4)
    for log in logs[:4]:
        append(log, batch_of([b"v"]))
    for log in logs[4:]:
        use(logs[0])
        append(log, batch_of([b"v"]))
    assert "t-0" in disk.open_logs()


def test_a_slice_that_is_being_sent_keeps_its_file(tmp_path: Path) -> None:
    dirs, (log,) = opened(tmp_path, WriteReportingDisk(), logs=1)
    append(log, batch_of([b"value" * 2000]))  # larger than what a search reads
    piece = log.read(0, 1 << 20, limit_offset=1, min_one_batch=True).slice
    assert piece is not None
    assert not piece.is_in_memory
    close_early(log)
    dirs.delete_log("t", 0, now=0.0)
    for path in dirs.deletions.take_due(1.0):
        dirs.deletions.remove(path)
    assert b"value" in piece.read()


def test_records_are_read_at_once_when_descriptors_are_scarce(tmp_path: Path) -> None:
    disk = WriteReportingDisk()
    disk.open_files.slices_until = disk.open_files.crowded_from = 0
    _, logs = opened(tmp_path, disk)
    assert len(disk.open_logs()) == 0
    slices: list[FileSlice] = []
    for log in logs:
        append(log, batch_of([b"first"]))
        append(log, batch_of([b"second" * 2000]))  # larger than what a search reads
        assert len(disk.open_logs()) == 1
    for log in logs:
        piece = log.read(1, 1 << 20, limit_offset=2, min_one_batch=True).slice
        assert piece is not None
        slices.append(piece)
    assert len(disk.open_logs()) == 0
    assert all(piece.is_in_memory and b"second" in piece.read() for piece in slices)
    assert piece.file.read(piece.length, piece.offset) == piece.read()


@for_each("reports_for_file_system", [True, False])
@for_each("closing", ["evicted", "rolled"])
def test_the_error_of_a_write_is_not_lost_with_the_file_that_was_closed(
    tmp_path: Path, closing: str, reports_for_file_system: bool
) -> None:
    disk = WriteReportingDisk(reports_for_file_system=reports_for_file_system)
    _, (log,) = opened(tmp_path, disk, logs=1)
    append(log, batch_of([b"lost"]))
    path = path_of(log)
    if closing == "rolled":
        log.roll(1.0)
        append(log, batch_of([b"v"]))
        log.roll(2.0)
        append(log, batch_of([b"v"]))
        assert values_from(log, 1) == [
            (1, b"v"),
            (2, b"v"),
        ]  # another closed segment is read: the first one is released
    disk.fail_writes_of(path)
    if closing == "evicted":
        close_early(log)
    append(log, batch_of([b"v"]))
    with pytest.raises(KafkaError) as failure:
        log.flush()
    assert failure.value.code is ErrorCode.KAFKA_STORAGE_ERROR
    assert log.synced_offset == 0


def test_a_write_that_fails_after_its_file_was_closed_is_reported(tmp_path: Path) -> None:
    disk = WriteReportingDisk()
    dirs, (log,) = opened(tmp_path, disk, logs=1)
    append(log, batch_of([b"lost"]))
    close_early(log)
    disk.fail_writes_of(path_of(log))
    job = log.start_flush(data_only=True)
    assert job is not None
    with pytest.raises(OSError, match="Input/output"):
        dirs.dirs[0].sync([job])
    again = log.start_flush(data_only=True)
    assert again is not None
    with pytest.raises(OSError, match="Input/output"):
        again.run()  # the system reports the error once; it must not be forgotten


def test_only_a_file_with_unsynced_data_costs_a_sync_of_the_file_system(tmp_path: Path) -> None:
    disk = WriteReportingDisk()
    _, (log,) = opened(tmp_path, disk, logs=1)
    append(log, batch_of([b"v"]))
    log.flush()
    close_early(log)
    assert log.start_flush(data_only=True) is None
    append(log, batch_of([b"v"]))
    log.flush()
    assert disk.file_system_syncs == 0
    append(log, batch_of([b"v"]))
    close_early(log)
    log.flush()
    assert disk.file_system_syncs == 1
    append(log, batch_of([b"v"]))
    log.flush()
    assert disk.file_system_syncs == 1


def test_a_released_segment_is_closed_with_its_flush(tmp_path: Path) -> None:
    disk = WriteReportingDisk()
    _, (log,) = opened(tmp_path, disk, logs=1)
    for _ in range(4):
        append(log, batch_of([b"v"]))
        log.roll(1.0)
    append(log, batch_of([b"v"]))
    log.flush()
    assert len(disk.open_logs()) <= 2  # the active segment, and the one that was rolled last


def test_a_flush_of_many_logs_opens_few_files_at_once(tmp_path: Path) -> None:
    disk = WriteReportingDisk()
    dirs, logs = opened(tmp_path, disk, share=2, logs=50)
    for log in logs:
        append(log, batch_of([b"v"]))
    disk.most_open = 0
    dirs.close()
    assert disk.most_open <= 6


def test_a_descriptor_is_made_free_for_what_needs_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a free descriptor a log file is closed, and the operation is done."""
    disk = WriteReportingDisk()
    _, logs = opened(tmp_path, disk)
    for log in logs:
        append(log, batch_of([b"v"]))
    system_open = os.open

    def limited(path: str, flags: int, mode: int = 0o777) -> int:
        if len(disk.open_logs()) >= 8:
            raise OSError(errno.EMFILE, os.strerror(errno.EMFILE), path)
        return system_open(path, flags, mode)

    monkeypatch.setattr(os, "open", limited)
    assert len(disk.open_logs()) == 10
    assert disk.read_file(str(tmp_path / layout.META_PROPERTIES))
    assert len(disk.open_logs()) == 7
    assert values_from(logs[0], 0) == [(0, b"v")]


def test_a_log_that_is_closed_or_fails_to_open_leaves_no_entry(tmp_path: Path) -> None:
    disk = WriteReportingDisk()
    dirs, logs = opened(tmp_path, disk)
    for log in logs:
        append(log, batch_of([b"v"] * 20))
    dirs.close()
    assert len(disk.open_files) == 0
    path = tmp_path / "t-3" / layout.segment_name(0, layout.LOG_SUFFIX)
    path.write_bytes(path.read_bytes()[:-1])
    again = LogDirs(disk, [str(tmp_path)], lambda: os.urandom(16))
    again.open(1)
    with pytest.raises(DamagedLog):
        again.open_log("t", 3, small_config(), topic_id=TOPIC_ID, now_ms=10_000, now=0.0)
    assert disk.open_logs() == []
    assert len(disk.open_files) == 0


def test_shares_of_the_descriptors() -> None:
    open_files = Files().open_files
    open_files.limit_to(4096)
    assert (open_files.share, open_files.slices_until, open_files.crowded_from) == (2048, 3072, 3892)
    open_files.limit_to(64)
    assert (open_files.share, open_files.slices_until, open_files.crowded_from) == (32, 48, 48)


def test_another_thread_closes_no_file(tmp_path: Path) -> None:
    """It could be in the middle of an append."""
    disk = WriteReportingDisk()
    _, logs = opened(tmp_path, disk, share=2)
    for log in logs[:2]:
        append(log, batch_of([b"v"]))
    thread = threading.Thread(target=lambda: [values_from(log, 0) for log in logs[2:]] + [disk.open_files.make_room()])
    thread.start()
    thread.join()
    assert {"t-0", "t-1"} <= set(disk.open_logs())
    append(logs[2], batch_of([b"v"]))
    logs[3].segments.active.close_file()
    append(logs[3], batch_of([b"v"]))
    assert len(disk.open_logs()) == 2


def test_files_are_for_their_owner_only(tmp_path: Path) -> None:
    """Whatever the umask says."""
    umask = os.umask(0)
    try:
        Files().open(str(tmp_path / "log")).close()
    finally:
        os.umask(umask)
    assert stat.S_IMODE((tmp_path / "log").stat().st_mode) == 0o600


@for_each("share", [1, 2, 63, 64, 65, 66])
def test_a_file_that_was_just_opened_is_not_closed(tmp_path: Path, share: int) -> None:
    """Also when all others were used since they were last considered."""
    disk = WriteReportingDisk()
    _, logs = opened(tmp_path, disk, share=share, logs=70)
    for log in logs:
        append(log, batch_of([b"v"]))
        assert log.segments.active.is_open
    assert len(disk.open_files) == share
