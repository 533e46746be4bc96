"""Text files of a log directory with wrong bytes: a start is refused with one sentence, the check finds them."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest

from barnabas.storage import layout
from barnabas.storage.checking.check import check_directory
from barnabas.storage.checking.repair import Repair
from barnabas.storage.damage import DamagedLog
from barnabas.storage.directories.checkpoints import CorruptCheckpoint
from barnabas.storage.directories.log_dirs import DataDirMismatch
from barnabas.storage.files import Files, ReadOnlyFiles
from tests.support.cases import for_each
from tests.support.logs.dirs_driver import append_batches, log_dirs, open_log, opened_dirs

WRONG_BYTES = (0x00, 0x0A, 0x20, 0x2D, 0x39, 0x3D, 0x7F, 0xC3, 0xFF)
HUGE = str(10**40).encode()


def wrong_contents(content: bytes) -> Iterator[bytes]:
    """The file with each byte replaced, cut at each length, without each byte, with huge numbers, with zeros."""
    for at in range(len(content)):
        yield from (content[:at] + bytes([wrong]) + content[at + 1 :] for wrong in WRONG_BYTES)
        yield content[:at]
        yield content[:at] + content[at + 1 :]
        if content[at : at + 1].isdigit():
            yield content[:at] + HUGE + content[at + 1 :]
            yield content[:at] + b"9" * 5000 + content[at + 1 :]
    yield bytes(len(content))
    yield content + b"\xff"
    yield content + b"\n" + content


def stopped_cleanly(path: Path) -> None:
    dirs = opened_dirs(path)
    append_batches(open_log(dirs), 3)
    dirs.close()


def refusal_of_a_start(path: Path) -> str:
    """Why a start is refused; empty if it is not."""
    try:
        log_dirs(path).open(1)
    except (CorruptCheckpoint, DataDirMismatch) as error:
        return str(error)
    return ""


@for_each(
    "name",
    [
        layout.META_PROPERTIES,
        layout.RECOVERY_POINT_CHECKPOINT,
        layout.LOG_START_CHECKPOINT,
        layout.REPLICATION_CHECKPOINT,
    ],
)
def test_every_wrong_byte_of_a_directorys_file_is_one_sentence(tmp_path: Path, name: str) -> None:
    stopped_cleanly(tmp_path)
    path = tmp_path / name
    correct = b"0\n1\nt 0 2\n" if name == layout.LOG_START_CHECKPOINT else path.read_bytes()
    refused = 0
    for content in wrong_contents(correct):
        path.write_bytes(content)
        refusal = refusal_of_a_start(tmp_path)
        if refusal:
            refused += 1
            assert str(path.parent) in refusal
            assert "\n" not in refusal
            if "belongs to" not in refusal:
                assert check_directory(ReadOnlyFiles(), str(tmp_path)).is_damaged, (content, refusal)
    assert refused > 20


@for_each("content", [b"", b"version=1\n", b"version=1\nnode.id=1\n", b"node.id=1\ncluster.id=x\n"])
def test_an_incomplete_identity_is_not_replaced_by_another_one(tmp_path: Path, content: bytes) -> None:
    stopped_cleanly(tmp_path)
    (tmp_path / layout.META_PROPERTIES).write_bytes(content)
    with pytest.raises(CorruptCheckpoint, match=r"meta\.properties"):
        log_dirs(tmp_path).open(1)
    assert (tmp_path / layout.META_PROPERTIES).read_bytes() == content


def test_a_partition_that_is_in_two_directories_is_refused(tmp_path: Path) -> None:
    for name in ("a", "b"):
        stopped_cleanly(tmp_path / name)
    meta = (tmp_path / "a" / layout.META_PROPERTIES).read_text()
    (tmp_path / "b" / layout.META_PROPERTIES).write_text(meta.partition("directory.id")[0])
    with pytest.raises(DataDirMismatch, match="t-0 is in both"):
        log_dirs(tmp_path / "a", tmp_path / "b").open(1)


@pytest.mark.parametrize("name", ["t-00", "t-2147483648", "t-99999999999999999999"])
def test_a_directory_whose_number_is_no_partition_is_left_alone(tmp_path: Path, name: str) -> None:
    (tmp_path / name).mkdir()
    assert list(opened_dirs(tmp_path).not_opened()) == []


@pytest.mark.parametrize("name", ["99999999999999999999.log", "99999999999999999999.snapshot"])
def test_a_file_whose_number_is_no_offset_is_left_alone(tmp_path: Path, name: str) -> None:
    stopped_cleanly(tmp_path)
    (tmp_path / "t-0" / name).write_bytes(b"x")
    log = open_log(opened_dirs(tmp_path))
    assert log.log_end_offset == 3
    assert Files().exists(str(tmp_path / "t-0" / name))


def test_a_wrong_log_start_does_not_remove_the_log_after_a_clean_stop(tmp_path: Path) -> None:
    stopped_cleanly(tmp_path)
    (tmp_path / layout.LOG_START_CHECKPOINT).write_text("0\n1\nt 0 900\n")
    assert check_directory(ReadOnlyFiles(), str(tmp_path)).is_damaged
    dirs = opened_dirs(tmp_path)
    with pytest.raises(DamagedLog, match="begins at offset 900 and ends at offset 3"):
        open_log(dirs)
    dirs.release()
    Repair(Files(), str(tmp_path), ("t", 0)).run()
    assert not check_directory(ReadOnlyFiles(), str(tmp_path)).is_damaged
    assert open_log(opened_dirs(tmp_path)).log_end_offset == 3


class Unreadable(ReadOnlyFiles):
    """A partition's directory without permission to read it."""

    def list_files(self, path: str) -> Iterable[tuple[str, int]]:
        if path.endswith("/t-0"):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), path)
        return super().list_files(path)


def test_a_directory_that_cannot_be_read_is_found(tmp_path: Path) -> None:
    stopped_cleanly(tmp_path)
    (partition,) = check_directory(Unreadable(), str(tmp_path)).partitions
    (finding,) = partition.findings
    assert finding.kind == "damage"
    assert "Permission denied" in finding.text
