"""Jobs and broker killed with -9 in mid-stream: no gap and no repeat in Parquet, each once in a transactional topic.

A run is killed after a random number of batches; a failure prints the seed. The last run ends by itself.
"""

from __future__ import annotations

import json
import os
import random
import threading
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

import pytest

from barnabas.spark.topics.kafka import EVENT_ID
from tests.pipeline.runs import PATIENCE_S, Process, consume, create, header, produce, toml
from tests.support.processes.server import Server

pytestmark = [
    pytest.mark.soak,
    pytest.mark.spark,
    pytest.mark.jvm,
    pytest.mark.timeout(600),
    pytest.mark.filterwarnings("ignore"),
]
SEED = int(os.environ.get("BARNABAS_SEED", random.SystemRandom().randrange(1 << 30)))
RECORDS = 12_000
PARTITIONS = 3
IS_POISON = 97
"""One in this many records is invalid."""


def value(n: int) -> bytes:
    """Record n."""
    return b"poison %d" % n if n % IS_POISON == 0 else json.dumps({"id": n, "half": n / 2}).encode()


def run_with_kills(job: str, broker: Server, config: Path, rng: random.Random, feeding: threading.Thread) -> None:
    """Kill the job twice and the broker once, each during a batch, then run it to the end."""
    kills = ["job", "broker", "job"]
    rng.shuffle(kills)
    print(f"BARNABAS_SEED={SEED}: {kills}")
    process: Process | None = None
    for kill in kills:
        process = process or Process(job, broker.bootstrap, config)
        process.wait_for("batch", rng.randrange(1, 6))
        if kill == "broker":
            broker.kill9()
            broker.restart()
            process.wait_for("batch")  # it continues when the broker is back
        else:
            process.kill()
            process = None
    if process is not None:
        process.kill()
    feeding.join(PATIENCE_S)
    with Process(job, broker.bootstrap, config, "--once") as last:
        last.end()


def feed(broker: Server, topic: str, values: list[tuple[bytes | None, bytes]]) -> threading.Thread:
    """Produce the first half now, and the second half during the test."""
    half = len(values) // 2
    produce(broker, topic, values[:half], PARTITIONS)
    thread = threading.Thread(target=produce, args=(broker, topic, values[half:], PARTITIONS))
    thread.start()
    return thread


def test_etl_leaves_no_gap_and_no_repeat(start_broker: Any, tmp_path: Path) -> None:
    rng = random.Random(SEED)
    broker = start_broker(tmp_path / "data")
    topic = create(broker, "numbers", PARTITIONS)
    config = toml(
        tmp_path / "etl.toml",
        [
            f'checkpoint = "{tmp_path}/checkpoint"',
            "[spark.settings]", '"spark.ui.enabled" = false',
            "[source]", f'topic = "{topic}"', "max_records_per_batch = 600",
            "[schema]", 'fields = "id BIGINT NOT NULL, half DOUBLE"',
            "[output]", f'path = "{tmp_path}/out"',
            "[dead_letters]", 'topic = "dead"',
        ],
    )  # fmt: skip
    feeding = feed(broker, topic, [(None, value(n)) for n in range(RECORDS)])
    run_with_kills("etl", broker, config, rng, feeding)
    ids = Counter(_ids(tmp_path / "out"))
    poison = {n for n in range(RECORDS) if n % IS_POISON == 0}
    assert {n for n, count in ids.items() if count > 1} == set()
    assert set(ids) == set(range(RECORDS)) - poison
    dead = consume(broker, "dead")
    assert {int(message.value().split()[1]) for message in dead} == poison
    assert len({header(message, EVENT_ID) for message in dead}) == len(poison)


def _ids(path: Path) -> list[int]:
    """The files of the directory that are in Spark's log, without files of a killed run."""
    import pyarrow.parquet as pq

    names: dict[str, str] = {}
    for entry in _log(path / "_spark_metadata"):
        names[entry["path"]] = entry["action"]
    files = [name.removeprefix("file://") for name, action in names.items() if action == "add"]
    return [n for file in files for n in pq.read_table(file, columns=["id"])["id"].to_pylist()]


def _log(directory: Path) -> list[dict[str, Any]]:
    """The entries of the sink's log: the last compacted file and later ones."""
    compacted = [int(path.stem) for path in directory.glob("*.compact")]
    first = max(compacted, default=-1)
    later = sorted(int(path.name) for path in directory.iterdir() if path.name.isdecimal() and int(path.name) > first)
    names = ([f"{first}.compact"] if compacted else []) + [str(n) for n in later]
    return [json.loads(line) for name in names for line in (directory / name).read_text().splitlines()[1:]]


def test_a_transactional_copy_is_exactly_once_and_in_order(start_broker: Any, tmp_path: Path) -> None:
    rng = random.Random(SEED + 1)
    broker = start_broker(tmp_path / "data")
    topic = create(broker, "numbers", PARTITIONS)
    feeding = feed(broker, topic, [(b"key-%d" % (n % 50), b"%d" % n) for n in range(RECORDS)])
    config = toml(
        tmp_path / "copy.toml",
        [
            f'checkpoint = "{tmp_path}/checkpoint"',
            "[spark.settings]", '"spark.ui.enabled" = false',
            "[source]", f'topic = "{topic}"', "max_records_per_batch = 600",
            "[target]", 'topic = "copied"', "partitions = 2", 'delivery = "transactional"',
        ],
    )  # fmt: skip
    run_with_kills("copy", broker, config, rng, feeding)
    seen = consume(broker, "copied")
    counts = Counter(int(message.value()) for message in seen)
    assert {n for n, count in counts.items() if count > 1} == set()
    assert set(counts) == set(range(RECORDS))
    by_key: dict[tuple[bytes, str], list[int]] = defaultdict(list)
    for message in seen:
        source_partition = (header(message, EVENT_ID) or "").split("/")[1]
        by_key[message.key(), source_partition].append(int(message.value()))
    assert all(numbers == sorted(numbers) for numbers in by_key.values())
