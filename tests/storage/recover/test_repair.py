"""A repair can be interrupted at any point and repeated; it keeps every valid batch, whatever was damaged (L2)."""

from __future__ import annotations

import errno
import random
import shutil
from functools import partial
from pathlib import Path

import pytest

from barnabas.storage import layout
from barnabas.storage.checking.check import check_directory
from barnabas.storage.checking.repair import Repair
from barnabas.storage.directories.log_dirs import LogDirs
from barnabas.storage.files import ReadOnlyFiles, UnsyncedFiles
from barnabas.storage.log import Log
from barnabas.wire.errors import KafkaError
from tests.support.disks.failing_files import FailingFiles
from tests.support.logs.log_driver import TOPIC_ID, append, append_marker, batch_of, small_config, values_from
from tests.support.volume import for_each_seed, seeds

END = 30
CONFIG = small_config(segment_bytes=400)

CHANGES = ("write", "truncate", "rename", "unlink")
"""The operations that change the disk."""


def open_logs(path: Path) -> tuple[LogDirs, Log]:
    dirs = LogDirs(UnsyncedFiles(), [str(path)], lambda: bytes(16))
    dirs.open(1)
    return dirs, dirs.open_log("t", 0, CONFIG, topic_id=TOPIC_ID, now_ms=10_000, now=0.0)


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory after a clean stop: several segments, a producer, an aborted transaction."""
    path = tmp_path_factory.mktemp("whole") / "data"
    dirs, log = open_logs(path)
    while log.log_end_offset < END - 2:
        append(log, batch_of([b"%d" % log.log_end_offset] * 2, producer=(1, 0, log.log_end_offset)))
    append(log, batch_of([b"aborted"], producer=(2, 0, 0), transactional=True))
    append_marker(log, commit=False, producer_id=2)
    dirs.close()
    return path


def values_in(path: Path) -> list[tuple[int, bytes | None]]:
    """The records that a broker reads from the directory; it must accept it."""
    dirs, log = open_logs(path)
    assert log.log_end_offset == END
    values = values_from(log, log.log_start_offset)
    dirs.close()
    return values


def damage_files(path: Path, chance: random.Random) -> None:
    """Change, truncate or remove some of the partition's files, except for its topic id (R22)."""
    names = sorted(set(path.glob("t-0/*")) - {path / "t-0" / layout.PARTITION_METADATA})
    for victim in chance.sample(names, chance.randint(1, 4)):
        content = bytearray(victim.read_bytes())
        kind = chance.choice(("flip", "cut", "zero", "remove"))
        if kind == "remove":
            victim.unlink()
        elif content:
            at = chance.randrange(len(content))
            if kind == "flip":
                content[at] ^= 1 << chance.randrange(8)
            elif kind == "cut":
                del content[at:]
            else:
                content[at : at + 200] = bytes(min(200, len(content) - at))
            victim.write_bytes(content)


def is_in(batch: bytes, content: bytes) -> bool:
    """Whether the content contains a batch, ignoring its leader epoch, which no CRC covers."""
    at = content.find(batch[16:])
    return at >= 0 and content[at - 16 : at - 4] == batch[:12]


def test_repair_of_anything_keeps_what_is_whole(tmp_path: Path, whole: Path) -> None:
    """After any damage every record of a valid batch is there, and no other."""
    for_each_seed(seeds("BARNABAS_EXAMPLES", 10), partial(repaired, tmp_path, whole), "BARNABAS_EXAMPLES")


def repaired(tmp_path: Path, whole: Path, seed: int) -> None:
    path = tmp_path / f"data-{seed}"
    shutil.copytree(whole, path)
    dirs, log = open_logs(path)
    batches = [(header, bytes(batch)) for segment in log.segments for header, batch in segment.batches()]
    records = values_from(log, 0)
    dirs.close()
    damage_files(path, random.Random(seed))
    contents = [file.read_bytes() for file in path.glob("t-0/*.log")]
    headers = [header for header, batch in batches if any(is_in(batch, content) for content in contents)]
    expected = [
        entry for entry in records if any(header.base_offset <= entry[0] <= header.last_offset for header in headers)
    ]
    Repair(UnsyncedFiles(), str(path), ("t", 0)).run()
    assert values_in(path) == expected
    report = check_directory(ReadOnlyFiles(), str(path))
    assert not report.is_damaged, [finding for partition in report.partitions for finding in partition.findings]
    assert values_in(path) == expected


def damaged_copy(whole: Path, to: Path) -> Path:
    """A copy with an invalid batch in the middle, a missing segment, and an invalid checkpoint of leader epochs."""
    shutil.copytree(whole, to)
    first, second, third, *_ = sorted(to.glob("t-0/*.log"))
    content = bytearray(first.read_bytes())
    content[70] ^= 1
    first.write_bytes(content)
    third.unlink()
    (to / "t-0" / layout.LEADER_EPOCH_CHECKPOINT).write_text("?")
    assert second.exists()
    return to


def test_interrupted_repair_can_be_repeated(tmp_path: Path, whole: Path) -> None:
    once = damaged_copy(whole, tmp_path / "once")
    Repair(UnsyncedFiles(), str(once), ("t", 0)).run()
    expected = values_in(once)
    for changes in range(200):
        path = damaged_copy(whole, tmp_path / str(changes))
        files = FailingFiles(is_synced=False, errors=dict.fromkeys(CHANGES, errno.EIO))
        files.skip, files.part = changes, 0.0
        try:
            Repair(files, str(path), ("t", 0)).run()
        except (OSError, KafkaError):
            Repair(UnsyncedFiles(), str(path), ("t", 0)).run()
        else:
            assert changes > 20, "each change was interrupted once"
            break
        assert values_in(path) == expected, changes
        assert not check_directory(ReadOnlyFiles(), str(path)).is_damaged
    else:
        pytest.fail("the repair never came to its end")


def test_compacted_log_keeps_its_holes(tmp_path: Path, whole: Path) -> None:
    """Offsets removed by compaction are not lost."""
    path = tmp_path / "data"
    shutil.copytree(whole, path)
    first = min(path.glob("t-0/*.log"))
    dirs, log = open_logs(path)
    second_batch = list(log.segments[0].scan(0))[1]
    records = values_from(log, 0)
    dirs.close()
    content = first.read_bytes()
    first.write_bytes(content[: second_batch.position] + content[second_batch.position + second_batch.size :])
    repair = Repair(UnsyncedFiles(), str(path), ("t", 0))
    assert repair.plan() == []
    repair.run()
    gone = range(second_batch.base_offset, second_batch.last_offset + 1)
    assert values_in(path) == [entry for entry in records if entry[0] not in gone]
