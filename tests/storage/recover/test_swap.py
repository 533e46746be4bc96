"""A compacted segment replaces others: after any crash there are the old records or the new ones (L7)."""

from __future__ import annotations

import itertools
import random
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from barnabas.storage import layout
from barnabas.storage.damage import DamagedLog
from barnabas.storage.files import UnsyncedFiles
from barnabas.storage.log import Log
from barnabas.storage.recover import swap
from barnabas.storage.segments.segment import Segment
from barnabas.wire.batches.records import iter_batches, iter_records
from tests.support.disks.faulty_disk import Fault, FaultyDisk
from tests.support.logs.log_driver import append, batch_of, open_log, records_from, small_config
from tests.support.volume import first_seed

Rename = tuple[str, str]


class JournalFiles(UnsyncedFiles):
    """Records the renames, grouped by the syncs of the directory between them."""

    def __init__(self) -> None:
        super().__init__()
        self.steps: list[list[Rename]] = [[]]

    def rename(self, old: str, new: str) -> None:
        self.steps[-1].append((old, new))
        super().rename(old, new)

    def sync_dir(self, path: str) -> None:
        if self.steps[-1]:
            self.steps.append([])


def keyed_log(directory: Path, keys: str = "abcabdaebc") -> Log:
    """One batch per key, some of them aborted, in several synced segments."""
    log = open_log(directory, small_config(segment_bytes=300, index_interval_bytes=0))
    for at, key in enumerate(keys):
        append(log, batch_of([b"%s%d" % (key.encode(), at)], key=key.encode(), timestamps=[1_000 + at]))
    log.flush()
    for segment in log.segments:
        segment.seal()
    return log


def compact(log: Log, segments: list[Segment]) -> Segment:
    """Step 1 as a cleaner does it: the batches whose key does not occur later in the log."""
    last = {record.key: record.offset for record in records_from(log, 0)}
    new = Segment.create(log.files, log.directory, segments[0].base_offset, 0.0, layout.CLEANED_SUFFIX)
    for segment in segments:
        for header, batch in segment.batches():
            if any(last[record.key] == record.offset for record in iter_records(next(iter_batches(batch)))):
                new.append(memoryview(bytes(batch)), [header], header.max_timestamp, 0)
    new.seal()
    return new


def replace(log: Log, new: Segment, replaced: list[Segment]) -> None:
    """Steps 2 to 4."""
    swap.publish(log.files, new)
    swap.retire(log.files, log.directory, replaced, new, [])
    swap.finish(log.files, new)


def reopened(directory: Path) -> Log:
    return open_log(directory, small_config(segment_bytes=300), clean_shutdown=False, recovery_point=10)


def pairs(log: Log) -> list[tuple[int, bytes | None, bytes | None]]:
    return [(record.offset, record.key, record.value) for record in records_from(log, log.log_start_offset)]


def final_map(log: Log) -> dict[bytes | None, bytes | None]:
    return {key: value for _, key, value in pairs(log)}


def crash_states(steps: list[list[Rename]], seed: int) -> Iterator[tuple[int, list[Rename]]]:
    """(completed steps, renames of the next step that reached the disk): every subset, or some of many."""
    for done, step in enumerate(steps):
        if len(step) <= 6:
            for size in range(len(step) + 1):
                yield from ((done, list(chosen)) for chosen in itertools.combinations(step, size))
        else:
            chance = random.Random(seed + done)
            for _ in range(60):
                yield done, [rename for rename in step if chance.random() < 0.5]


@pytest.mark.parametrize("keys", ["abcabdaebc", "abcabcxxxx", "aaaaaaaaaa"])
def test_crash_at_any_step_leaves_the_old_records_or_the_new(tmp_path: Path, keys: str) -> None:
    """L7: whichever renames since the last sync of the directory reached the disk; no file is left over."""
    log = keyed_log(tmp_path / "log", keys)
    old, expected_map = pairs(log), final_map(log)
    replaced = list(log.segments)[:-1]
    new = compact(log, replaced)
    shutil.copytree(log.directory, tmp_path / "before")
    log.files = files = JournalFiles()
    swap_files = [new.path(kind) for kind in layout.SEGMENT_SUFFIXES]
    assert any(Path(path).exists() for path in swap_files)
    replace(log, new, replaced)
    compacted = pairs(reopened(tmp_path / "log"))
    assert compacted != old
    outcomes = set()
    for done, chosen in crash_states(files.steps, first_seed()):
        shutil.rmtree(tmp_path / "log" / "t-0")
        shutil.copytree(tmp_path / "before", tmp_path / "log" / "t-0")
        for before, after in itertools.chain(*files.steps[:done], chosen):
            Path(before).rename(after)
        again = reopened(tmp_path / "log")
        assert final_map(again) == expected_map, (done, chosen)
        assert again.log_end_offset == len(keys)
        for offset in range(len(keys)):
            assert [pair[0] for pair in pairs(again) if pair[0] >= offset] == [
                record.offset for record in records_from(again, offset)
            ]
        names = {path.suffix for path in Path(again.directory).iterdir()}
        assert not names & {".cleaned", ".swap", ".deleted"}, (done, chosen)
        outcomes.add(tuple(pairs(again)))
    assert {tuple(old), tuple(compacted)} <= outcomes


def test_new_segment_that_was_not_published_is_dropped(tmp_path: Path) -> None:
    """A `.swap` beside a `.cleaned` of the same or an earlier segment is incomplete (KAFKA-6264)."""
    log = keyed_log(tmp_path)
    old = pairs(log)
    for name in (f"{0:020d}.index.cleaned", f"{0:020d}.log.swap", f"{3:020d}.log.swap"):
        Path(log.directory, name).write_bytes(b"part of a segment")
    assert pairs(reopened(tmp_path)) == old


def test_split_that_kafka_has_published_is_finished(tmp_path: Path) -> None:
    """Several new segments for one old one, as Kafka makes when its offsets do not fit the index."""
    log = keyed_log(tmp_path)
    old = pairs(log)
    first = log.segments[0]
    batches = list(first.batches())
    assert len(batches) > 1
    for header, batch in batches:
        Path(log.directory, f"{header.base_offset:020d}.log.swap").write_bytes(batch)
    again = reopened(tmp_path)
    assert pairs(again) == old
    assert [segment.base_offset for segment in again.segments][: len(batches)] == [
        header.base_offset for header, _ in batches
    ]


def test_damage_in_a_published_segment_is_reported_before_a_file_is_removed(tmp_path: Path) -> None:
    """L2: the replaced segments may still exist as `.deleted`."""
    log = keyed_log(tmp_path)
    replaced = list(log.segments)[:-1]
    new = compact(log, replaced)
    swap.publish(log.files, new)
    swap.retire(log.files, log.directory, replaced, new, [])
    path = Path(new.path(layout.LOG_SUFFIX))
    content = bytearray(path.read_bytes())
    content[70] ^= 1
    path.write_bytes(content)
    before = sorted(Path(log.directory).iterdir())
    with pytest.raises(DamagedLog, match="damaged at byte 0"):
        reopened(tmp_path)
    assert sorted(Path(log.directory).iterdir()) == before


def test_a_segment_whose_files_are_renamed_in_part_is_found_by_their_names() -> None:
    """A file that is opened by a name that it no longer has would be made, empty, and count as published at a start."""
    disk = FaultyDisk({})
    log = open_log("/data", small_config(segment_bytes=300, index_interval_bytes=0), disk)
    for at, key in enumerate("abcabdaebc"):
        append(log, batch_of([b"%s%d" % (key.encode(), at)], key=key.encode()))
    replaced = list(log.segments)[:-1]
    new = compact(log, replaced)
    swap.publish(disk, new)
    log.replace_segments(replaced, new)
    swap.retire(disk, log.directory, replaced, new, [])
    disk.arm(Fault(2, "ENOSPC"))
    with pytest.raises(OSError, match="No space left"):
        swap.finish(disk, new)
    disk.heal()
    assert disk.failed[0].startswith("rename")
    new.forget()
    assert len(final_map(log)) == 5
    assert not [name for name, size in disk.list_files(log.directory) if name.endswith(".log.swap")]
    swap.finish(disk, new)
    assert not [name for name, size in disk.list_files(log.directory) if name.endswith(".swap")]
    assert len(final_map(log)) == 5
