"""Files in memory behave as files of the system, before and after they are published, and while that fails."""

from __future__ import annotations

import errno
import random
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from barnabas.kit.clusters import memory_files
from barnabas.kit.clusters.memory_files import MemoryFiles
from barnabas.storage.files import File, Files, UnsyncedFiles
from tests.support.cases import for_each
from tests.support.disks.failing_calls import FailingCalls

STEPS = 300


class Side:
    """One of the two kinds of files, below a directory of its own, and the open files there."""

    def __init__(self, files: Files, root: str) -> None:
        self.files = files
        self.root = root
        self.opened: list[File] = []
        files.mkdirs(root)

    def outcome(self, operation: str, *arguments: Any) -> object:
        """What an operation gives: its result, or the number of its error."""
        try:
            return getattr(self, operation)(*arguments)
        except OSError as error:
            return errno.errorcode[error.errno or 0]

    def path(self, name: str) -> str:
        """A path below the directory."""
        return f"{self.root}/{name}" if name else self.root

    def open(self, name: str) -> None:
        """Open a file, which is made if it is missing."""
        self.opened.append(self.files.open(self.path(name)))

    def open_read(self, name: str) -> bytes:
        """Open a file that exists, and read from it."""
        return self.files.open_read(self.path(name)).read(20, 5)

    def write(self, at: int, data: bytes, position: int) -> None:
        """Write to an open file."""
        self.files.write_at(self.opened[at], data, position)

    def truncate(self, at: int, size: int) -> None:
        """Set the size of an open file."""
        self.files.truncate(self.opened[at], size)

    def look(self, at: int) -> object:
        """What an open file has, as it is read in both ways, and whether it has its name."""
        file = self.opened[at]
        whole = self.files.read_at(file, 10_000, 0)
        return whole, file.read(7, 3), self.files.size(file), self.files.is_named(file)

    def close(self, at: int) -> None:
        """Close an open file."""
        self.opened.pop(at).close()

    def rename(self, old: str, new: str) -> None:
        """Give a file or directory another name."""
        self.files.rename(self.path(old), self.path(new))

    def unlink(self, name: str) -> None:
        """Remove a file."""
        self.files.unlink(self.path(name))

    def mkdirs(self, name: str) -> None:
        """Make a directory."""
        self.files.mkdirs(self.path(name))

    def remove_tree(self, name: str) -> None:
        """Remove a directory."""
        self.files.remove_tree(self.path(name))

    def read_file(self, name: str) -> bytes:
        """What a file has."""
        return self.files.read_file(self.path(name))

    def set_modified(self, name: str, now_ms: int) -> int:
        """Set the time of a file, and ask for it."""
        self.files.set_modified_ms(self.path(name), now_ms)
        return self.files.modified_ms(self.path(name))

    def names(self, name: str) -> object:
        """The content of a directory."""
        files = sorted(self.files.list_files(self.path(name)))
        return files, list(self.files.list_dirs(self.path(name))), self.files.exists(self.path(name))


DIRECTORIES = ("a-0", "b-0", "c-0")
NAMES = tuple(f"{folder}/{name}" for folder in DIRECTORIES for name in ("x.log", "x.index"))


def _step(chosen: random.Random, opened: int) -> tuple[Any, ...]:
    """An operation with its arguments."""
    kinds = ["open", "open", "open_read", "rename", "move", "unlink", "mkdirs", "remove_tree", "read_file", "names"]
    kinds += ["set_modified", *(["write", "write", "write", "truncate", "look", "look", "close"] if opened else [])]
    kind = chosen.choice(kinds)
    at = chosen.randrange(opened) if opened else 0
    name, folder = chosen.choice(NAMES), chosen.choice(DIRECTORIES)
    match kind:
        case "write":
            return kind, at, chosen.randbytes(chosen.randrange(40)), chosen.randrange(60)
        case "truncate":
            return kind, at, chosen.randrange(60)
        case "look" | "close":
            return kind, at
        case "rename":
            return kind, name, chosen.choice([other for other in NAMES if other != name])
        case "move":
            return "rename", folder, chosen.choice([f"{folder}.deleted", *DIRECTORIES])
        case "mkdirs" | "remove_tree":
            return kind, folder
        case "names":
            return kind, chosen.choice(["", folder])
        case "set_modified":
            return kind, name, chosen.randrange(10**12)
    return kind, name


@for_each("seed", range(40))
def test_they_do_what_the_systems_files_do(tmp_path: Path, seed: int) -> None:
    """Random operations; at a random moment, or never, all is published."""
    chosen = random.Random(seed)
    real = Side(UnsyncedFiles(), str(tmp_path / "real"))
    memory = Side(files := MemoryFiles(str(tmp_path / "memory")), str(tmp_path / "memory"))
    published_at = chosen.randrange(2 * STEPS)
    for number in range(STEPS):
        if number == published_at:
            files.publish()
        step = _step(chosen, len(real.opened))
        assert memory.outcome(*step) == real.outcome(*step), f"seed {seed}, step {number}: {step}"
        for side in (real, memory):
            side.opened = side.opened[-20:]
    assert (tmp_path / "memory").exists() == files.is_published
    files.publish()
    assert _tree(tmp_path / "memory") == _tree(tmp_path / "real"), f"seed {seed}"


def _tree(folder: Path) -> dict[str, bytes | None]:
    return {str(path.relative_to(folder)): path.read_bytes() if path.is_file() else None for path in folder.rglob("*")}


def _with_a_record(root: Path) -> tuple[MemoryFiles, File]:
    files = MemoryFiles(str(root))
    files.mkdirs(f"{root}/orders-0")
    file = files.open(f"{root}/orders-0/0.log")
    files.write_at(file, b"first", 0)
    return files, file


def test_a_publish_that_fails_changes_nothing(tmp_path: Path) -> None:
    number = 0
    while True:
        number += 1
        root = tmp_path / f"{number}"
        files, file = _with_a_record(root)
        with FailingCalls(root, number, errno.ENOSPC) as failing, suppress(OSError):
            files.publish()
        if not failing.has_failed:
            break
        if files.is_published:
            continue  # what has failed was not needed
        assert not root.exists()
        files.write_at(file, b" second", 5)
        files.publish()
        assert (root / "orders-0/0.log").read_bytes() == b"first second"
    assert number > 4


@pytest.mark.parametrize(
    "grow",
    [
        lambda files, file: files.write_at(file, bytes(memory_files.MOST_BYTES), 5),
        lambda files, file: [files.mkdirs(f"{files.root}/{index}") for index in range(memory_files.MOST_NAMES)],
    ],
    ids=["bytes", "names"],
)
def test_what_is_too_much_goes_to_the_disk(tmp_path: Path, grow: Callable[[MemoryFiles, File], object]) -> None:
    files, file = _with_a_record(tmp_path / "data")
    assert not files.is_published
    grow(files, file)
    assert files.is_published
    files.write_at(file, b"FIRST", 0)
    assert (tmp_path / "data/orders-0/0.log").read_bytes()[:5] == b"FIRST"


def test_what_was_discarded_is_not_written_any_more(tmp_path: Path) -> None:
    files, file = _with_a_record(tmp_path / "data")
    files.discard()
    files.write_at(file, bytes(memory_files.MOST_BYTES), 5)
    files.publish()
    assert list(tmp_path.iterdir()) == []
