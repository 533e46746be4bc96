#!/usr/bin/env python
"""Streams a log file into a topic, counts its lines with Spark by hour and kind, and compares the table with the file.

    python compat/spark/log_report.py [FILE] [--bootstrap HOST:PORT] [--work-dir DIR]

FILE is the machine's package log by default. Without --bootstrap it starts a broker on data in --work-dir. The
kind of a line is the word after its time stamp (`2026-11-21 10:00:00 install …`); lines without one are a kind as well.

Nothing is lost or repeated if any process is killed, because every step knows its progress. The topic has one partition
and line n of the file is offset n, so the idempotent producer continues at the topic's end. Spark's counts and its
position in the topic are one checkpoint. Run it again after a crash, with the same --work-dir, for the same table. It
needs the package with its extra `spark`, and Java.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING

ROOT = Path(__file__).resolve().parents[2]
if str(ROOT) not in sys.path:
    sys.path.insert(0, str(ROOT))

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

DEFAULT_LOG = "/var/log/dpkg.log"
LINE = r"^(\d{4}-\d{2}-\d{2})[ T](\d{2}):\d{2}:\d{2}\S*\s+(\S+)"
"""Date, hour and kind; the same expression in Python and in Spark."""
OTHER = ("", "(no time stamp)")

Table = dict[tuple[str, str], int]
"""(hour, kind) to the number of lines."""


def count_directly(log: Path) -> Table:
    """The expected counts, computed from the file."""
    pattern = re.compile(LINE)
    counts: Counter[tuple[str, str]] = Counter()
    for line in _lines(log):
        match = pattern.search(line.decode(errors="replace"))
        counts[(f"{match[1]} {match[2]}", match[3]) if match else OTHER] += 1
    return dict(counts)


def _lines(log: Path) -> Iterator[bytes]:
    with log.open("rb") as file:
        for line in file:
            yield line.rstrip(b"\r\n")


def feed(log: Path, bootstrap: str, topic: str) -> int:
    """Produce the missing lines; returns their number. Line n of the file becomes offset n."""
    from confluent_kafka import Producer

    known = _end_offset(bootstrap, topic)
    failures: list[str] = []
    producer = Producer({"bootstrap.servers": bootstrap, "enable.idempotence": True, "reconnect.backoff.max.ms": 500})
    sent = 0
    for number, line in enumerate(_lines(log)):
        if number < known:
            continue
        while len(producer) > 50_000:
            producer.poll(0.1)
        producer.produce(topic, line, partition=0, on_delivery=lambda error, _: error and failures.append(str(error)))
        producer.poll(0)
        sent += 1
    unsent = producer.flush(120)
    if unsent or failures:
        raise SystemExit(
            f"log_report: {unsent + len(failures)} lines were not accepted: {(failures or ['timed out'])[0]}"
        )
    return sent


def _end_offset(bootstrap: str, topic: str) -> int:
    """The number of lines in the topic, which is created if necessary."""
    from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition
    from confluent_kafka.admin import AdminClient, NewTopic

    admin = AdminClient({"bootstrap.servers": bootstrap})
    try:
        admin.create_topics([NewTopic(topic, 1, 1)])[topic].result(30)
    except KafkaException as error:
        if error.args[0].code() != KafkaError.TOPIC_ALREADY_EXISTS:
            raise SystemExit(f"log_report: cannot create the topic {topic} at {bootstrap}: {error}") from error
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "log-report"})
    try:
        return int(consumer.get_watermark_offsets(TopicPartition(topic, 0), timeout=30)[1])
    finally:
        consumer.close()


def count_with_spark(session: SparkSession, bootstrap: str, topic: str, work_dir: Path) -> Table:
    """Count the lines after the checkpoint with Spark; returns the table of all lines."""
    from pyspark.sql import functions as f

    lines = (
        session.readStream.format("kafka")
        .option("kafka.bootstrap.servers", bootstrap)
        .option("subscribe", topic)
        .option("startingOffsets", "earliest")
        .option("maxOffsetsPerTrigger", 50_000)
        .load()
        .select(f.col("value").cast("string").alias("line"))
    )
    parts = lines.select(*(f.regexp_extract("line", LINE, group).alias(name) for name, group in _GROUPS.items()))
    counts = parts.groupBy(f.trim(f.concat_ws(" ", "day", "hour")).alias("hour"), "kind").count()
    table = str(work_dir / f"{topic}-table")

    def keep(batch: DataFrame, _: int) -> None:
        batch.coalesce(1).write.mode("overwrite").parquet(table)

    query = (
        counts.writeStream.outputMode("complete")
        .foreachBatch(keep)
        .option("checkpointLocation", str(work_dir / f"{topic}-checkpoint"))
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()
    rows = session.read.parquet(table).collect()
    return {((row["hour"], row["kind"]) if row["kind"] else OTHER): row["count"] for row in rows}


_GROUPS = {"day": 1, "hour": 2, "kind": 3}


def show(table: Table, rows: int = 20) -> str:
    """The table as text: a row per hour, a column per kind, the `rows` latest hours."""
    kinds = sorted({kind for _, kind in table})
    hours = sorted({hour for hour, _ in table})
    widths = [max(len(kind), 6) for kind in kinds]
    lines = [" ".join(["hour".ljust(13), *(kind.rjust(width) for kind, width in zip(kinds, widths, strict=True))])]
    for hour in hours[-rows:]:
        cells = [str(table.get((hour, kind), "")).rjust(width) for kind, width in zip(kinds, widths, strict=True)]
        lines.append(" ".join([hour.ljust(13), *cells]))
    if len(hours) > rows:
        lines.insert(1, f"… {len(hours) - rows} earlier hours")
    return "\n".join(lines)


@contextmanager
def own_broker(work_dir: Path) -> Iterator[str]:
    """Start a broker on the data in `work_dir`; yields its address."""
    ready = work_dir / "ready"
    ready.unlink(missing_ok=True)
    command = [sys.executable, "-m", "barnabas", "serve", "--listen", "127.0.0.1:0"]
    command += ["--data-dir", str(work_dir / "data"), "--ready-file", str(ready)]
    with (work_dir / "broker.log").open("ab") as log:
        process = subprocess.Popen(command, stdout=log, stderr=log, cwd=ROOT)
    try:
        while not ready.exists():
            if process.poll() is not None:
                raise SystemExit(f"log_report: the broker did not start; see {work_dir / 'broker.log'}")
            time.sleep(0.02)
        yield ready.read_text().strip()
    finally:
        process.terminate()
        process.wait(30)


def report(log: Path, bootstrap: str, topic: str, work_dir: Path) -> bool:
    """Feed, count, compare and print; returns whether the tables are equal."""
    from barnabas.spark.activity import saying
    from barnabas.spark.session.spark import session

    started = time.monotonic()
    with saying(f"sending the lines of {log} to topic {topic}"):
        sent = feed(log, bootstrap, topic)
    print(f"{sent} lines of {log} into topic {topic} at {bootstrap} in {time.monotonic() - started:.1f} s", flush=True)
    spark = session("log report", settings={"spark.ui.enabled": "false"}, log=work_dir / "spark.log")
    try:
        started = time.monotonic()
        with saying("counting the lines with Spark"):
            counted = count_with_spark(spark, bootstrap, topic, work_dir)
    finally:
        spark.stop()
    print(f"Spark counted {sum(counted.values())} lines in {time.monotonic() - started:.1f} s\n\n{show(counted)}\n")
    expected = count_directly(log)
    if counted == expected:
        print(f"equal to the counts of the file ({len(expected)} cells)")
        return True
    for cell in sorted(counted.keys() | expected.keys()):
        if counted.get(cell) != expected.get(cell):
            print(f"different: {cell}: Spark {counted.get(cell)}, file {expected.get(cell)}")
    return False


def main() -> int:
    """The command line; 0 if the tables are equal, 1 if not, or if it fails; 2 for a mistake; 130 for Ctrl-C."""
    parser = argparse.ArgumentParser(prog="log_report", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("file", nargs="?", default=DEFAULT_LOG, help=f"the log to count (default {DEFAULT_LOG})")
    parser.add_argument("--bootstrap", help="a running broker; without it, one is started for this run")
    parser.add_argument("--topic", default="log-report")
    parser.add_argument("--work-dir", help="directory for the checkpoint, the table and the broker's data")
    arguments = parser.parse_args()
    log = Path(arguments.file)
    if not log.is_file():
        parser.error(f"there is no file {log}: name a log to count")
    work_dir = Path(arguments.work_dir or ROOT / ".cache" / "log-report").resolve()
    work_dir.mkdir(parents=True, exist_ok=True)
    try:
        return _run(log, arguments.bootstrap, arguments.topic, work_dir)
    except KeyboardInterrupt:
        print(f"log_report: interrupted; with --work-dir {work_dir} it continues", file=sys.stderr)
        return 130


def _run(log: Path, bootstrap: str | None, topic: str, work_dir: Path) -> int:
    """Make the report; one sentence on stderr if that fails."""
    from py4j.protocol import Py4JError
    from pyspark.errors import PySparkException

    from barnabas.spark.errors import PipelineError
    from barnabas.spark.failures import sentence_of
    from barnabas.spark.session.spark import check_machine, log_file

    try:
        check_machine()
        with nullcontext(bootstrap) if bootstrap else own_broker(work_dir) as address:
            try:
                return 0 if report(log, address, topic, work_dir) else 1
            except (PySparkException, Py4JError) as error:
                failure = sentence_of(error, address)
                failure.log = log_file()
                raise failure from error
    except PipelineError as error:
        print(f"log_report: {error}", file=sys.stderr)
        return error.exit_code


if __name__ == "__main__":
    sys.exit(main())
