"""Looks for findings during the fuzz: errors in the broker's log, its memory, a stalled or failed healthy client.

A finding is printed once with the seed, and the last frames of the connection that caused it are written to a file,
which `python -m tests.hostile.fuzz --replay FILE` sends again. The log is emptied while it is read, since every closed
connection adds a line.
"""

from __future__ import annotations

import os
import re
import time
from pathlib import Path

from tests.hostile.fuzz.traffic import Traffic
from tests.hostile.harness import MEMORY_LIMIT, STALL_LIMIT_S, HealthyClient, Victim

PERIOD_S = 0.5
MAX_FRAMES_IN_FLIGHT = 400
PEER = re.compile(r"from 127\.0\.0\.1:(\d+)")
BEGINS = re.compile(r"^\[\d{4}-\d\d-\d\d [\d:,]+\] (\w+) ")
OF_INTEREST = {"ERROR", "FATAL"}
TRACEBACK = "Traceback (most recent call last)"
STACKS = "Current thread"
"""A line of the stacks that the broker shows when the healthy client waits too long."""
EXPECTED = (
    "Cannot write to <Partition __",  # the fuzz has deleted the internal topic
    "Cannot read the records that",
    "rejected the marker of transactional id",  # the fuzz has written markers of a later coordinator
    "The state of partitions cannot be initialized",  # the fuzz has written states with the highest epoch
    "Read operation on uninitialized share partition",  # the fuzz has deleted the state
)
"""Errors that an operator has to see, and that are no bug."""


class Watch:
    """Observes one broker while it is attacked."""

    def __init__(self, victim: Victim, healthy: HealthyClient, traffic: Traffic, title: str, findings: Path) -> None:
        self._victim = victim
        self._healthy = healthy
        self._traffic = traffic
        self._title = title
        self._findings = findings
        self._next = 0.0
        self._partial = ""
        self._seen: set[str] = set()
        self._stacks = ""
        self.count = 0
        self.peak_memory = 0
        self.stall_s = 0.0

    def look(self, now: bool = False) -> None:
        """Check everything, at most every half second."""
        if not now and time.monotonic() < self._next:
            return
        self._next = time.monotonic() + PERIOD_S
        process = self._victim.process
        assert process is not None
        if process.poll() is not None:
            self._scan_log()
            self.report(f"the broker ended with code {process.returncode}", self._traffic.frames_in_flight())
            raise BrokerEndedError
        memory = self._victim.status("VmRSS")
        self.peak_memory = max(self.peak_memory, memory)
        if memory > MEMORY_LIMIT:
            self.report(f"the broker's memory is above {MEMORY_LIMIT >> 20} MB", self._traffic.frames_in_flight())
        self._scan_log()
        self._look_at_healthy()

    def _look_at_healthy(self) -> None:
        healthy = self._healthy
        if healthy.failure is not None:
            self.report(f"the healthy client failed: {healthy.failure!r}", self._traffic.frames_in_flight())
            raise BrokerEndedError
        self.stall_s = max(self.stall_s, healthy.stall_s)
        if healthy.stall_s > STALL_LIMIT_S:
            tenths = int(healthy.stall_s * 10)
            text = f"a stall of {tenths / 10} s of the broker's CPU or more"
            self.report(f"{text}\n{self._stacks}", self._traffic.frames_in_flight(), text)
        healthy.stall_s = 0.0

    def _scan_log(self) -> None:
        path = self._victim.log_path
        if path.stat().st_size == 0:
            return
        text = self._partial + path.read_text(errors="replace")
        os.truncate(path, 0)  # it is open for appending
        whole, _, self._partial = text.rpartition("\n")
        event: list[str] = []
        for line in whole.splitlines():
            if BEGINS.match(line):
                self._event(event)
                event = []
            event.append(line)
        self._event(event)

    def _event(self, lines: list[str]) -> None:
        if not lines:
            return
        begins = BEGINS.match(lines[0])
        is_error = begins is not None and begins[1] in OF_INTEREST
        if not is_error and not any(TRACEBACK in line for line in lines):
            self._stacks = "\n".join(lines) if any(STACKS in line for line in lines) else self._stacks
            return
        if any(text in lines[0] for text in EXPECTED):
            return
        peer = PEER.search(lines[0])
        frames = self._traffic.frames_of(int(peer[1])) if peer else None
        text = "\n".join(lines)
        where = [line.strip() for line in lines if line.strip().startswith("File ")]
        key = (where[-1] if where else "") + re.sub(r"\d+", "#", lines[-1])[:100]
        self.report(text[:6000], frames if frames is not None else self._traffic.frames_in_flight(), key)

    def report(self, text: str, frames: list[bytes], key: str = "") -> None:
        """Print a finding, unless an equal one was printed before, and write its frames."""
        key = key or text
        if key in self._seen:
            return
        self._seen.add(key)
        self.count += 1
        self._findings.mkdir(parents=True, exist_ok=True)
        file = self._findings / f"{self._title.replace(' ', '-')}-{self.count}.frames"
        last = frames[-MAX_FRAMES_IN_FLIGHT:]
        file.write_text("".join(frame.hex() + "\n" for frame in last))
        print(f"FINDING in {self._title}: {text}\n  {len(last)} frames: --replay {file}", flush=True)


class BrokerEndedError(Exception):
    """The broker ended, or its healthy client: a new broker is needed."""
