"""Sends the frames of a finding again, each alone, to a new broker with the topics of the fuzz."""

from __future__ import annotations

import contextlib
import socket
import time
from pathlib import Path

from tests.broker.raw_client import RawClient
from tests.hostile.fuzz.job import CONFIG, Round, Task
from tests.hostile.harness import HealthyClient, Victim

PATIENCE_S = 2.0
SLOW_S = 0.05
"""From here on the CPU time of a request is worth to be shown, seconds."""


def replay(file: Path, directory: Path) -> int:
    """Send the frames; print after which of them the log has an error, or a frame takes long. The exit code."""
    frames = [bytes.fromhex(line) for line in file.read_text().split()]
    victim = Victim(directory / "data", config=CONFIG)
    victim.start()
    HealthyClient(victim).close()
    admin = RawClient(victim.bootstrap)
    Round(victim, Task(0, 0, 0, 0, directory, directory), 0).prepare(admin)
    found = 0
    sock = None
    for number, one in enumerate(frames):
        sock = sock or socket.create_connection((victim.host, victim.port), timeout=PATIENCE_S)
        before = victim.cpu()
        try:
            sock.sendall(one)
            if not sock.recv(1 << 20):
                raise ConnectionResetError
        except OSError:
            with contextlib.suppress(OSError):
                sock.close()
            sock = None
        time.sleep(0.01)
        spent = victim.cpu() - before
        if spent > SLOW_S or victim.tracebacks() or " ERROR " in victim.log():
            found = 1
            print(f"frame {number} ({spent:.3f} s of CPU): {one.hex()[:2000]}\n{victim.log()[-5000:]}")
            victim.log_path.write_text("")
    print(f"{len(frames)} frames sent, memory {victim.status('VmHWM') >> 20} MB; exit code {victim.stop()}")
    return found
