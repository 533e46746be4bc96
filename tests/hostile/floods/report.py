"""A flood in full size, beside a healthy client in a process of its own whose waits are compared with those before."""

from __future__ import annotations

import os
import statistics
import tempfile
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from multiprocessing import get_context
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Final, NamedTuple, cast

from tests.hostile.floods.kafka import WARM_UP_S, KafkaVictim
from tests.hostile.floods.run import MB, Flood, Run
from tests.hostile.harness import STALL_LIMIT_S, HealthyClient, cpu_s
from tests.hostile.secured import SecuredVictim

CALM_S: Final = 1.5
LOW_PRIORITY: Final = 15
MOST_RATIO: Final = 10.0
"""How much longer the slowest of 100 waits of a healthy client may be during a flood."""


class Waits(NamedTuple):
    """What a healthy client has seen since it was asked last."""

    requests: int
    p99_ms: float
    p99_cpu_ms: float
    """The same in CPU time that the broker used meanwhile."""
    longest_ms: float
    stall_s: float
    failure: str


class Outcome(NamedTuple):
    """A row of the report."""

    flood: str
    listener: str
    steps: int
    refused: int
    before: Waits
    during: Waits
    cpu: float
    """How much of one processor the broker used during the flood."""
    peak: int
    bound: str
    findings: list[str]

    @property
    def ratio(self) -> float:
        """How much longer waits were."""
        return self.during.p99_ms / self.before.p99_ms if self.before.p99_ms else float("inf")


class _Timed(HealthyClient):
    """A healthy client that keeps how long each of its requests took on the clock."""

    def __init__(self, victim: SecuredVictim) -> None:
        super().__init__(victim, 0.002)
        self.waits: list[float] = []
        self.spent: list[float] = []
        """What the broker spent of CPU meanwhile, which a busy machine does not change."""

    def _ask(self, request, version):
        began, used = time.monotonic(), cpu_s(self._pid)
        response = super()._ask(request, version)
        self.waits.append(time.monotonic() - began)
        self.spent.append(cpu_s(self._pid) - used)
        return response

    def since(self) -> Waits:
        """What it has seen since the last call."""
        (waits, spent), self.waits, self.spent = (self.waits, self.spent), [], []
        stall_s, self.stall_s = self.stall_s, 0.0
        failure = "" if self.failure is None else repr(self.failure)
        return Waits(len(waits), _p99_ms(waits), _p99_ms(spent), max(waits, default=0.0) * 1000, stall_s, failure)


def _p99_ms(seconds: list[float]) -> float:
    return statistics.quantiles(seconds, n=100)[98] * 1000 if len(seconds) > 1 else float("inf")


class _Remote(NamedTuple):
    """What the process of the healthy client needs of the victim."""

    data_dir: Path
    listener: str
    port: int
    pid: int
    authority: str
    shows_stacks: bool


def _stay_healthy(remote: _Remote, connection: Connection) -> None:
    """The process of the healthy client: answers each message with `Waits`, until None comes."""
    victim = _Elsewhere(remote)
    client = _Timed(victim)
    client.start()
    client.since()
    connection.send(None)
    while connection.recv():
        connection.send(client.since())
    try:
        client.stop()
    except BaseException as error:
        connection.send(repr(error))
    else:
        connection.send("")


class _Elsewhere(SecuredVictim):
    """A victim that another process has started."""

    def __init__(self, remote: _Remote) -> None:
        super().__init__(remote.data_dir, remote.listener, authority=remote.authority)
        self.port = remote.port
        self._pid = remote.pid
        self.shows_stacks = remote.shows_stacks

    @property
    def pid(self) -> int:
        """The broker's process id."""
        return self._pid


def run_flood(
    flood: Flood, listener: str, seconds: float, *, steps: float = float("inf"), of_kafka: bool = False
) -> Outcome:
    """One flood against one listener, for so many seconds or steps.

    `of_kafka`: of Apache Kafka, which has no findings.
    """
    with tempfile.TemporaryDirectory(prefix="barnabas-flood-") as name:
        folder = Path(name)
        victim: SecuredVictim | KafkaVictim
        if of_kafka:
            victim = KafkaVictim(folder / "data", flood.config)
        else:
            victim = SecuredVictim(folder / "data", listener, config=dict(flood.config))
        victim.start()
        context = get_context("spawn")
        here, there = context.Pipe()
        reached = (victim.listener, victim.port, victim.pid, victim.authority, victim.shows_stacks)
        remote = _Remote(folder / "client" / "data", *reached)
        process = context.Process(target=_stay_healthy, args=(remote, there), daemon=True)
        process.start()
        try:
            here.recv()
            time.sleep(WARM_UP_S if of_kafka else CALM_S)  # what a broker does after its start is not compared
            _asked(here)
            time.sleep(CALM_S)
            before = _asked(here)
            victim.forget_peak()
            attacked = cast(SecuredVictim, victim)  # Kafka has no floods of TLS
            run = Run(attacked, steps=steps, seconds=seconds, folder=folder)
            began, used = time.monotonic(), cpu_s(victim.pid)
            _attack(flood, run)
            cpu = (cpu_s(victim.pid) - used) / (time.monotonic() - began)
            during = _asked(here)
            is_running = victim.is_running
            peak = victim.status("VmHWM") if is_running else 0
            run.close()
            here.send(False)
            failure = here.recv()
            code = victim.stop()
        finally:
            process.terminate()
            process.join()
            victim.stop()
        findings = []
        bound = flood.bound
        if isinstance(victim, SecuredVictim):
            findings = _findings(flood, before, during, peak, failure or _end(victim, code))
        else:
            bound = "" if is_running else f"the broker has ended: {victim.log()[-300:]}"
        return Outcome(flood.name, listener, run.steps, run.refused, before, during, cpu, peak, bound, findings)


def _attack(flood: Flood, run: Run) -> None:
    """The flood with low priority: it stands for other machines, and must not take the processor of the healthy client.

    On Linux a priority belongs to a thread.
    """
    with ThreadPoolExecutor(1, initializer=_lower_priority) as thread:
        thread.submit(flood.act, run).result()


def _lower_priority() -> None:
    os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), LOW_PRIORITY)


def _asked(here: Connection) -> Waits:
    here.send(True)
    waits: Waits = here.recv()
    return waits


def _end(victim: SecuredVictim, code: int | None) -> str:
    if victim.tracebacks():
        return victim.tracebacks()
    return "" if code == 0 else f"the broker ended with {code}: {victim.log()[-1000:]}"


def _findings(flood: Flood, before: Waits, during: Waits, peak: int, failure: str) -> list[str]:
    findings = [text for text in (before.failure, during.failure, failure) if text]
    if during.stall_s > STALL_LIMIT_S:
        findings.append(f"a healthy client waited for {during.stall_s:.3f} s of the broker's CPU")
    ratio = min(during.p99_ms / before.p99_ms, during.p99_cpu_ms / before.p99_cpu_ms)
    if ratio > MOST_RATIO:  # on both clocks: other work on the machine lengthens waits on one of them
        findings.append(f"the p99 of a healthy client is {ratio:.1f} times that of before")
    if peak > flood.memory:
        findings.append(f"the broker's memory was {peak // MB} MB at its peak, {flood.memory // MB} are allowed")
    return findings
