"""What is durable after each step: a power failure right after it leaves these bytes and no others.

The exploration of crash states reaches these cases as well; here each is tested directly.
"""

from __future__ import annotations

import marshal
from collections.abc import Callable, Iterator
from random import Random

import pytest

from barnabas.storage import layout
from barnabas.storage.cleaning.cleaner import Cleaner
from barnabas.storage.cleaning.replacement import Replacement
from barnabas.storage.cleaning.selection import CleanerLimits, cleanable, cleaning_task
from barnabas.storage.cleaning.task import CleanedGroup
from barnabas.storage.directories.log_dirs import LogDirs
from barnabas.storage.log import Log
from tests.support.disks.disk import Image, RecordingDisk
from tests.support.disks.survivors import SECTOR, Kind, Survivors
from tests.support.logs.log_driver import TOPIC_ID, append, append_marker, batch_of, small_config, truncate


def images(disk: RecordingDisk, tries: int = 60) -> list[Image]:
    """Many of the possible states after a crash now; the first is the state of a running system."""
    survivors = Survivors(disk)
    for operation in disk.operations:
        survivors.take(operation)
    return [survivors.image(kind, Random(seed)) for seed in range(tries) for kind in Kind]


def open_dirs(disk: RecordingDisk) -> LogDirs:
    dirs = LogDirs(disk, ["/data"], lambda: bytes(15) + b"\1")
    dirs.open(1)
    return dirs


def open_log(dirs: LogDirs, **configs: object) -> Log:
    config = small_config(**{"segment_bytes": 700, "index_interval_bytes": 100, **configs})
    return dirs.open_log("t", 0, config, topic_id=TOPIC_ID, now_ms=10_000, now=0.0)


def fill(log: Log) -> None:
    """Several segments with producers and aborted transactions."""
    for at in range(8):
        append(log, batch_of([b"%d" % at * 20], producer=(1, 0, at), timestamps=[1000 + at]), leader_epoch=at // 3)
        append(log, batch_of([b"t" * 40], producer=(2, 0, at), transactional=True, timestamps=[1000]))
        append_marker(log, commit=False, producer_id=2)
    assert len(log.segments) > 3


def files_of(image: Image) -> Image:
    """The partition's files."""
    data = image["data"]
    assert isinstance(data, dict)
    directory = data["t-0"]
    assert isinstance(directory, dict)
    return directory


def test_flush_makes_every_file_of_the_log_durable() -> None:
    """Data, indexes, snapshots, epochs, the topic id, their names and the directory's."""
    disk = RecordingDisk()
    log = open_log(open_dirs(disk))
    fill(log)
    for segment in list(log.segments)[:-1]:
        segment.release()
    log.flush()
    first, *others = [files_of(image) for image in images(disk)]
    assert {name.rpartition(".")[2] for name in first} >= {"log", "index", "timeindex", "txnindex", "snapshot"}
    assert all(other == first for other in others)


def test_flush_makes_the_names_of_index_files_durable() -> None:
    """They are created long after their segment, whose own name is durable already."""
    disk = RecordingDisk()
    log = open_log(open_dirs(disk), segment_bytes=1 << 20)
    append(log, batch_of([b"v"]))
    log.flush()
    for at in range(4):
        append(log, batch_of([b"t" * 100], producer=(2, 0, at), transactional=True, timestamps=[1000 + at]))
        append_marker(log, commit=False, producer_id=2)
    log.flush()
    first, *others = [files_of(image) for image in images(disk)]
    assert {name.rpartition(".")[2] for name in first} >= {"log", "index", "timeindex", "txnindex"}
    assert all(other == first for other in others)


def test_flush_of_data_only_makes_all_records_durable() -> None:
    """For group commit: the log files and their names, without the indexes."""
    disk = RecordingDisk()
    log = open_log(open_dirs(disk))
    fill(log)
    log.flush(data_only=True)

    def logs(image: Image) -> Image:
        return {name: data for name, data in files_of(image).items() if name.endswith(".log")}

    first, *others = [logs(image) for image in images(disk)]
    assert all(other == first for other in others)
    assert log.recovery_point < log.segments[1].base_offset, "the first segment's indexes may be lost"


@pytest.mark.parametrize("whole_file_system", [False, True])
def test_flush_makes_leader_epochs_durable(whole_file_system: bool) -> None:
    """R2: their file is renamed into place after it is synced; no other file of the log is new."""
    disk = RecordingDisk()
    dirs = open_dirs(disk)
    log = open_log(dirs, segment_bytes=1 << 20)
    append(log, batch_of([b"v"]))
    log.flush()
    append(log, batch_of([b"w"]), leader_epoch=3)
    job = log.start_flush()
    assert job is not None
    dirs.dirs[0].sync([job], whole_file_system=whole_file_system)
    states = [files_of(image) for image in images(disk)]
    assert {image["leader-epoch-checkpoint"] for image in states} == {b"0\n2\n0 0\n3 1\n"}


def test_clean_stop_leaves_nothing_that_a_crash_could_change() -> None:
    """The next start trusts indexes and snapshots, also of a log that was flushed just before."""
    disk = RecordingDisk()
    dirs = open_dirs(disk)
    log = open_log(dirs)
    fill(log)
    log.flush()
    append(log, batch_of([b"v"], producer=(1, 0, 8)))
    log.flush(data_only=True)
    dirs.close()
    first, *others = images(disk)
    assert layout.CLEAN_SHUTDOWN in first["data"]  # type: ignore[operator]
    assert all(other == first for other in others)


@pytest.mark.parametrize("change", [lambda log: log.roll(0.0), lambda log: log.delete_segments_below(14)])
def test_clean_stop_makes_names_durable_also_without_new_records(change: Callable[[Log], object]) -> None:
    """The next start takes the names for durable: synced records in a new segment were lost with its name."""
    disk = RecordingDisk()
    dirs = open_dirs(disk)
    fill(open_log(dirs))
    dirs.close()
    dirs = open_dirs(disk)
    log = open_log(dirs)
    names = set(files_of(images(disk, 1)[0]))
    log.high_watermark = log.log_end_offset
    log.advance_log_start_offset(14)
    log._changed = False
    change(log)
    dirs.close()
    first, *others = images(disk)
    assert set(files_of(first)) != names
    assert all(files_of(other) == files_of(first) for other in others)


def test_start_removes_the_clean_shutdown_marker_durably() -> None:
    disk = RecordingDisk()
    open_dirs(disk).close()
    open_dirs(disk)
    assert not any(layout.CLEAN_SHUTDOWN in image["data"] for image in images(disk))  # type: ignore[operator]


def test_recovery_point_is_written_as_the_end_only_when_indexes_are_complete() -> None:
    """A segment may be closed right there before the next checkpoint; its last index entry is not synced then."""
    disk = RecordingDisk()
    dirs = open_dirs(disk)
    log = open_log(dirs, segment_bytes=1 << 20)
    for _ in range(3):
        append(log, batch_of([b"v"]))
    log.flush()
    dirs.write_checkpoint(layout.RECOVERY_POINT_CHECKPOINT)
    assert disk.read_file("/data/recovery-point-offset-checkpoint") == b"0\n1\nt 0 2\n"
    log.roll(0.0)
    assert log.recovery_point == 2
    log.flush()
    dirs.write_checkpoint(layout.RECOVERY_POINT_CHECKPOINT)
    assert disk.read_file("/data/recovery-point-offset-checkpoint") == b"0\n1\nt 0 3\n"


def torn(log: Log) -> None:
    """The machine stops while the second of three batches is written."""
    path = log.segments.active.stem + ".log"
    file = log.files.open(path)
    log.files.write_at(file, b"garbage", SECTOR + 100)


def hole(log: Log) -> None:
    """The machine stops when the data of the third segment is written, but the data of the second is not."""
    log.files.truncate(log.files.open(log.segments[1].stem + ".log"), 0)


@pytest.mark.parametrize(("damage", "segment_bytes"), [(torn, 1 << 20), (hole, SECTOR)])
def test_data_cut_by_recovery_does_not_reappear(damage: Callable[[Log], None], segment_bytes: int) -> None:
    """L1: behind new records of the same size it would be read as valid."""
    disk = RecordingDisk()
    log = open_log(open_dirs(disk), segment_bytes=segment_bytes)
    size = len(batch_of([bytes(400)])) - 400
    for at in range(3):
        append(log, batch_of([b"%d" % at * (SECTOR - size)]))
    damage(log)
    crashed = RecordingDisk(images(disk)[0])
    open_log(open_dirs(crashed), segment_bytes=segment_bytes)
    logs = [
        {name: data for name, data in files_of(image).items() if name.endswith(".log") and data}
        for image in images(crashed)
    ]
    assert [len(content) for content in logs[0].values()] == [SECTOR]
    assert all(recovered == logs[0] for recovered in logs)


def test_truncated_data_does_not_reappear() -> None:
    """I7, R5: a replica that follows a new leader writes other records there."""
    disk = RecordingDisk()
    log = open_log(open_dirs(disk))
    fill(log)
    log.flush()
    truncate(log, 5)
    states = [{name: data for name, data in files_of(image).items() if name.endswith(".log")} for image in images(disk)]
    assert all(other == states[0] for other in states)


def test_a_full_truncation_survives_a_crash_at_any_moment() -> None:
    """R24: the log opens again, with a part of what it had or empty at its new start; at the end only the latter."""
    disk = RecordingDisk()
    dirs = open_dirs(disk)
    log = open_log(dirs, segment_bytes=200)
    fill(log)
    log.flush()
    dirs.write_checkpoint(layout.RECOVERY_POINT_CHECKPOINT)
    end, before = log.log_end_offset, len(disk.operations)
    truncate(log, 100, fully=True, write_checkpoint=lambda: dirs.write_checkpoint(layout.RECOVERY_POINT_CHECKPOINT))
    survivors = Survivors(disk)
    seen: set[bytes] = set()
    for at, operation in enumerate(disk.operations):
        survivors.take(operation)
        for seed in range(3) if at >= before else ():
            for kind in Kind:
                image = survivors.image(kind, Random(seed))
                if (form := marshal.dumps(image)) in seen:
                    continue
                seen.add(form)
                again = open_log(open_dirs(RecordingDisk(image)), segment_bytes=200)
                assert again.log_end_offset <= end or again.log_start_offset == again.log_end_offset == 100
    for image in images(disk, 2):
        again = open_log(open_dirs(RecordingDisk(image)), segment_bytes=200)
        assert again.log_start_offset == again.log_end_offset == 100


def test_each_step_of_a_compaction_is_durable_before_the_next() -> None:
    """L7: a crash cannot reorder the renames of two steps, nor of two replacements."""
    disk = RecordingDisk()
    log = open_log(open_dirs(disk), segment_bytes=200, cleanup_policy=frozenset({"compact"}), delete_retention_ms=0)

    def clean() -> Iterator[CleanedGroup]:
        part = cleanable(log, None, 10_000)
        return Cleaner(cleaning_task(log, part, CleanerLimits(1 << 20, 500, 0.0), 10_000), disk).run()

    def on_the_disk() -> bool:
        first, *others = [files_of(image) for image in images(disk, 20)]
        return all(other == first for other in others)

    for at in range(6):
        append(log, batch_of([b"%d" % at * 60], key=b"%d" % (at % 2)))
    log.high_watermark = log.log_end_offset
    log.roll(0.0)
    log.flush()
    for group in clean():
        replacement = Replacement(log, group)
        assert on_the_disk(), "the cleaned files are written"
        replacement.publish()
        assert on_the_disk(), "they are published"
        replacement.take_over()
        replacement.retire()
        assert on_the_disk(), "the old files are retired"
        replacement.finish()
    done = len(disk.operations)
    second = clean()  # ended, it would remove what it has made
    assert next(second).replaced
    survivors = Survivors(disk)
    for at, operation in enumerate(disk.operations):
        survivors.take(operation)
        for seed in range(10) if at >= done else ():
            names = files_of(survivors.image(Kind.MIXED, Random(seed)))
            kinds = {name.rpartition(".")[2] for name in names}
            assert not {"cleaned", "swap"} <= kinds, "a published segment looks like one of the next replacement"


def test_index_rebuilt_below_the_recovery_point_is_complete_or_missing() -> None:
    """No later start checks the segment again."""
    disk = RecordingDisk()
    dirs = open_dirs(disk)
    fill(open_log(dirs))
    dirs.close()
    image = images(disk, 1)[0]
    whole = dict(files_of(image))
    for kind in (layout.INDEX_SUFFIX, layout.TIME_INDEX_SUFFIX):
        del files_of(image)[f"{0:020d}{kind}"]
    damaged = RecordingDisk(image)
    open_log(open_dirs(damaged))
    survivors = Survivors(damaged)
    for operation in damaged.operations:
        survivors.take(operation)
        for kind in Kind:
            files = files_of(survivors.image(kind, Random(0)))
            assert all(files.get(name, data) == data for name, data in whole.items() if name.endswith("index"))
    assert files_of(images(damaged)[0]) == whole
