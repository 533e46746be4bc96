"""Starts a command, sends SIGTERM to its process group at a moment, and says what is wrong with its end.

A command has to end with its exit code, without a traceback and without an error of a part that the signal ended first,
and to leave no process. Before Python has a handler, and while it finalizes, the signal itself may end it.
"""

from __future__ import annotations

import contextlib
import os
import random
import signal
import subprocess
import threading
import time
from pathlib import Path
from typing import BinaryIO

import psutil

from tests.stopping.subjects import Subject, records
from tests.support.processes.commands import COMMAND, clean_environment
from tests.support.waiting import wait_for

END_S = 90.0
WRONG = ("Traceback", "Exception ignored", "Connection refused", "SparkContext", '"failed"', "Error:")
"""Output that a stop must not cause."""


def moments(subject: Subject, count: int, seed: int) -> list[float]:
    """`count` moments of a run, seconds after its start: one at random in each of `count` equal parts of it."""
    rng = random.Random(f"{seed} {subject.name}")
    return [(part + rng.random()) * subject.seconds / count for part in range(count)]


def stop_at(subject: Subject, moment: float, directory: Path, broker: str) -> str | None:
    """Run and stop it; returns what is wrong, or None. `directory` is new; `broker` is an address."""
    directory.mkdir(parents=True)
    output = directory / "output"
    with output.open("wb") as file:
        process = subprocess.Popen(
            [*COMMAND, *subject.arguments(directory, broker)],
            stdin=subprocess.PIPE, stdout=file, stderr=file, start_new_session=True, env=clean_environment(),
        )  # fmt: skip
    assert process.stdin is not None
    feeding = threading.Thread(target=_feed, args=(process.stdin,), daemon=True)
    if subject.reads_stdin:
        feeding.start()
    try:
        time.sleep(moment)  # the moment is what is tested
        family = _family(process.pid)
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGTERM)
        code = process.wait(END_S)
        wait_for(lambda: not _alive(family), "the processes that it started have ended", END_S)
    except (subprocess.TimeoutExpired, AssertionError) as error:
        for member in {*family, *_family(process.pid)}:
            with contextlib.suppress(psutil.NoSuchProcess):
                member.kill()
        process.wait()
        return f"{error}:\n{output.read_text(errors='replace')[-2000:]}"
    finally:
        with contextlib.suppress(BrokenPipeError):
            process.stdin.close()
    return _wrong(subject, code, output.read_text(errors="replace"))


def _wrong(subject: Subject, code: int, output: str) -> str | None:
    word = next((word for word in WRONG if word in output), None)
    if word is not None:
        return f"exit code {code}, printed {word}:\n{output[-2000:]}"
    if code in subject.codes or code == -signal.SIGTERM:
        return None
    return f"exit code {code}, expected one of {sorted(subject.codes)}:\n{output[-2000:]}"


def _feed(stdin: BinaryIO) -> None:
    """Write the records slowly enough that a run lasts."""
    with contextlib.suppress(OSError, ValueError):
        for line in records().splitlines(keepends=True):
            stdin.write(line)
            stdin.flush()
            time.sleep(0.0005)  # a program that produces as it goes


def _family(pid: int) -> list[psutil.Process]:
    with contextlib.suppress(psutil.NoSuchProcess):
        process = psutil.Process(pid)
        return [process, *process.children(recursive=True)]
    return []


def _alive(family: list[psutil.Process]) -> bool:
    return any(member.is_running() and member.status() != psutil.STATUS_ZOMBIE for member in family)
