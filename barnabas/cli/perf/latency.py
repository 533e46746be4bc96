"""`barnabas perf latency`: the time from sending a record until a consumer has it, one record at a time.

As Kafka's EndToEndLatency: a record is sent, its acknowledgement awaited, and then the record itself, for which a fetch
waits at the broker already. Two connections on one core: the time contains this client's own work.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from time import monotonic

import click

from barnabas.cli.options.parameters import bootstrap_option, connect, output_option, timeout_option
from barnabas.cli.perf.common import acks_option, payloads, show_result, size_option
from barnabas.cli.perf.histogram import Histogram
from barnabas.cli.records.produce import ACKS
from barnabas.client.errors import TimedOut
from barnabas.client.offsets import end_offsets
from barnabas.client.producer import Producer
from barnabas.client.reader import Reader
from barnabas.terminal.progress import progress
from barnabas.wire.clients.partitioners import RoundRobin

SHOW_EVERY = 100


@click.command()
@click.argument("topic")
@click.option("-n", "--num-records", type=click.IntRange(min=1), default=1000, show_default=True, metavar="N")
@size_option
@acks_option
@click.option("--warm-up", type=click.IntRange(min=0), default=100, show_default=True, metavar="N", help="Sent before.")
@output_option
@bootstrap_option
@timeout_option
def latency(
    topic: str,
    num_records: int,
    record_size: int,
    acks: str,
    warm_up: int,
    output: str,
    bootstrap: str,
    timeout_s: float,
) -> None:
    """Measure the time until a record that is sent to TOPIC is acknowledged, and until it is read."""
    with connect(bootstrap, timeout_s) as sending, connect(bootstrap, timeout_s) as reading:
        producer = Producer(sending, RoundRobin, acks=ACKS[acks])
        partitions = [(topic, index) for index in range(producer.open(topic))]
        reader = Reader(reading, end_offsets(reading, partitions))
        trips = RoundTrips(producer, reader, topic, payloads(record_size, None, ""), timeout_s)
        with progress("records", num_records + warm_up) as show:
            for number in range(num_records + warm_up):
                if number == warm_up:
                    trips.forget()
                trips.measure()
                if number % SHOW_EVERY == 0:
                    show(number)
    show_result(trips.result(), output)


@dataclass(eq=False)
class RoundTrips:
    """Records on their way, one after the other."""

    producer: Producer
    reader: Reader
    topic: str
    values: Iterator[bytes]
    timeout_s: float

    def __post_init__(self) -> None:
        self.forget()

    def forget(self) -> None:
        """Begin to measure."""
        self.acknowledged = Histogram()
        self.read = Histogram()

    def measure(self) -> None:
        """Send a record and wait until it is read. TimedOut if another one, or none, is read."""
        value = next(self.values)
        self.reader.poll(0.0)
        sent_at = monotonic()
        self.producer.send(self.topic, value)
        self.producer.flush()
        self.acknowledged.add(monotonic() - sent_at)
        while True:
            values = [record.value for fetched in self.reader.poll(0.1) for record in fetched.records()]
            now = monotonic()
            if value in values:
                self.read.add(now - sent_at)
                return
            if values:
                raise TimedOut(f"another record was read: does something else write to {self.topic!r}?")
            if now - sent_at > self.timeout_s:
                raise TimedOut(f"a record of {self.topic!r} was not read in {self.timeout_s:g} s")

    def result(self) -> dict[str, object]:
        """Percentiles of both times."""
        times = {"acknowledged": self.acknowledged, "end_to_end": self.read}
        row: dict[str, object] = {"records": self.read.count}
        for name, histogram in times.items():
            row |= {f"{name}_{key}": value for key, value in histogram.row().items()}
        return row
