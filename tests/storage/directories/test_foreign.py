"""Directories in a log directory that have a partition's name, but are not of one: never opened, renamed or removed."""

from __future__ import annotations

import errno
import itertools
from pathlib import Path

import pytest

from barnabas.storage.directories.foreign import is_of_partition
from barnabas.storage.files import Files
from barnabas.wire.errors import ErrorCode, KafkaError
from tests.support.cases import for_each
from tests.support.disks.failing_files import FailingFiles
from tests.support.logs.dirs_driver import OTHER_ID, append_batches, log_dirs, open_log, opened_dirs

UNIQUE = "0123456789abcdef" * 2


def photos(directory: Path, name: str = "photos-2024") -> Path:
    """A directory of somebody else; the path of a file in it."""
    (directory / name).mkdir(parents=True)
    (directory / name / "cat.jpg").write_text("a cat")
    return directory / name / "cat.jpg"


@for_each(
    ("names", "is_one"),
    [
        ((), True),  # a crash right after it was made
        (("partition.metadata",), True),
        (("partition.metadata.tmp",), True),
        (("leader-epoch-checkpoint",), True),
        (("leader-epoch-checkpoint.1.tmp",), True),  # a crash before the first rename: the partition was refused
        (("leader-epoch-checkpoint.x.tmp",), False),
        (("leader-epoch-checkpoint.1",), False),
        (("00000000000000000000.log", "notes.txt"), True),
        (("00000000000000000005.timeindex",), True),
        (("00000000000000000005.log.deleted",), True),
        (("00000000000000000000-0000000000.checkpoint",), True),  # of a new metadata log, by kafka-storage
        (("quorum-state",), True),
        (("meta.properties", "cleaner-offset-checkpoint"), False),
        (("0005.log",), False),
        (("directory/",), False),
    ],
)
def test_a_directory_is_told_by_its_files(names: tuple[str, ...], is_one: bool, tmp_path: Path) -> None:
    path = tmp_path / f"t-{abs(hash(names))}"
    path.mkdir()
    for name in names:
        (path / name).mkdir() if name.endswith("/") else (path / name).touch()
    assert is_of_partition(Files(), str(path)) is is_one


def test_they_are_left_as_they_are(tmp_path: Path) -> None:
    dirs = opened_dirs(tmp_path)
    append_batches(open_log(dirs), 1)
    append_batches(open_log(dirs, "gone"), 1)
    dirs.close()
    files = [
        photos(tmp_path, name)
        for name in ("photos-2024", "to-delete", f"a-1.{UNIQUE}-delete", f"b-1.{UNIQUE}-future", "c-delete")
    ]
    dirs = opened_dirs(tmp_path)
    open_log(dirs)
    assert dirs.leave_foreign() == [str(tmp_path / "photos-2024")]
    assert list(dirs.not_opened()) == [("gone", 0)], "that of a partition is a stray"
    dirs.forget_missing()
    dirs.close()
    assert all(file.exists() for file in files)


def test_one_that_cannot_be_read_is_no_stray(tmp_path: Path) -> None:
    """One failing file operation must not prevent a start."""

    dirs = opened_dirs(tmp_path)
    append_batches(open_log(dirs, "gone"), 1)
    dirs.close()
    dirs = opened_dirs(tmp_path)
    dirs.files = FailingFiles(is_synced=False, errors={"list_files": errno.EACCES})
    assert dirs.leave_foreign() == [str(tmp_path / "gone-0")]
    assert list(dirs.not_opened()) == []
    dirs.release()


def test_a_new_directory_may_have_files_of_others(tmp_path: Path) -> None:
    """It was refused as one with partitions that has lost its `meta.properties`."""
    photos(tmp_path)
    opened_dirs(tmp_path).close()


def test_a_partition_with_the_name_of_one_is_offline(tmp_path: Path) -> None:
    file = photos(tmp_path, "broker-1")
    for is_known in (True, False):
        dirs = opened_dirs(tmp_path)
        if is_known:
            dirs.leave_foreign()
        with pytest.raises(KafkaError, match=r"broker-1 has no file of a partition.*move it away") as error:
            open_log(dirs, "broker", 1, OTHER_ID)
        assert error.value.code == ErrorCode.KAFKA_STORAGE_ERROR
        new = dirs.new_directories()
        assert dirs.place("broker", 1, OTHER_ID, new) == []
        assert len(new) == 0
        dirs.delete_offline("broker", 1, now=0.0)
        dirs.close()
        assert [path.name for path in file.parent.iterdir()] == ["cat.jpg"]


@pytest.mark.parametrize("holder", [0, 1])
def test_of_two_directories_the_one_of_the_partition_counts(holder: int, tmp_path: Path) -> None:
    """The other one was removed, or neither was served."""
    paths = (tmp_path / "a", tmp_path / "b")
    holder_dirs = opened_dirs(paths[holder])
    append_batches(open_log(holder_dirs), 3)
    holder_dirs.close()
    file = photos(paths[1 - holder], "t-0")
    both = log_dirs(*paths, ids=itertools.count(7))
    both.open(1)
    assert open_log(both).log_end_offset == 3
    both.close()
    assert file.exists()


def test_what_was_renamed_for_deletion_is_removed(tmp_path: Path) -> None:
    dirs = opened_dirs(tmp_path)
    append_batches(open_log(dirs), 1)
    dirs.delete_log("t", 0, now=0.0)
    dirs.close()
    assert len(list(tmp_path.glob("t-0.*-delete"))) == 1
    opened_dirs(tmp_path).close()
    assert list(tmp_path.glob("t-0.*-delete")) == []
