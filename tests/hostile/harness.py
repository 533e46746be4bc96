"""The healthy client beside an attack, and the measurements of the broker: CPU seconds, memory, its log.

A wait is a lower bound: from a reading of the broker's CPU clock after the request was sent, to a reading after which
the response was seen not to have arrived. So a client that gets no processor for a while counts nothing that the broker
did not spend, and a stall that is found is one.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from barnabas.wire.batches.records import build_batch
from barnabas.wire.messages.api_versions import ApiVersionsRequest
from barnabas.wire.messages.fetch import FetchRequest, FetchRequestFetchPartition, FetchRequestFetchTopic
from barnabas.wire.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from tests.support.processes.warm_server import WarmServer
from tests.support.requests.absurd_values import HEALTHY_TOPIC
from tests.support.requests.raw_client import RawClient

STALL_LIMIT_S = 0.250
"""How long a healthy client may wait, in CPU seconds of the broker."""
MEMORY_LIMIT = 300 << 20
"""The peak of the broker's resident memory during an attack, bytes."""
CLIENT_ID = "healthy"
WAIT_S = 60.0
CALM_PAUSE_S = 0.1
NOTICED = "shutting down on SIGTERM"
NOTICE_LIMIT_S = 0.250
STACKS = Path(__file__).parent / "stacks"
CPUCLOCK_SCHED = 2  # linux/posix-timers.h


def cpu_s(pid: int) -> float:
    """CPU seconds of all threads of a process, also of ended ones, in nanosecond resolution (clock_getcpuclockid)."""
    return time.clock_gettime((~pid << 3) | CPUCLOCK_SCHED)


class StalledError(Exception):
    """The healthy client waits too long already: the attack has succeeded, and its response does not matter."""


def needs_linux() -> None:
    """Skip where there are no CPU clocks and no memory figures of other processes."""
    if not sys.platform.startswith("linux") or not Path("/proc/self/clear_refs").exists():
        pytest.skip("the CPU time and the memory of another process are measured as on Linux")


def needs_plaintext(victim: Victim) -> None:
    """Skip where more connections are made than are accepted, if each needs answers to begin: `floods` has those."""
    if victim.listener != "PLAINTEXT":
        pytest.skip("a connection that is not accepted cannot do its handshake")


class Watched:
    """The process of a broker under attack as it is observed, and how its clients connect."""

    pid: int
    shows_stacks = False
    """Whether SIGUSR2 has it write its stacks to the log; a JVM may end with the signal."""

    def secure(self, client: RawClient, *, logs_in: bool = True) -> None:
        """Do what a new connection has to do before its first request: nothing here."""

    def cpu(self) -> float:
        """CPU seconds of the process so far."""
        return cpu_s(self.pid)

    def status(self, name: str) -> int:
        """A figure of /proc/PID/status, in bytes: VmRSS, VmHWM."""
        for line in Path(f"/proc/{self.pid}/status").read_text().splitlines():
            if line.startswith(name + ":"):
                return int(line.split()[1]) * 1024
        raise KeyError(name)

    def threads(self) -> int:
        """How many threads the process has."""
        return len(list(Path(f"/proc/{self.pid}/task").iterdir()))

    def forget_peak(self) -> None:
        """Let VmHWM, the peak of the resident memory, begin at the present."""
        Path(f"/proc/{self.pid}/clear_refs").write_text("5")


class Victim(Watched, WarmServer):  # type: ignore[misc]  # a server's pid is a property
    """A broker under attack. `files` is the limit of its open files, if given."""

    shows_stacks = True

    def __init__(
        self, data_dir: Path, *, config: dict[str, str] | None = None, files: int | None = None, log_level: str = "info"
    ) -> None:
        super().__init__(data_dir, config={"barnabas.log.sync": "os"} | (config or {}))
        self._files = files
        self._log_level = log_level

    def _command(self) -> tuple[list[str], dict[str, str]]:
        command, environment = super()._command()
        command += ["--log-level", self._log_level]
        environment["PYTHONPATH"] = str(STACKS)
        if self._files is not None:
            command = ["sh", "-c", f'ulimit -n {self._files}; exec "$@"', "sh", *command]
        return command, environment

    def start_if_ended(self) -> None:
        """Start it again, if an attack has ended it."""
        if not self.is_running:
            self.start()

    def tracebacks(self, start: int = 0) -> str:
        """What the log has from position `start` on that only a bug writes, or an empty string."""
        text = self.log()[start:]
        at = text.find("Traceback (most recent call last)")
        return text[max(0, at - 500) : at + 3000] if at >= 0 else ""


class HealthyClient:
    """Sends ApiVersions, Produce and Fetch in a loop, in a thread of its own. `stall_s` is its longest wait."""

    def __init__(self, victim: Victim, pause_s: float = 0.0) -> None:
        """`pause_s` is the time between two rounds, seconds."""
        self._pid = victim.pid
        self._shows_stacks = victim.shows_stacks
        self._pause_s = pause_s
        self._client = RawClient(victim.bootstrap, CLIENT_ID)
        victim.secure(self._client)
        self._make_topic()
        self._batch = build_batch([(int(time.time() * 1000), None, b"healthy")])  # retention deletes old records
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="healthy client", daemon=True)
        self.stall_s = 0.0
        self.stalled_in = ""
        self.rounds = 0
        self.failure: BaseException | None = None
        self.at_end: list[Callable[[], None]] = []
        """Called when the block beside the client ends: attackers close their connections."""

    def _make_topic(self) -> None:
        try:
            self._client.create_topic(HEALTHY_TOPIC)
        except AssertionError as error:
            if "error_code=36" not in str(error):  # it exists
                raise

    def start(self) -> None:
        """Begin."""
        self._round()  # imports and first use are not a wait for others
        self.stall_s = 0.0
        self._thread.start()

    def stop(self) -> None:
        """End after the request in progress; raises what the loop has failed with."""
        self._stop.set()
        self._thread.join(WAIT_S)
        self.close()
        if self.failure is not None:
            raise self.failure
        assert not self._thread.is_alive(), "the healthy client waits for a response that does not come"

    def close(self) -> None:
        """Close the connection."""
        self._client.close()

    def settle(self) -> None:
        """Wait until the broker uses less than a fifth of a processor for a while: the attack is worked off."""
        pause_s, self._pause_s = self._pause_s, CALM_PAUSE_S
        deadline = time.monotonic() + WAIT_S
        while True:
            before, rounds = cpu_s(self._pid), self.rounds
            self.wait_rounds(2)
            spent = cpu_s(self._pid) - before
            if spent < CALM_PAUSE_S / 5 * (self.rounds - rounds):
                break
            assert time.monotonic() < deadline, "the broker stays busy"
        self._pause_s = pause_s

    def wait_rounds(self, count: int, *, fail_when_stalled: bool = True) -> None:
        """Wait until the client has done `count` more rounds. StalledError once it is stalled, if that fails."""
        goal = self.rounds + count
        deadline = time.monotonic() + WAIT_S
        while self.rounds < goal and self.failure is None:
            if fail_when_stalled and self.is_stalled:
                raise StalledError
            assert time.monotonic() < deadline, f"no {count} rounds of the healthy client in {WAIT_S} s"
            time.sleep(0.005)

    @property
    def is_stalled(self) -> bool:
        """Whether the limit is already exceeded, or the client has failed."""
        return self.stall_s > STALL_LIMIT_S or self.failure is not None

    def _run(self) -> None:
        try:
            while not self._stop.wait(self._pause_s):
                self._round()
        except BaseException as error:
            self.failure = error

    def _round(self) -> None:
        self._ask(ApiVersionsRequest(), 3)
        data = PartitionProduceData(index=0, records=self._batch)
        topic = TopicProduceData(name=HEALTHY_TOPIC, partition_data=[data])
        produced = self._ask(ProduceRequest(acks=1, timeout_ms=10_000, topic_data=[topic]), 9)
        (appended,) = produced.responses[0].partition_responses
        assert appended.error_code == 0, f"the healthy client got {appended}"
        offset = appended.base_offset
        requested = FetchRequestFetchPartition(partition=0, fetch_offset=offset, partition_max_bytes=1000)
        topic = FetchRequestFetchTopic(topic=HEALTHY_TOPIC, partitions=[requested])
        fetched = self._ask(FetchRequest(max_wait_ms=0, min_bytes=0, max_bytes=1000, topics=[topic]), 12)
        (partition,) = fetched.responses[0].partitions
        assert len(partition.records) == len(self._batch), f"the healthy client got {partition} at offset {offset}"
        self.rounds += 1

    def _ask(self, request, version):
        client = self._client
        client.send(request, version)
        began = last = cpu_s(self._pid)
        poll = select.poll()
        poll.register(client.socket, select.POLLIN)
        deadline = time.monotonic() + WAIT_S
        is_shown = False
        while True:
            now = cpu_s(self._pid)
            if poll.poll(1):
                break
            last = now
            if last - began > STALL_LIMIT_S * 0.8 and not is_shown:
                is_shown = True
                if self._shows_stacks:
                    os.kill(self._pid, signal.SIGUSR2)
            if last - began > self.stall_s:
                self._note(last - began, request)
            assert time.monotonic() < deadline, f"no response to the healthy client's {type(request).__name__}"
        return client.read()

    def _note(self, stall_s: float, request: object) -> None:
        self.stall_s = stall_s
        self.stalled_in = type(request).__name__


def memory_peak_is_below(victim: Victim, limit: int) -> None:
    """AssertionError if the resident memory has been above the limit since `forget_peak`."""
    peak = victim.status("VmHWM")
    assert peak < limit, f"the broker's memory was {peak >> 20} MB at its peak, {limit >> 20} MB are allowed"


@contextlib.contextmanager
def beside_healthy_client(
    victim: Victim, *, memory_limit: int = MEMORY_LIMIT, stall_limit_s: float = STALL_LIMIT_S
) -> Iterator[HealthyClient]:
    """A block with an attack: a healthy client works beside it, and afterwards everything named above is checked.

    A broker that fails one of the checks is killed: the next test's fixture starts it again.
    """
    log_start = len(victim.log())
    healthy = HealthyClient(victim)
    healthy.start()
    victim.forget_peak()
    try:
        with contextlib.suppress(StalledError):
            yield healthy
            healthy.wait_rounds(3)
            healthy.stop()
        assert healthy.stall_s <= stall_limit_s, (
            f"a healthy client's {healthy.stalled_in} waited for {healthy.stall_s:.3f} s of the broker's CPU, "
            f"{stall_limit_s} s are allowed\n{victim.log()[log_start:][-4000:]}"
        )
        memory_peak_is_below(victim, memory_limit)
        assert not victim.tracebacks(log_start), victim.tracebacks(log_start)
    except BaseException:
        victim.kill9()
        with contextlib.suppress(BaseException):
            healthy.stop()
        raise
    finally:
        for close in healthy.at_end:
            close()


def stop_in_grace(victim: Victim, limit_s: float) -> None:
    """SIGTERM: the broker must notice it soon, and end with code 0; it may use `limit_s` of CPU for that."""
    process = victim.process
    assert process is not None
    log_start = len(victim.log())
    before = victim.cpu()
    process.terminate()
    is_noticed = False
    while process.poll() is None:
        spent = 0.0
        with contextlib.suppress(OSError):
            spent = victim.cpu() - before  # read before it is seen that the broker goes on
        is_noticed = is_noticed or NOTICED in victim.log()[log_start:]
        if (spent > NOTICE_LIMIT_S and not is_noticed) or spent > limit_s:
            os.kill(victim.pid, signal.SIGUSR2)
            time.sleep(0.5)  # the stacks are being written
            victim.kill9()
            what = "ended" if is_noticed else "been noticed by"
            pytest.fail(f"SIGTERM has not {what} the broker after {spent:.2f} s of its CPU:\n{victim.log()[-3000:]}")
        time.sleep(0.002)
    assert process.returncode == 0, f"exit code {process.returncode}:\n{victim.log()[-3000:]}"
    assert not victim.tracebacks(), victim.tracebacks()


def descriptors(pid: int) -> int:
    """How many files and sockets a process has open."""
    return len(list(Path(f"/proc/{pid}/fd").iterdir()))
