"""The commands that are stopped, as data: how each is started, and how long a run of it lasts.

Each runs in a directory of its own, against one broker whose topic `stopping` has `RECORDS` records.
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

from tests.support.processes.commands import COMMAND

RECORDS = 30_000
STOPPED = 130
"""The exit code of a command that Ctrl-C or SIGTERM stops."""


class Subject(NamedTuple):
    """A command. `arguments` makes its arguments from its directory and the address of the broker."""

    name: str
    arguments: Callable[[Path, str], Sequence[str]]
    seconds: float
    """A run is stopped at a moment of this many seconds."""
    codes: frozenset[int]
    """The exit codes that a stop may have; 0 also stands for a command that was done before."""
    reads_stdin: bool = False
    is_job: bool = False
    """It starts Spark."""


def _job(directory: Path, broker: str) -> list[str]:
    """A job of small batches, which has a batch or a commit in progress at nearly every moment."""
    config = directory / "etl.toml"
    config.write_text(
        f'checkpoint = "{directory}/checkpoint"\n'
        '[spark.settings]\n"spark.ui.enabled" = false\n'
        '[source]\ntopic = "stopping"\nmax_records_per_batch = 600\n'
        '[schema]\nfields = "id BIGINT NOT NULL"\n'
        f'[output]\npath = "{directory}/out"\n'
        '[dead_letters]\ntopic = "dead"\n'
    )
    return ["pipeline", "run", "etl", "-b", broker, "--config", str(config), "--progress", "json"]


def _serve(*more: str) -> Callable[[Path, str], list[str]]:
    return lambda directory, _: ["serve", "--data-dir", str(directory / "data"), "--listen", "127.0.0.1:0", *more]


SUBJECTS = (
    Subject("serve", _serve(), 1.0, frozenset({0})),
    Subject("serve-console", _serve("--console", "127.0.0.1:0"), 2.5, frozenset({0})),
    Subject("serve-brokers", _serve("--brokers", "3"), 4.0, frozenset({0})),
    Subject(
        "consume",
        lambda _, broker: ["consume", "stopping", "-o", "beginning", "-b", broker, "-g", "readers"],
        2.0,
        frozenset({STOPPED}),
    ),
    Subject(
        "produce",
        lambda _, broker: ["produce", "stopping-made", "-b", broker],
        2.0,
        frozenset({0, STOPPED}),
        reads_stdin=True,
    ),
    Subject(
        "record",
        lambda directory, broker: ["record", "--upstream", broker, "--file", str(directory / "session.cassette")],
        1.5,
        frozenset({0, STOPPED}),
    ),
    Subject(
        "console", lambda _, broker: ["console", "-b", broker, "--listen", "127.0.0.1:0"], 2.0, frozenset({0, STOPPED})
    ),
    Subject("pipeline", _job, 20.0, frozenset({STOPPED}), is_job=True),
)
BY_NAME = {subject.name: subject for subject in SUBJECTS}


def records() -> bytes:
    """The records of `stopping`, one a line."""
    return b"".join(json.dumps({"id": number}).encode() + b"\n" for number in range(RECORDS))


def fill(broker: str) -> None:
    """Create and fill `stopping`; RuntimeError if that fails."""
    done = subprocess.run(
        [*COMMAND, "produce", "stopping", "-b", broker, "-q"], input=records(), capture_output=True, check=False
    )
    if done.returncode:
        raise RuntimeError(f"the topic could not be filled: {done.stderr.decode()}")
