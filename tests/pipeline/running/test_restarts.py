"""Every job with a checkpoint, as `barnabas pipeline run --once` runs it, twice: the second run reads new records only.

Windows and states of the first run continue in the second; no record is missing or twice in an output.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.pipeline.runs import consume, execute_here, produce, toml
from tests.support.processes.server import Server

SCHEMA = ["[schema]", 'fields = "who STRING, n INT, at TIMESTAMP"']


@dataclass(frozen=True)
class Outputs:
    """The outputs of a job: topics, whose names begin with the name of the source, and a directory."""

    broker: Server
    topic: str
    path: Path

    def texts(self, of: str) -> list[str]:
        """The values of an output topic, in order."""
        return [message.value().decode() for message in consume(self.broker, f"{self.topic}-{of}")]

    def objects(self, of: str, *fields: str) -> list[tuple[Any, ...]]:
        """These fields of the JSON objects of an output topic, in order."""
        return [tuple(json.loads(text)[field] for field in fields) for text in self.texts(of)]

    def column(self, name: str) -> list[Any]:
        """A column of the Parquet files, sorted."""
        import pyarrow.parquet as pq

        files = self.path.rglob("*.parquet")
        return sorted(value for file in files for value in pq.read_table(file, columns=[name])[name].to_pylist())


@dataclass(frozen=True)
class Case:
    """A job's file without checkpoint and source, the values before each run, and the outputs after it."""

    lines: Sequence[str]
    values: tuple[Sequence[str], Sequence[str]]
    found: Callable[[Outputs], Any]
    expected: tuple[Any, Any]


def event(who: str, n: int, minute: int = 0) -> str:
    return json.dumps({"who": who, "n": n, "at": f"2026-01-31T12:{minute:02}:00Z"})


def line(minute: int, status: int) -> str:
    return f'web - - [31/Jan/2026:12:{minute:02}:00 +0000] "GET / HTTP/1.1" {status} 5'


CASES = {
    "etl": Case(
        [*SCHEMA, "[output]", 'path = "PATH"', "[dead_letters]", 'topic = "TOPIC-dead"'],
        ([event("a", 1), "no", event("b", 2)], [event("a", 3), "neither"]),
        lambda outputs: (outputs.column("n"), outputs.texts("dead")),
        (([1, 2], ["no"]), ([1, 2, 3], ["no", "neither"])),
    ),
    "analytics": Case(
        [
            'emit = "updates"', *SCHEMA, "[window]", 'time = "at"', 'size = "10 minutes"', "[keys]", 'who = "who"',
            "[aggregates]", 'total = "sum(n)"', "[output]", 'topic = "TOPIC-out"', "[dead_letters]",
            'topic = "TOPIC-dead"',
        ],
        ([event("a", 1), event("a", 2)], [event("a", 4), event("a", 8, minute=10)]),
        lambda outputs: sorted(outputs.objects("out", "window_start", "total")),
        (
            [("2026-01-31T12:00:00.000Z", 3)],
            [("2026-01-31T12:00:00.000Z", 3), ("2026-01-31T12:00:00.000Z", 7), ("2026-01-31T12:10:00.000Z", 8)],
        ),
    ),
    "logs": Case(
        [
            "[output]", 'topic = "TOPIC-out"', "[alerts]", 'topic = "TOPIC-alerts"', "min_requests = 3",
            "[dead_letters]", 'topic = "TOPIC-dead"',
        ],
        ([line(0, 200), line(0, 500), "no"], [line(0, 200), line(9, 200)]),
        lambda outputs: (
            outputs.objects("out", "service", "requests", "errors"),
            outputs.objects("alerts", "reason"),
            outputs.texts("dead"),
        ),
        (([], [], ["no"]), ([("web", 3, 1)], [("error rate of 0.05 or more",)], ["no"])),
    ),
    "events": Case(
        [
            *SCHEMA, "[state]", 'key = "who"', "[state.fields]", 'events = "count()"', 'total = "sum(n)"', "[output]",
            'topic = "TOPIC-out"', "[dead_letters]", 'topic = "TOPIC-dead"',
        ],
        ([event("a", 1), event("b", 2), event("a", 3)], [event("a", 5)]),
        lambda outputs: sorted(outputs.objects("out", "events", "total")),
        ([(1, 2), (2, 4)], [(1, 2), (2, 4), (3, 9)]),
    ),
    "archive": Case(
        ["[archive]", 'path = "PATH"'],
        (["a", "b"], ["c"]),
        lambda outputs: outputs.column("value"),
        ([b"a", b"b"], [b"a", b"b", b"c"]),
    ),
    "copy": Case(
        ["[target]", 'topic = "TOPIC-out"', 'delivery = "transactional"'],
        (["a", "b"], ["c"]),
        lambda outputs: outputs.texts("out"),
        (["a", "b"], ["a", "b", "c"]),
    ),
}  # fmt: skip


@pytest.mark.parametrize("job", CASES)
def test_a_job_goes_on_from_its_checkpoint(
    spark: Any, broker: Server, create: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str], job: str
) -> None:
    topic, case = create(), CASES[job]
    outputs = Outputs(broker, topic, tmp_path / "out")
    lines = [text.replace("TOPIC", topic).replace("PATH", str(outputs.path)) for text in case.lines]
    console = ["console = 0"] if job in ("analytics", "logs") else []
    head = [f'checkpoint = "{tmp_path}/checkpoint"', *console]
    tables = next(index for index, text in enumerate(lines) if text.startswith("["))
    source = ["[source]", f'topic = "{topic}"']
    config = toml(tmp_path / "job.toml", [*head, *lines[:tables], *source, *lines[tables:]])
    for values, expected in zip(case.values, case.expected, strict=True):
        produce(broker, topic, [(b"key", value.encode()) for value in values])
        assert execute_here(spark, job, broker.bootstrap, config) == 0
        *_, last = capsys.readouterr().err.splitlines()
        assert json.loads(last)["event"] == "done"
        assert case.found(outputs) == expected
