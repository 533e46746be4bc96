"""The JVM that runs Java programs which end by themselves, for all processes of a test run (`Host.java`).

    done = run(jars(pom), "org.apache.kafka.tools.TopicCommand", "--bootstrap-server", bootstrap, "--list")

A JVM and its first classes cost a second or two, more than most of these programs need themselves. The first process
that runs a program starts the JVM; others find it by its socket, which is in a directory of this user alone. It ends
some seconds after the last process that has used it. Programs that are killed, that have a dialogue, or that never end
have processes of their own (`command.java`).
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
import socket
import struct
import subprocess
import tempfile
import threading
import time
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

from tests.support.jvm.command import OPTIONS

SOURCE = Path(__file__).with_name("Host.java")
ROOT = Path(__file__).resolve().parents[3]
HEAP = "-Xmx768m"
OPENED = ("--add-opens", "java.base/java.lang=ALL-UNNAMED")
"""For the shutdown hooks of programs."""
RUN_TIMEOUT_S = 120.0
START_TIMEOUT_S = 60.0
SPARE_S = 60.0
"""How much longer than the program the host may take to answer."""


class Ran(NamedTuple):
    """How a program has ended, and what it printed."""

    code: int
    out: str
    errors: str


class HostError(Exception):
    """The JVM could not be started, or has ended while a program ran."""


def run(
    class_path: Iterable[Path | str],
    main_class: str,
    *arguments: str,
    stdin: str = "",
    options: Sequence[str] = (),
    timeout_s: float = RUN_TIMEOUT_S,
) -> Ran:
    """Run a program to its end; the code is -1 if it takes too long.

    The class path has no wildcards. Programs with other `options` of the JVM than the usual run in another one.
    """
    words = ["run", os.pathsep.join(map(str, class_path)), main_class, str(int(timeout_s * 1000)), stdin, *arguments]
    return Host.of(tuple(options)).ask(words, timeout_s, f"{main_class} {' '.join(arguments)}")


def compile_java(*arguments: str) -> Ran:
    """Run javac."""
    return Host.of(()).ask(["compile", *arguments], RUN_TIMEOUT_S, "javac")


class Host:
    """One JVM that this process uses."""

    _used: dict[tuple[str, ...], Host] = {}  # noqa: RUF012 - one for all
    _lock = threading.RLock()
    _processes: list[subprocess.Popen[bytes]] = []  # noqa: RUF012
    _spent_s = 0.0

    @classmethod
    def of(cls, options: tuple[str, ...]) -> Host:
        """The JVM with these options, started if there is none."""
        with cls._lock:
            if options not in cls._used:
                cls._used[options] = cls(options)
            return cls._used[options]

    @classmethod
    def spent_s(cls) -> float:
        """The CPU seconds that the JVMs have spent for this process, nearly so if others used them at the same time."""
        return cls._spent_s

    @classmethod
    def started(cls) -> set[int]:
        """The process ids of the JVMs that this process has started, for all."""
        return {process.pid for process in cls._processes}

    def __init__(self, options: tuple[str, ...]) -> None:
        java = shutil.which("java")
        if java is None:
            raise HostError("java is not installed")
        self._command = [java, HEAP, *OPTIONS, *options, *OPENED, str(SOURCE)]
        key = hashlib.sha256("\0".join([*self._command, SOURCE.read_text()]).encode()).hexdigest()[:16]
        self._path = _own_directory() / f"{key}.sock"
        self._log = self._path.with_suffix(".log")
        with self._path.with_suffix(".lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            self._held = self._hold() or self._start()

    def ask(self, words: Sequence[str], timeout_s: float, what: str) -> Ran:
        """The answer to a request; `what` names it in errors."""
        try:
            with self._connected(timeout_s + SPARE_S) as connection:
                _send(connection, words)
                code, out, errors, seconds = _receive(connection)
        except OSError as error:
            self._give_up()
            raise HostError(f"the JVM has not answered: {what}: {error!r}\n{self._end_of_log()}") from error
        with Host._lock:
            Host._spent_s += float(seconds)
        return Ran(int(code), out, errors)

    def _give_up(self) -> None:
        """The next process that needs a JVM starts another one, unless this one still answers."""
        with Host._lock:
            self._held.close()
            for options in [options for options, host in Host._used.items() if host is self]:
                del Host._used[options]

    def _connected(self, timeout_s: float) -> socket.socket:
        connection = socket.socket(socket.AF_UNIX)
        connection.settimeout(timeout_s)
        try:
            connection.connect(str(self._path))
        except OSError:
            connection.close()
            raise
        return connection

    def _hold(self) -> socket.socket | None:
        """An open connection, which keeps the JVM alive; None if there is no JVM."""
        try:
            connection = self._connected(START_TIMEOUT_S)
        except OSError:
            return None
        try:
            _send(connection, ["hold"])
            _receive(connection)
        except OSError:  # it has just ended
            connection.close()
            return None
        return connection

    def _start(self) -> socket.socket:
        self._path.unlink(missing_ok=True)
        with self._log.open("wb") as log:
            process = subprocess.Popen(
                [*self._command, str(self._path)],
                stdin=subprocess.DEVNULL, stdout=log, stderr=log, cwd=ROOT, start_new_session=True,
            )  # fmt: skip
        Host._processes.append(process)
        deadline = time.monotonic() + START_TIMEOUT_S
        while (held := self._hold()) is None:
            if process.poll() is not None or time.monotonic() > deadline:
                process.kill()
                raise HostError(f"the JVM does not listen:\n{self._end_of_log()}")
            time.sleep(0.02)
        return held

    def _end_of_log(self) -> str:
        return self._log.read_text(errors="replace")[-4000:] if self._log.exists() else ""


def _own_directory() -> Path:
    """A directory that only this user can use: any client of the socket can run programs. Its path is short."""
    directory = Path(tempfile.gettempdir(), f"barnabas-jvm-{os.getuid()}")
    directory.mkdir(mode=0o700, exist_ok=True)
    status = directory.lstat()
    if directory.is_symlink() or status.st_uid != os.getuid() or status.st_mode & 0o077:
        raise HostError(f"{directory} is not a directory of this user alone")
    return directory


def _send(connection: socket.socket, fields: Sequence[str]) -> None:
    encoded = [field.encode() for field in fields]
    connection.sendall(
        struct.pack(">i", len(encoded))
        + b"".join(struct.pack(">i", len(field_bytes)) + field_bytes for field_bytes in encoded)
    )


def _receive(connection: socket.socket) -> list[str]:
    with connection.makefile("rb") as stream:

        def exactly(count: int) -> bytes:
            data = stream.read(count)
            if len(data) < count:
                raise ConnectionResetError("the connection has ended")
            return data

        def number() -> int:
            return int(struct.unpack(">i", exactly(4))[0])

        return [exactly(number()).decode(errors="replace") for _ in range(number())]
