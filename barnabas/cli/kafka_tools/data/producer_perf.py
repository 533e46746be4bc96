"""kafka-producer-perf-test: how fast records are sent and acknowledged; `barnabas perf produce` sends them."""

from __future__ import annotations

import argparse
import os
from collections.abc import Iterator, Mapping, Sequence
from itertools import count, cycle
from pathlib import Path
from time import monotonic
from uuid import uuid4

from barnabas.cli.kafka_tools.arguments import Usage
from barnabas.cli.kafka_tools.common import ACTED_ON, connect_to, key_values, read_properties, warn_of_unused
from barnabas.cli.kafka_tools.data.console_producer import ACKS, CODECS, choice
from barnabas.cli.kafka_tools.subcommands import ToolParser
from barnabas.cli.perf.common import payloads
from barnabas.cli.perf.histogram import Histogram
from barnabas.cli.perf.produce import Load
from barnabas.cli.records.produce import partitioner_maker
from barnabas.client.accumulator import Batch
from barnabas.client.producer import Producer

NAME = "kafka-producer-perf-test"
CONFIG = {"acks", "batch.size", "buffer.memory", "compression.type", "linger.ms"}
CONFIG |= {"enable.idempotence", "transactional.id"}
MIB = 1024 * 1024
TRANSACTION_MS = 3000


def make_parser() -> argparse.ArgumentParser:
    """The options."""
    parser = ToolParser(prog=NAME, description="This tool is used to verify the producer performance.")
    parser.add_argument("--bootstrap-server", metavar="HOST:PORT", help="The brokers to connect to.")
    parser.add_argument("--topic", required=True, metavar="TOPIC", help="The topic.")
    parser.add_argument("--num-records", required=True, type=int, metavar="COUNT", help="Records to send.")
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("--record-size", type=int, metavar="BYTES", help="Size of random values.")
    what.add_argument("--payload-file", metavar="FILE", help="File with values, which are sent in turn.")
    what.add_argument("--payload-monotonic", action="store_true", help="The values are increasing numbers.")
    parser.add_argument("--payload-delimiter", default="\\n", metavar="TEXT", help="Between the values of a file.")
    parser.add_argument(
        "--throughput", required=True, type=float, metavar="RATE", help="Records a second; -1: no limit."
    )
    parser.add_argument("--command-property", nargs="+", metavar="KEY=VALUE", help="Configuration of the producer.")
    parser.add_argument("--producer-props", nargs="+", metavar="KEY=VALUE", help="Old name of --command-property.")
    parser.add_argument("--command-config", metavar="FILE", help="File with configuration of the producer.")
    parser.add_argument(
        "--producer.config", dest="producer_config", metavar="FILE", help="Old name of --command-config."
    )
    parser.add_argument("--transactional-id", metavar="ID", help="Send in transactions.")
    parser.add_argument("--transaction-duration-ms", type=int, metavar="MS", help="Commit after this time.")
    parser.add_argument(
        "--warmup-records", type=int, default=0, metavar="COUNT", help="Also show the rest without these."
    )
    parser.add_argument("--reporting-interval", type=int, default=5000, metavar="MS", help="Time between two lines.")
    return parser


def main(arguments: Sequence[str]) -> int:
    """Run the tool."""
    parser = make_parser()
    args = parser.parse_args(list(arguments))
    if args.warmup_records >= args.num_records > 0:
        parser.error("The value for --warmup-records must be strictly fewer than the number of records in the test")
    config = _config(args)
    values = _values(args)
    if args.warmup_records:
        rest = "Steady state results will print after the complete test summary."
        print(f"Warmup first {args.warmup_records} records. {rest}")
    batch_bytes = int(config.get("batch.size", 16384))
    results = Results(args.warmup_records, args.reporting_interval / 1000)
    with connect_to(config["bootstrap.servers"], config) as cluster:
        producer = Producer(
            cluster,
            partitioner_maker("sticky", batch_bytes),
            acks=choice(ACKS, config.get("acks", "all"), "acks"),
            codec=choice(CODECS, config.get("compression.type", "none"), "compression.type"),
            batch_bytes=batch_bytes,
            buffer_bytes=int(config.get("buffer.memory", 32 * MIB)),
            idempotent=config.get("enable.idempotence", "true") != "false",
            transactional_id=config.get("transactional.id"),
            on_acknowledged=results.acknowledged,
        )
        producer.open(args.topic)
        results.begin()
        transaction_s = (args.transaction_duration_ms or TRANSACTION_MS) / 1000
        linger_s = float(config.get("linger.ms", 5)) / 1000
        load = Load(producer, args.topic, None, values, linger_s, args.throughput, transaction_s)
        load.run(args.num_records, results.report)
    results.print_totals()
    return 0


def _config(args: argparse.Namespace) -> dict[str, str]:
    """The producer's configuration: options before properties before the file."""
    for old, new in (("producer_props", "command_property"), ("producer_config", "command_config")):
        if getattr(args, old) is not None:
            old_name = "--producer.config" if old == "producer_config" else "--producer-props"
            what = f"Option {old_name} has been deprecated and will be removed in a future version"
            print(f"{what}. Use --{new.replace('_', '-')} instead.")
            setattr(args, new, getattr(args, old))
    config = read_properties(args.command_config) if args.command_config else {}
    try:
        config |= key_values(args.command_property or [])
    except ValueError as error:
        raise Usage(str(error)) from None
    warn_of_unused(config, ACTED_ON | CONFIG)
    server = args.bootstrap_server or config.get("bootstrap.servers") or os.environ.get("BARNABAS_BOOTSTRAP_SERVERS")
    if not server:
        raise Usage("At least one of --bootstrap-server, --command-property or --command-config must be specified.")
    config["bootstrap.servers"] = server
    if args.transactional_id is not None:
        config["transactional.id"] = args.transactional_id
    elif args.transaction_duration_ms is not None:
        config.setdefault("transactional.id", f"performance-producer-{uuid4()}")
    return config


def _values(args: argparse.Namespace) -> Iterator[bytes]:
    """The values to send, without end."""
    if args.payload_monotonic:
        return (str(number).encode() for number in count())
    if args.payload_file is None:
        return payloads(args.record_size, None, "")
    path = Path(args.payload_file)
    print(f"Reading payloads from: {path.absolute()}")
    if not path.exists() or not path.stat().st_size:
        raise Usage("File does not exist or empty file provided.")
    delimiter = args.payload_delimiter.encode().decode("unicode_escape")
    lines = [line.encode() for line in path.read_text(encoding="utf-8").split(delimiter)]
    values = lines[:-1] if lines[-1] == b"" else lines
    print(f"Number of records read: {len(values)}")
    return cycle(values)


class Results:
    """Latencies and rates: of all records, of those since the last line, and of those after the warm-up."""

    def __init__(self, warm_up: int, interval_s: float) -> None:
        self.total, self.recent = Part(), Part()
        self.steady = Part() if warm_up else None
        self.interval_s = interval_s
        self._warm_up_remaining = warm_up

    def begin(self) -> None:
        """The first record is sent."""
        self.total.begin()
        self.recent.begin()

    def acknowledged(self, batch: Batch) -> None:
        """A batch is acknowledged."""
        self.total.add(batch)
        self.recent.add(batch)
        if self.steady is not None and self._warm_up_remaining <= 0:
            self.steady.add(batch)
        elif self.steady is not None:
            self._warm_up_remaining -= batch.count
            self.steady.begin()

    def report(self) -> None:
        """Print a line when it is time."""
        if monotonic() - self.recent.started >= self.interval_s:
            print(f"{self.recent.line('records sent')}.", flush=True)
            self.recent = Part()
            self.recent.begin()

    def print_totals(self) -> None:
        """The last lines, with percentiles."""
        print(f"{self.total.line('records sent')}, {self.total.percentiles()}.")
        if self.steady is not None:
            print(f"{self.steady.line('steady state records sent')}, {self.steady.percentiles()}.")


class Part:
    """Acknowledged records of a stretch of time."""

    def __init__(self) -> None:
        self.latencies = Histogram()
        self.bytes = 0
        self.begin()

    def begin(self) -> None:
        """The time begins now."""
        self.started = self.ended = monotonic()

    def add(self, batch: Batch) -> None:
        """A batch is acknowledged."""
        self.ended = monotonic()
        self.bytes += batch.size
        self.latencies.add(self.ended - batch.opened_at, batch.count)

    def line(self, what: str) -> str:
        """Records, rates and latencies."""
        seconds = max(self.ended - self.started, 0.000001)
        number, total = self.latencies.count, self.latencies.total
        rates = f"{number / seconds:.1f} records/sec ({self.bytes / MIB / seconds:.2f} MB/sec)"
        average = total * 1000 / number if number else 0.0
        largest = self.latencies.largest * 1000
        return f"{number} {what}, {rates}, {average:.2f} ms avg latency, {largest:.2f} ms max latency"

    def percentiles(self) -> str:
        """Latencies in whole milliseconds."""
        names: Mapping[float, str] = {50.0: "50th", 95.0: "95th", 99.0: "99th", 99.9: "99.9th"}
        percentiles = {name: self.latencies.percentile(percent) or 0.0 for percent, name in names.items()}
        return ", ".join(f"{round(seconds * 1000)} ms {name}" for name, seconds in percentiles.items())
