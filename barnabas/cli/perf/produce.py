"""`barnabas perf produce`: rate and latency of producing.

The latency of a record is the time from the first record of its batch until the batch is acknowledged, an upper bound
for the others of the batch. It contains the time that batches wait in this client, so without --throughput it is
mostly that of a full buffer, as with kafka-producer-perf-test.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from time import monotonic

import click

from barnabas.cli.options.duration import Duration
from barnabas.cli.options.parameters import bootstrap_option, connect, output_option, timeout_option
from barnabas.cli.perf.common import acks_option, payloads, rates, show_result, size_option
from barnabas.cli.perf.histogram import Histogram
from barnabas.cli.records.interrupts import Interrupts
from barnabas.cli.records.produce import ACKS, BATCH_BYTES, CODECS, PARTITIONERS, partitioner_maker
from barnabas.client.accumulator import Batch
from barnabas.client.admin.topics import create_topic
from barnabas.client.cluster import Cluster
from barnabas.client.producer import Producer
from barnabas.terminal.plural import plural
from barnabas.terminal.progress import progress
from barnabas.wire.errors import ErrorCode, KafkaError

RECORDS_OF_A_LOOK = 64
SHOW_EVERY_S = 0.5


@click.command()
@click.argument("topic")
@click.option("-n", "--num-records", type=click.IntRange(min=1), default=1_000_000, show_default=True, metavar="N")
@size_option
@click.option(
    "--payload-file",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    metavar="FILE",
    help="Send the values of FILE in turn, instead of random ones.",
)
@click.option("--payload-delimiter", default="\\n", show_default=True, metavar="TEXT", help="Between values of FILE.")
@click.option(
    "--throughput", type=float, default=-1, metavar="N", help="Records a second. [default: as many as possible]"
)
@click.option(
    "--warm-up", type=click.IntRange(min=0), default=0, metavar="N", help="Do not measure the first N records."
)
@click.option("--partitions", type=click.IntRange(min=1), metavar="N", help="Create the topic with N if it is missing.")
@click.option("-p", "--partition", type=click.IntRange(min=0), metavar="N", help="Send everything to this partition.")
@click.option("--partitioner", type=click.Choice(PARTITIONERS), default="load-aware", show_default=True)
@acks_option
@click.option("-z", "--compression", type=click.Choice(CODECS), default="none", show_default=True)
@click.option("--batch-size", type=click.IntRange(min=1), default=BATCH_BYTES, metavar="BYTES", show_default=True)
@click.option("--linger", "linger_s", type=Duration(), default=0.005, metavar="TIME", help="[default: 5ms]")
@click.option("--idempotent/--no-idempotent", default=True, show_default=True, help="With --acks all.")
@click.option("--transactional-id", metavar="ID", help="Send in transactions.")
@click.option(
    "--transaction-duration",
    "transaction_s",
    type=Duration(),
    default=3.0,
    metavar="TIME",
    help="Commit after this time. [default: 3s]",
)
@output_option
@bootstrap_option
@timeout_option
def produce(
    topic: str,
    num_records: int,
    record_size: int,
    payload_file: Path | None,
    payload_delimiter: str,
    throughput: float,
    warm_up: int,
    partitions: int | None,
    partition: int | None,
    partitioner: str,
    acks: str,
    compression: str,
    batch_size: int,
    linger_s: float,
    idempotent: bool,
    transactional_id: str | None,
    transaction_s: float,
    output: str,
    bootstrap: str,
    timeout_s: float,
) -> None:
    """Measure how fast records are sent to TOPIC and acknowledged, as kafka-producer-perf-test does.

    The latency of a record is counted from the first record of its batch, and contains the time in this client.
    """
    if warm_up >= num_records:
        raise click.BadParameter(f"must be less than the {num_records} records in all", param_hint="--warm-up")
    if transactional_id is not None and (ACKS[acks] != -1 or not idempotent):
        raise click.UsageError("transactions need --acks all and --idempotent")
    values = payloads(record_size, payload_file, payload_delimiter)
    with connect(bootstrap, timeout_s) as cluster:
        if partitions is not None:
            _create(cluster, topic, partitions)
        measured = Measurement(warm_up)
        producer = Producer(
            cluster,
            partitioner_maker(partitioner, batch_size),
            acks=ACKS[acks],
            codec=CODECS.index(compression),
            batch_bytes=batch_size,
            idempotent=idempotent,
            transactional_id=transactional_id,
            on_acknowledged=measured.acknowledged,
        )
        producer.open(topic)
        load = Load(producer, topic, partition, values, linger_s, throughput, transaction_s)
        try:
            with (
                progress("records", num_records) as show,
                Interrupts(lambda: producer.stop(KeyboardInterrupt())),
            ):
                load.run(num_records, lambda: show(producer.acknowledged_records, measured.note()))
        except KeyboardInterrupt:
            if producer.transaction is not None:
                producer.settle(timeout_s)
                producer.transaction.end(commit=False)
            show_result(measured.result(), output)
            raise
        show_result(measured.result(), output)


def _create(cluster: Cluster, topic: str, partitions: int) -> None:
    try:
        create_topic(cluster, topic, partitions=partitions)
    except KafkaError as error:
        if error.code != ErrorCode.TOPIC_ALREADY_EXISTS:
            raise
        count = len(cluster.find_topic(topic).leaders)
        if count != partitions:
            sentence = f"topic {topic!r} exists with {count} {plural('partition', count)}"
            raise click.BadParameter(sentence, param_hint="--partitions") from None


class Measurement:
    """Counts acknowledged batches after the warm-up."""

    def __init__(self, warm_up: int) -> None:
        self.latencies = Histogram()
        self._recent = Histogram()
        self._recent_since = monotonic()
        self._warm_up_remaining = warm_up
        self._bytes = 0
        self._started = monotonic()
        self._ended = self._started

    def acknowledged(self, batch: Batch) -> None:
        """A batch is acknowledged."""
        now = monotonic()
        if self._warm_up_remaining > 0:
            self._warm_up_remaining -= batch.count
            self._started = self._recent_since = self._ended = now
            return
        self._ended = now
        self._bytes += batch.size
        self.latencies.add(now - batch.opened_at, batch.count)
        self._recent.add(now - batch.opened_at, batch.count)

    def note(self) -> str:
        """Rate and latency since the last note."""
        recent, seconds = self._recent, monotonic() - self._recent_since
        p99 = recent.percentile(99.0)
        if p99 is None or not seconds:
            return ""
        self._recent, self._recent_since = Histogram(), monotonic()
        return f"{recent.count / seconds:,.0f}/s p99 {p99 * 1000:.1f} ms"

    def result(self) -> dict[str, object]:
        """The measurement; bytes are those of batches as they were sent."""
        return rates(self.latencies.count, self._bytes, self._ended - self._started) | self.latencies.row()


@dataclass(eq=False)
class Load:
    """Sends records at a rate."""

    producer: Producer
    topic: str
    partition: int | None
    values: Iterator[bytes]
    linger_s: float
    throughput: float
    transaction_s: float

    def run(self, count: int, on_look: Callable[[], None]) -> None:
        """Send `count` records and wait for their acknowledgements."""
        producer, topic, partition, send = self.producer, self.topic, self.partition, self.producer.send
        started = monotonic()
        self._seal_at = started + self.linger_s
        self._commit_at = started + self.transaction_s
        self._show_at = started + SHOW_EVERY_S
        look = 1 if 0 < self.throughput < 10_000 else RECORDS_OF_A_LOOK
        for number, value in zip(range(1, count + 1), self.values, strict=False):
            send(topic, value, partition=partition)
            if number % look == 0:
                self._look(number, started, on_look)
        producer.flush()
        if producer.transaction is not None:
            producer.transaction.end(commit=True)
            producer.transaction.wait_until_visible()

    def _look(self, number: int, started: float, on_look: Callable[[], None]) -> None:
        """Send what has waited long enough, commit, and wait where the rate is ahead of what was asked for."""
        producer = self.producer
        while True:
            now = monotonic()
            if now >= self._seal_at:
                producer.seal()
                self._seal_at = now + self.linger_s
            if producer.transaction is not None and now >= self._commit_at:
                producer.flush()
                producer.transaction.end(commit=True)
                self._commit_at = monotonic() + self.transaction_s
            if now >= self._show_at:
                self._show_at = now + SHOW_EVERY_S
                on_look()
            ahead = started + number / self.throughput - now if self.throughput > 0 else 0.0
            if ahead <= 0:
                return
            producer.pump(max(0.0, min(ahead, self._seal_at - now)))
