"""Sends the frames of a finding again, each alone, to a new broker with the topics of the fuzz."""

from __future__ import annotations

import select
import time
from pathlib import Path
from random import Random

from tests.hostile.fuzz.doors import DOORS
from tests.hostile.fuzz.job import Round, Task, victim_of
from tests.hostile.fuzz.traffic import Connection
from tests.hostile.harness import HealthyClient
from tests.support.requests.raw_client import RawClient

PATIENCE_S = 2.0
SLOW_S = 0.05
"""From here on the CPU time of a request is worth to be shown, seconds."""


def replay(file: Path, directory: Path, door: str) -> int:
    """Send the frames; print after which of them the log has an error, or a frame takes long. The exit code."""
    frames = [bytes.fromhex(line) for line in file.read_text().split()]
    victim, port = victim_of(door, directory / "job" / "data")
    victim.start()
    HealthyClient(victim).close()
    admin = RawClient(victim.bootstrap)
    Round(victim, port, Task(0, 0, 0, 0, directory, directory, door), 0).prepare(admin)
    random = Random(0)
    exit_code = 0
    connection = None
    for number, frame in enumerate(frames):
        connection = connection or Connection(*DOORS[door].enter(port, random))
        before = victim.cpu()
        try:
            _exchange(connection, frame)
        except OSError:
            connection.socket.close()
            connection = None
        time.sleep(0.01)
        spent = victim.cpu() - before
        if spent > SLOW_S or victim.tracebacks() or " ERROR " in victim.log():
            exit_code = 1
            print(f"frame {number} ({spent:.3f} s of CPU): {frame.hex()[:2000]}\n{victim.log()[-5000:]}")
            victim.log_path.write_text("")
    print(f"{len(frames)} frames sent, memory {victim.status('VmHWM') >> 20} MB; exit code {victim.stop()}")
    return exit_code


def _exchange(connection: Connection, frame: bytes) -> None:
    """Send a frame and wait for an answer; OSError if the connection is closed, or nothing comes."""
    connection.outbox = frame
    deadline = time.monotonic() + PATIENCE_S
    before = connection.responses
    while connection.is_sending or connection.responses == before:
        connection.push()
        if select.select([connection.socket], [], [], 0.01)[0]:
            try:
                connection.pull(lambda _data: None)
            except BlockingIOError:
                pass
        if time.monotonic() > deadline:
            raise TimeoutError
