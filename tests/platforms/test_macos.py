"""Barnabas without what only Linux has (`darwin/sitecustomize.py`): a broker, its clients, and tests of its parts.

That is as far as macOS can be tried on Linux. kqueue and APFS are not tried (docs/compatibility.md).
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.processes.commands import run_command
from tests.support.processes.server import ROOT, BarnabasServer

DARWIN = str(Path(__file__).parent / "darwin")
LINES = 20_000


class DarwinServer(BarnabasServer):
    """A broker that believes to run on macOS, with the few open files that a process has there at first."""

    def _command(self) -> tuple[list[str], dict[str, str]]:
        command, environment = super()._command()
        syncs = str(self.data_dir.with_name("syncs"))
        return command, environment | {"PYTHONPATH": DARWIN, "DARWIN_SYNCS": syncs, "DARWIN_OPEN_FILES": "256"}

    def synced(self) -> set[str]:
        """The paths that F_FULLFSYNC was asked for."""
        return set(self.data_dir.with_name("syncs").read_text().splitlines())


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DarwinServer]:
    with DarwinServer(tmp_path_factory.mktemp("darwin") / "data") as started:
        assert isinstance(started, DarwinServer)
        yield started


def _run(program: str, **environment: str) -> str:
    ran = subprocess.run(
        [sys.executable, "-c", program],
        env={**os.environ, "PYTHONPATH": DARWIN, **environment},
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    return ran.stdout.strip()


def test_what_only_linux_has_is_missing() -> None:
    missing = _run(
        "import os, select, socket, sys\n"
        "names = [(os, 'pipe2'), (os, 'fdatasync'), (os, 'posix_fadvise'), (os, 'RWF_NOWAIT'), (os, 'sched_param'), "
        "(select, 'epoll'), (socket, 'MSG_MORE')]\n"
        "print(sys.platform, not any(hasattr(*name) for name in names))"
    )
    assert missing == "darwin True"


def test_the_broker_serves_is_killed_and_recovers(server: DarwinServer) -> None:
    text = "".join(f"{number}\n" for number in range(LINES))
    for _ in range(2):
        run_command("produce", "t", "-z", "none", stdin=text, bootstrap=server.bootstrap).ok()
        server.kill9()
        server.restart()
    read = run_command("consume", "t", "-o", "beginning", "-e", "-f", "%v\n", bootstrap=server.bootstrap)
    assert read.ok().stdout == text + text
    assert f"{server.data_dir}/t-0/00000000000000000000.log" in server.synced()
    assert f"{server.data_dir}/t-0" in server.synced(), "the names of new files are synced, too"
    assert "Traceback" not in server.log()
    assert "cannot be raised" not in server.log()


def test_a_second_broker_is_locked_out(server: DarwinServer) -> None:
    """One lock is taken: there flock and lockf exclude each other, even in one process."""
    second = run_command(*("serve", "--listen", "127.0.0.1:0", "--data-dir", str(server.data_dir)), PYTHONPATH=DARWIN)
    assert (second.code, second.stderr.count("\n")) == (2, 1)
    assert "in use by another broker" in second.stderr


def test_the_limit_of_open_files_is_raised_as_far_as_macos_allows() -> None:
    program = "from barnabas.broker.start import descriptor_limit as d; print(d.raise_descriptor_limit())"
    assert _run(program, DARWIN_OPEN_FILES="256") == "10240"


def test_a_disk_that_does_not_know_the_full_sync_gets_fsync(tmp_path: Path) -> None:
    sync = (
        "from barnabas.storage.files import Files\n"
        f"file = Files().open({str(tmp_path / 'f')!r})\n"
        "Files().sync(file)\n"
        f"Files().sync_dir({str(tmp_path)!r})\n"
        "print('synced')"
    )
    assert _run(sync, DARWIN_NETWORK_DISK="1") == "synced"


def _pytest(*paths: str) -> None:
    """Run tests in a process that is like one on macOS."""
    ran = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-m", "not soak and not jvm", *paths],
        env={**os.environ, "PYTHONPATH": DARWIN},
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=900,
        check=False,
    )
    assert ran.returncode == 0, ran.stdout[-8000:]
    assert " passed" in ran.stdout


def test_parts_that_differ_pass_their_tests() -> None:
    _pytest("tests/storage/directories/test_log_dirs.py", "tests/broker/net/test_reactor.py")


@pytest.mark.soak
@pytest.mark.timeout(1000)
def test_storage_and_broker_pass_their_tests() -> None:
    _pytest("tests/storage", "tests/broker")


@pytest.mark.soak
@pytest.mark.timeout(600)
def test_types_know_no_name_that_macos_lacks() -> None:
    """The type checker knows which names of the standard library exist on which system."""
    command = [sys.executable, "-m", "mypy", "--platform", "darwin", "--cache-dir", ".cache/mypy-darwin"]
    ran = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=500, check=False)
    assert ran.returncode == 0, ran.stdout
