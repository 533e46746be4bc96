"""`barnabas pipeline run etl --once` compared with a plain PySpark job for the same work, both on Barnabas.

Both read JSON records, of which one in a hundred is invalid, and write typed Parquet by day with the position of each
record, exactly once. Invalid records are written to another topic with the reason in a header. `run s` excludes the
start of the session; `whole s` is the duration of the whole process.

python -m bench.cases.spark_etl HOST:PORT TOPIC LETTERS FOLDER       # runs the plain job
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from bench.cases.case import Case, Figures, Goal, Group, Mode, Scale
from bench.target import Target
from tests.support.jvm.jars import fetch
from tests.support.processes.server import ROOT
from tests.support.requests import frames
from tests.support.spark.connector_session import POM

PARTITIONS = 4
IN_BATCH = 1000
BROKEN_OF_BATCH = 10
DAYS = 4
TIMEOUT_S = 300
FIELDS = "id BIGINT NOT NULL, at TIMESTAMP NOT NULL, customer STRING NOT NULL, amount DOUBLE, kind STRING"
COLUMNS = ["id", "at", "customer", "amount", "kind", "_topic", "_partition", "_offset", "_timestamp"]
RULE = "amount >= 0"
DAY = "to_date(at)"
JOB = """
checkpoint = "{folder}/checkpoint"
[source]
topic = "{topic}"
[schema]
fields = "{fields}"
rules = ["{rule}"]
[columns]
day = "{day}"
[output]
path = "{folder}/table"
partition_by = ["day"]
[dead_letters]
topic = "{letters}"
[spark]
master = "local[2]"
"""


def measure(group: Group, kind: str, scale: Scale) -> Figures:
    """Run the pipeline (kind `barnabas`) or the plain job (`kafka`) on a new Barnabas broker."""
    with (
        tempfile.TemporaryDirectory(prefix="bench-") as folder,
        group.server("barnabas", Path(folder) / "broker") as server,
    ):
        target = Target(server)
        topic = _fill(target, scale.spark_records)
        letters = target.create(1)
        out = Path(folder) / "out"
        out.mkdir()
        started = time.monotonic()
        seconds = (_pipeline if kind == "barnabas" else _plain)(server.bootstrap, topic, letters, out)
        whole = time.monotonic() - started
        _check(target, letters, out / "table", scale.spark_records)
        return {"run s": seconds, "whole s": whole}


def _fill(target: Target, records: int) -> str:
    """Create a topic with `records` records, repeating the same thousand."""
    topic = target.create(PARTITIONS)
    values = [_value(n) for n in range(IN_BATCH)]
    batch = frames.keyed_batch([b"customer-%d" % n for n in range(IN_BATCH)], values)
    requests = [frames.produce(topic, n, batch) for n in range(PARTITIONS)]
    target.send(requests[n % PARTITIONS] for n in range(records // IN_BATCH))
    return topic


def _value(n: int) -> bytes:
    """A record; one in a hundred is truncated or violates the rule."""
    at = f"2026-01-{1 + n % DAYS:02}T{n % 24:02}:00:00Z"
    amount = -1.0 if n % 200 == 7 else round(n * 1.1, 2)
    record = {"id": n, "at": at, "customer": f"customer-{n}", "amount": amount, "kind": ("sale", "return")[n % 2]}
    text = json.dumps(record).encode()
    return text[:-10] if n % 200 == 107 else text


def _pipeline(bootstrap: str, topic: str, letters: str, folder: Path) -> float:
    job = folder / "job.toml"
    job.write_text(JOB.format(folder=folder, topic=topic, letters=letters, fields=FIELDS, rule=RULE, day=DAY))
    command = ["barnabas", "pipeline", "run", "etl", "--once", "-b", bootstrap, "--config", str(job)]
    done = json.loads(_run([*command, "--progress", "json"]).strip().splitlines()[-1])
    return float(done["seconds"])


def _plain(bootstrap: str, topic: str, letters: str, folder: Path) -> float:
    output = _run(["bench.cases.spark_etl", bootstrap, topic, letters, str(folder)])
    return float(output.strip().splitlines()[-1].removeprefix("seconds="))


def _run(arguments: list[str]) -> str:
    """Run a module with the connector's jars; returns its stderr."""
    environment = os.environ | {"BARNABAS_SPARK_JARS": str(fetch(POM))}
    done = subprocess.run(
        [sys.executable, "-m", *arguments],
        cwd=ROOT, env=environment, capture_output=True, text=True, timeout=TIMEOUT_S, check=False,
    )  # fmt: skip
    if done.returncode:
        raise RuntimeError(f"{arguments[0]} exited with {done.returncode}: {done.stderr[-2000:]}")
    return done.stderr


def _check(target: Target, letters: str, table: Path, records: int) -> None:
    """Check that every record is in the table or among the dead letters, and the table's columns."""
    import pyarrow.parquet as pq

    broken = records // IN_BATCH * BROKEN_OF_BATCH
    files = list(table.glob("day=*/*.parquet"))
    rows = sum(pq.read_metadata(file).num_rows for file in files)
    dead = sum(target.end_offsets(letters, 1))
    if (rows, dead) != (records - broken, broken):
        raise RuntimeError(f"{rows} rows and {dead} dead letters for {records} records, of which {broken} are invalid")
    if pq.read_schema(files[0]).names != COLUMNS:
        raise RuntimeError(f"the table's columns are {pq.read_schema(files[0]).names}")


def plain(bootstrap: str, topic: str, letters: str, folder: str) -> float:
    """The job without the pipeline; returns its seconds, without the start of the session."""
    from pyspark.sql import functions as f

    from barnabas.spark.session.spark import session

    spark = session("plain", master="local[2]")
    started = time.monotonic()
    source = {"subscribe": topic, "startingOffsets": "earliest", "kafka.isolation.level": "read_committed"}
    broker = {"kafka.bootstrap.servers": bootstrap}
    records = spark.readStream.format("kafka").options(includeHeaders="true", **broker, **source).load()
    options = {"columnNameOfCorruptRecord": "broken"}
    data = f.from_json(f.col("value").cast("string"), f"{FIELDS}, broken STRING", options)
    text = f.col("value").cast("string")
    # from_json reads only the first value
    is_one_value = f.json_array_length(f.concat(f.lit("["), text, f.lit(",0]"))) == 2
    reason = (
        f.when(f.length("value") == 0, "empty")
        .when(~f.is_valid_utf8(text), "not UTF-8")
        .when(f.col("data.broken").isNotNull() | ~f.coalesce(is_one_value, f.lit(False)), "not JSON")
        .when(
            f.col("data.id").isNull() | f.col("data.at").isNull() | f.col("data.customer").isNull(), "a field missing"
        )
        .when(~f.coalesce(f.col("data.amount") >= 0, f.lit(False)), RULE)
    )
    parsed = records.withColumn("data", data).withColumn("reason", reason)
    origin = [f.col(name).alias(f"_{name}") for name in ("topic", "partition", "offset", "timestamp")]
    rows = parsed.where("reason IS NULL").select("data.*", *origin).drop("broken").withColumn("day", f.expr(DAY))
    header = f.struct(f.lit("reason").alias("key"), f.col("reason").cast("binary").alias("value"))
    dead = parsed.where("reason IS NOT NULL").select("key", "value", f.array(header).alias("headers"))
    table = rows.writeStream.format("parquet").partitionBy("day").option("path", f"{folder}/table")
    topic_sink = dead.writeStream.format("kafka").options(topic=letters, **broker)
    queries = [
        writer.option("checkpointLocation", f"{folder}/{name}").trigger(availableNow=True).start()
        for name, writer in (("table-checkpoint", table), ("letters-checkpoint", topic_sink))
    ]
    for query in queries:
        query.awaitTermination()
    took = time.monotonic() - started
    spark.stop()
    return took


def cases(scale: Scale) -> Iterator[Case]:
    """The only case."""
    name = f"etl --once, {scale.spark_records / 1e6:g}M JSON records"
    yield Case(name, measure, {"run s": Goal(1.1)}, Mode.OWN_SERVER)


if __name__ == "__main__":
    print(f"seconds={plain(*sys.argv[1:5]):.3f}", file=sys.stderr)
