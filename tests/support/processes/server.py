"""Broker processes for the benchmark and the tests: Barnabas here, Kafka in `kafka.py`, with one interface.

A server owns one process. `start` returns when clients are accepted: Barnabas then writes its ready file, Kafka answers
ApiVersions. A server can be killed and started again on the same port and data directory.
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

from tests.support.processes.ports import free_port
from tests.support.processes.security import ClientSettings, Security

ROOT = Path(__file__).resolve().parents[3]
START_TIMEOUT_S = 90.0
STOP_TIMEOUT_S = 60.0
PAUSE_TIMEOUT_S = 30.0
TEST_VARIABLES = {
    f"BARNABAS_{name}"
    for name in ("CRASH_STATES", "EXAMPLES", "FAULTS", "FUZZ", "KILLS", "MUTANTS_DAY", "SEED", "SEEDS", "WORKERS")
}
"""Variables that set the size of a test run; a broker would take them for unknown config keys."""
NOT_RUNNING = {psutil.STATUS_STOPPED, psutil.STATUS_ZOMBIE, psutil.STATUS_DEAD}


def _runs(process: psutil.Process) -> bool:
    try:
        return process.status() not in NOT_RUNNING
    except psutil.NoSuchProcess:
        return False


class Server(ABC):
    """One broker process. `port` does not change after the first start, so clients can reconnect after a restart.

    `ports` has the ports of further listeners by security protocol; it is set before the first start.
    """

    name = "server"
    checkout = ROOT
    """The working directory of the process; `python -m barnabas` takes its code from there."""

    def __init__(self, data_dir: Path, *, config: dict[str, str] | None = None, port: int = 0) -> None:
        self.data_dir = Path(data_dir)
        self.log_dir = self.data_dir  # the directory of the partitions and the checkpoints
        self.config = dict(config or {})
        self.host = "127.0.0.1"
        self.port = port
        self.security: Security | None = None
        """How clients connect to `port`; None: without security."""
        self.own_listener: ClientSettings | None = None
        """The listener and the user of the tests themselves, if `port` is one of a secured listener."""
        self.ports: dict[str, int] = {}
        self.process: subprocess.Popen[bytes] | None = None
        self.data_dir.mkdir(parents=True, exist_ok=True)
        self.log_path = self.data_dir.with_name(self.data_dir.name + ".log")

    @property
    def bootstrap(self) -> str:
        """`host:port` for clients."""
        return f"{self.host}:{self.port}"

    @property
    def clients(self) -> ClientSettings:
        """The settings of clients."""
        return ClientSettings(self.bootstrap, self.security)

    @property
    def administration(self) -> ClientSettings:
        """The settings of the tests' own client, whose user is allowed everything."""
        return self.own_listener or self.clients

    @property
    def addresses(self) -> list[str]:
        """`host:port` of each broker, in the order of their ids."""
        return self.bootstrap.split(",")

    @property
    def pid(self) -> int:
        """The broker's process id."""
        assert self.process is not None, "not started"
        return self.process.pid

    @property
    def is_running(self) -> bool:
        """Whether the process has been started and has not ended."""
        return self.process is not None and self.process.poll() is None

    def start(self) -> Server:
        """Start the process and wait until it accepts clients."""
        self.spawn()
        self.wait_ready()
        return self

    def prepare(self) -> None:
        """Prepare the first start: choose the port, and format Kafka's data directory."""
        self._command()

    def spawn(self) -> None:
        """Start the process without waiting."""
        assert self.process is None or self.process.poll() is not None, "already running"
        command, environment = self._command()
        self.process = self._launch(command, environment)

    def _launch(self, command: list[str], environment: dict[str, str]) -> subprocess.Popen[bytes]:
        with self.log_path.open("ab") as log:
            return subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=environment, cwd=self.checkout
            )

    def _listeners(self) -> str:
        """The value of `listeners` when there are further ones."""
        return ",".join(f"{name}://{self.host}:{port}" for name, port in {"PLAINTEXT": self.port, **self.ports}.items())

    @abstractmethod
    def _command(self) -> tuple[list[str], dict[str, str]]: ...

    @abstractmethod
    def _is_ready(self) -> bool: ...

    def wait_ready(self) -> None:
        """Wait until clients are accepted; RuntimeError with the end of the log if the process exits or is too slow."""
        assert self.process is not None
        deadline = time.monotonic() + START_TIMEOUT_S
        while not self._is_ready():
            if self.process.poll() is not None:
                raise RuntimeError(f"{self.name} exited with {self.process.returncode}:\n{self.log()[-4000:]}")
            if time.monotonic() > deadline:
                self.kill9()
                raise RuntimeError(f"{self.name} was not ready in {START_TIMEOUT_S} s:\n{self.log()[-4000:]}")
            time.sleep(0.003)

    def terminate(self) -> None:
        """SIGTERM, without waiting for the end; nothing if it does not run."""
        if self.is_running:
            assert self.process is not None
            self.process.send_signal(signal.SIGTERM)
            self.resume()  # a paused process handles no signals

    def stop(self, timeout_s: float = STOP_TIMEOUT_S) -> int | None:
        """SIGTERM, wait, and SIGKILL when it takes too long. Returns the exit code."""
        if self.process is None:
            return None
        if self.process.poll() is None:
            self.terminate()
            try:
                self.process.wait(timeout_s)
            except subprocess.TimeoutExpired:
                self.kill9()
        return self.process.returncode

    def kill9(self) -> None:
        """Kill the process with SIGKILL."""
        assert self.process is not None
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()

    def pause(self) -> None:
        """Pause the processes with SIGSTOP, and wait until they are stopped."""
        self._signal_all(signal.SIGSTOP)
        deadline = time.monotonic() + PAUSE_TIMEOUT_S
        while any(_runs(process) for process in self.processes()):
            if time.monotonic() > deadline:
                raise RuntimeError(f"{self.name} could not be paused")
            time.sleep(0.001)

    def resume(self) -> None:
        """Continue after `pause` (SIGCONT)."""
        self._signal_all(signal.SIGCONT)

    def _signal_all(self, number: signal.Signals) -> None:
        for process in self.processes():
            with contextlib.suppress(psutil.NoSuchProcess):
                process.send_signal(number)

    def processes(self) -> list[psutil.Process]:
        """The broker's process and its descendants."""
        with contextlib.suppress(psutil.NoSuchProcess):
            process = psutil.Process(self.pid)
            return [process, *process.children(recursive=True)]
        return []

    def restart(self) -> Server:
        """Start again on the same port and data directory, after `stop` or `kill9`."""
        return self.start()

    def log(self) -> str:
        """The output of the process, stdout and stderr."""
        return self.log_path.read_text(errors="replace") if self.log_path.exists() else ""

    def _total(self, figure: Callable[[psutil.Process], float]) -> float:
        """The sum of a figure over all processes, except those that exit during the call."""
        total = 0.0
        for process in reversed(self.processes()):
            with contextlib.suppress(psutil.NoSuchProcess):
                total += figure(process)
        return total

    def cpu_s(self) -> float:
        """CPU seconds, user and system, of all processes, including exited children."""
        return self._total(lambda process: float(sum(process.cpu_times()[:4])))

    def rss_bytes(self) -> int:
        """Resident memory of all processes, bytes."""
        return int(self._total(lambda process: process.memory_info().rss))

    def read_bytes(self) -> int:
        """Bytes read with system calls by all processes, from files (also from the page cache) and sockets."""
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
        self,
        data_dir: Path,
        *,
        config: dict[str, str] | None = None,
        port: int = 0,
        checkout: Path = ROOT,
        listener: str = "PLAINTEXT",
    ) -> None:
        """`listener` is the security protocol of the only listener; empty if `config` has `listeners`."""
        super().__init__(data_dir, config=config, port=port)
        self.checkout = checkout
        self.listener = listener

    def _command(self) -> tuple[list[str], dict[str, str]]:
        self.port = self.port or free_port()
        self._ready_file = self.data_dir.with_name(self.data_dir.name + ".ready")
        self._ready_file.unlink(missing_ok=True)
        command = [sys.executable, "-m", "barnabas", "serve"]
        if self.ports:
            command += ["--set", f"listeners={self._listeners()}"]
        elif self.listener == "PLAINTEXT":
            command += ["--listen", f"{self.host}:{self.port}"]
        elif self.listener:
            command += ["--set", f"listeners={self.listener}://{self.host}:{self.port}"]
        command += ["--data-dir", str(self.data_dir), "--ready-file", str(self._ready_file)]
        for key, value in self.config.items():
            command += ["--set", f"{key}={value}"]
        environment = {
            name: value
            for name, value in os.environ.items()
            if not name.startswith("KAFKA_") and name not in TEST_VARIABLES
        }
        return command, environment

    def _is_ready(self) -> bool:
        try:
            text = self._ready_file.read_text().strip()
        except FileNotFoundError:
            return False
        match = re.fullmatch(r"(.+):(\d+)", text)
        if match is None:
            return False
        self.port = int(match[2])
        return True
