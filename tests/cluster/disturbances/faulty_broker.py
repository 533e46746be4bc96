"""A broker's process whose disk fails as a file says: this module is run in place of `barnabas`.

`DATA_DIR.faults`, beside the data directory, has a line `OPERATION ERRNO PATH` for each fault: operations (write, read,
sync, open) on paths that contain PATH fail with that error. A disk whose writes fail for want of space has none free.
`FaultyNode` is such a process in a cluster, and plants and removes its faults.
"""

from __future__ import annotations

import errno
import os
import sys
import time
from pathlib import Path

from barnabas.storage.files import Buffer, File, Files
from tests.support.cluster.clusters import BrokerNode

LOOK_S = 0.05
"""How often the file is looked at, seconds."""


class Faults:
    """The faults that a file names."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._looked_at = 0.0
        self._faults: list[tuple[str, int, str]] = []

    def of(self, operation: str, path: str) -> int:
        """The error number with which an operation on a path fails now; 0 if it does not."""
        if (now := time.monotonic()) - self._looked_at > LOOK_S:
            self._looked_at = now
            self._faults = self._read()
        return next((code for name, code, part in self._faults if name == operation and part in path), 0)

    def _read(self) -> list[tuple[str, int, str]]:
        try:
            descriptor = os.open(self._path, os.O_RDONLY)
        except FileNotFoundError:
            return []
        try:
            lines = os.read(descriptor, 1 << 16).decode().splitlines()
        finally:
            os.close(descriptor)
        return [(name, int(code), part) for name, code, part in (line.split(" ", 2) for line in lines)]

    def install(self) -> None:
        """Have this process' files fail."""
        write_at, read_at, sync = Files.write_at, Files.read_at, Files.sync
        opened, volume = Files.open, Files.volume

        def check(operation: str, path: str) -> None:
            if code := self.of(operation, path):
                raise OSError(code, os.strerror(code), path)

        def write_or_fail(files: Files, file: File, data: Buffer, position: int) -> None:
            check("write", file.path)
            write_at(files, file, data, position)

        def read_or_fail(files: Files, file: File, length: int, position: int) -> bytes:
            check("read", file.path)
            return read_at(files, file, length, position)

        def sync_or_fail(files: Files, file: File) -> None:
            check("sync", file.path)
            sync(files, file)

        def open_or_fail(files: Files, path: str) -> File:
            check("open", path)
            return opened(files, path)

        def volume_if_not_full(files: Files, path: str) -> tuple[int, int]:
            size, free = volume(files, path)
            return size, 0 if self.of("write", path) in {errno.ENOSPC, errno.EDQUOT} else free

        Files.write_at, Files.read_at, Files.sync = write_or_fail, read_or_fail, sync_or_fail  # type: ignore[method-assign]
        Files.open, Files.volume = open_or_fail, volume_if_not_full  # type: ignore[method-assign]


def faults_of(data_dir: Path) -> Path:
    """The file that says how a broker's disk fails."""
    return data_dir.with_name(f"{data_dir.name}.faults")


class FaultyNode(BrokerNode):
    """A process with the role of a broker, whose disk can be made to fail."""

    def _command(self) -> tuple[list[str], dict[str, str]]:
        (python, *arguments), environment = super()._command()
        assert arguments[:2] == ["-m", "barnabas"]
        return [python, "-m", "tests.cluster.disturbances.faulty_broker", *arguments[2:]], environment

    def fail(self, operation: str, code: int, path: Path) -> None:
        """Have operations on paths below this one fail from now on."""
        faults = faults_of(self.data_dir)
        written = faults.with_name(f"{faults.name}.new")
        written.write_text(f"{operation} {code} {path}\n")
        written.rename(faults)

    def mend(self) -> None:
        """Have nothing fail any more."""
        faults_of(self.data_dir).unlink(missing_ok=True)


def main() -> None:
    """Run `barnabas` with files that fail."""
    from barnabas.cli import main as barnabas

    data_dir = Path(sys.argv[sys.argv.index("--data-dir") + 1])
    Faults(str(faults_of(data_dir))).install()
    sys.exit(barnabas())


if __name__ == "__main__":
    main()
