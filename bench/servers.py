"""Broker processes for the bench and the tests: ours here, Kafka in `bench.real_kafka`, one small interface.

A server owns exactly one process, started by it and ended by its pid. `start` returns once clients are accepted:
Barnabas says so by its ready file, Kafka by answering ApiVersions on its port. A server may be killed and started again
on the same port and data directory.
"""

from __future__ import annotations

import contextlib
import os
import re
import signal
import subprocess
import sys
import time
from abc import ABC, abstractmethod
from collections.abc import Callable
from pathlib import Path
from types import TracebackType

import psutil

from bench.ports import free_port

ROOT = Path(__file__).resolve().parent.parent
START_TIMEOUT_S = 90.0
STOP_TIMEOUT_S = 30.0
PAUSE_TIMEOUT_S = 5.0
NOT_RUNNING = {psutil.STATUS_STOPPED, psutil.STATUS_ZOMBIE, psutil.STATUS_DEAD}


def _runs(process: psutil.Process) -> bool:
    try:
        return process.status() not in NOT_RUNNING
    except psutil.NoSuchProcess:
        return False


class Server(ABC):
    """One broker process. `port` is fixed after the first start, so that clients survive a restart."""

    name = "server"
    checkout = ROOT
    """The working directory of the process; `python -m barnabas` takes its code from there."""

    def __init__(self, data_dir: Path, *, config: dict[str, str] | None = None, port: int = 0) -> None:
        self.data_dir = Path(data_dir)
        self.log_dir = self.data_dir  # where the partitions' directories and the checkpoints are
        self.config = dict(config or {})
        self.host = "127.0.0.1"
        self.port = port
        self.process: subprocess.Popen[bytes] | None = None
        self.data_dir.mkdir(parents=True, exist_ok=True)
        self.log_path = self.data_dir.with_name(self.data_dir.name + ".log")

    @property
    def bootstrap(self) -> str:
        """`host:port` for clients."""
        return f"{self.host}:{self.port}"

    @property
    def pid(self) -> int:
        """The broker's process id."""
        assert self.process is not None, "not started"
        return self.process.pid

    def start(self) -> Server:
        """Start the process and return when it accepts clients."""
        self.spawn()
        self.wait_ready()
        return self

    def prepare(self) -> None:
        """Do now the preparation of the first start."""
        self._command()

    def spawn(self) -> None:
        """Start the process without waiting."""
        assert self.process is None or self.process.poll() is not None, "already running"
        command, environment = self._command()
        with self.log_path.open("ab") as log:
            self.process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=environment, cwd=self.checkout
            )

    @abstractmethod
    def _command(self) -> tuple[list[str], dict[str, str]]: ...

    @abstractmethod
    def _is_ready(self) -> bool: ...

    def wait_ready(self) -> None:
        """Wait until clients are accepted; raises with the log's tail when the process ends or takes too long."""
        assert self.process is not None
        deadline = time.monotonic() + START_TIMEOUT_S
        while not self._is_ready():
            if self.process.poll() is not None:
                raise RuntimeError(f"{self.name} ended with {self.process.returncode}:\n{self.log()[-4000:]}")
            if time.monotonic() > deadline:
                self.kill9()
                raise RuntimeError(f"{self.name} was not ready in {START_TIMEOUT_S} s:\n{self.log()[-4000:]}")
            time.sleep(0.003)

    def stop(self, timeout_s: float = STOP_TIMEOUT_S) -> int | None:
        """SIGTERM, wait, and SIGKILL when it takes too long. Returns the exit code."""
        if self.process is None:
            return None
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
            self.resume()  # a paused process does not handle signals
            try:
                self.process.wait(timeout_s)
            except subprocess.TimeoutExpired:
                self.kill9()
        return self.process.returncode

    def kill9(self) -> None:
        """SIGKILL: the crash of a process."""
        assert self.process is not None
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()

    def pause(self) -> None:
        """SIGSTOP: the process keeps memory and port, but uses no CPU. Returns when it is stopped."""
        self._signal_all(signal.SIGSTOP)
        deadline = time.monotonic() + PAUSE_TIMEOUT_S
        while any(_runs(process) for process in self.processes()):
            if time.monotonic() > deadline:
                raise RuntimeError(f"{self.name} could not be paused")
            time.sleep(0.001)

    def resume(self) -> None:
        """SIGCONT: continue after `pause`."""
        self._signal_all(signal.SIGCONT)

    def _signal_all(self, number: signal.Signals) -> None:
        for process in self.processes():
            with contextlib.suppress(psutil.NoSuchProcess):
                process.send_signal(number)

    def processes(self) -> list[psutil.Process]:
        """The broker's process and its children."""
        with contextlib.suppress(psutil.NoSuchProcess):
            process = psutil.Process(self.pid)
            return [process, *process.children(recursive=True)]
        return []

    def restart(self) -> Server:
        """Start again on the same port and data directory, after `stop` or `kill9`."""
        return self.start()

    def log(self) -> str:
        """The output of the process on stdout and stderr."""
        return self.log_path.read_text(errors="replace") if self.log_path.exists() else ""

    def _total(self, figure: Callable[[psutil.Process], float]) -> float:
        """The sum of a figure over all running processes; CPU time of ended ones is in their parent's."""
        total = 0.0
        for process in reversed(self.processes()):
            with contextlib.suppress(psutil.NoSuchProcess):
                total += figure(process)
        return total

    def cpu_s(self) -> float:
        """CPU seconds (user and system) of all processes of the broker, including ended ones."""
        return self._total(lambda process: float(sum(process.cpu_times()[:4])))

    def rss_bytes(self) -> int:
        """Resident memory of all its processes."""
        return int(self._total(lambda process: process.memory_info().rss))

    def read_bytes(self) -> int:
        """Bytes that all its processes have read by system calls, from files and sockets."""
        return int(self._total(lambda process: process.io_counters().read_chars))

    def __enter__(self) -> Server:
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()


class BarnabasServer(Server):
    """`barnabas serve` of this or another checkout, with the current interpreter."""

    name = "barnabas"

    def __init__(
        self, data_dir: Path, *, config: dict[str, str] | None = None, port: int = 0, checkout: Path = ROOT
    ) -> None:
        super().__init__(data_dir, config=config, port=port)
        self.checkout = checkout

    def _command(self) -> tuple[list[str], dict[str, str]]:
        self.port = self.port or free_port()
        self._ready_file = self.data_dir.with_name(self.data_dir.name + ".ready")
        self._ready_file.unlink(missing_ok=True)
        command = [sys.executable, "-m", "barnabas", "serve", "--listen", f"{self.host}:{self.port}"]
        command += ["--data-dir", str(self.data_dir), "--ready-file", str(self._ready_file)]
        for key, value in self.config.items():
            command += ["--set", f"{key}={value}"]
        environment = {name: value for name, value in os.environ.items() if not name.startswith("KAFKA_")}
        return command, environment

    def _is_ready(self) -> bool:
        try:
            text = self._ready_file.read_text().strip()
        except FileNotFoundError:
            return False
        found = re.fullmatch(r"(.+):(\d+)", text)
        if found is None:
            return False
        self.port = int(found[2])
        return True
