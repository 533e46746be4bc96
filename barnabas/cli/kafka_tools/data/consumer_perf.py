"""kafka-consumer-perf-test: how fast records are read, in the table of Kafka's tool.

Without `--group` partitions are read without a group, so nothing is rebalanced.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from datetime import datetime
from time import monotonic, time

from barnabas.cli.kafka_tools.arguments import BOOTSTRAP, COMMAND_CONFIG, Option, Options, Parser, Usage
from barnabas.cli.kafka_tools.common import connect_to
from barnabas.cli.kafka_tools.data.console_consumer import consumer_config, matching, records_of
from barnabas.client.cluster import Cluster
from barnabas.wire.batches.records import Record

MIB = 1024 * 1024
HEAD = "data.consumed.in.MB, MB.sec, data.consumed.in.nMsg, nMsg.sec"
MORE = "rebalance.time.ms, fetch.time.ms, fetch.MB.sec, fetch.nMsg.sec"

PARSER = Parser(
    "kafka-consumer-perf-test",
    "This tool is used to verify the consumer performance.",
    [
        BOOTSTRAP,
        COMMAND_CONFIG,
        Option("topic", "The topic.", "TOPIC"),
        Option("include", "A regular expression of topics.", "REGEX"),
        Option("num-records", "Records to read.", "COUNT", "long"),
        Option("messages", "Old name of --num-records.", "COUNT", "long"),
        Option("group", "Read as a member of this group.", "GROUP"),
        Option("from-latest", "Begin with the next record where the group has no offset."),
        Option("timeout", "Time without a record, after which it ends.", "MS", "long", default=10000),
        Option("reporting-interval", "Time between two lines of --show-detailed-stats.", "MS", "long", default=5000),
        Option("show-detailed-stats", "A line per interval instead of one at the end."),
        Option("hide-header", "Print no header."),
        Option("command-property", "Configuration of the consumer; may be repeated.", "KEY=VALUE"),
        Option("consumer-property", "Old name of --command-property.", "KEY=VALUE"),
        Option("consumer.config", "Old name of --command-config.", "FILE"),
    ],
)


class Enough(Exception):  # noqa: N818 (a condition, named as such)
    """No record has arrived for `--timeout`."""


def main(arguments: Sequence[str]) -> int:
    """Run the tool."""
    options = PARSER.parse(arguments)
    for names in (("topic", "include"), ("num-records", "messages")):
        if sum(options.has(name) for name in names) != 1:
            listed = ", ".join(f"[{name}]" for name in sorted(names))
            raise Usage(f"Exactly one of the following arguments is required: {listed}")
    options.require("bootstrap-server")
    if options.has("messages"):
        print("Warning: --messages is deprecated. Use --num-records instead.")
    config = consumer_config(options, {"auto.offset.reset", "group.id", "isolation.level"})
    config.setdefault("auto.offset.reset", "latest" if options.has("from-latest") else "earliest")
    config.setdefault("isolation.level", "read_uncommitted")
    if options.has("group"):
        config["group.id"] = options.only("group")
    if not options.has("hide-header"):
        print(f"{'time, threadId' if options.has('show-detailed-stats') else 'start.time, end.time'}, {HEAD}, {MORE}")
    with connect_to(options.get("bootstrap-server"), config) as cluster:
        _measure(cluster, options, config)
    return 0


def _measure(cluster: Cluster, options: Options, config: dict[str, str]) -> None:
    count = options.only("num-records") if options.has("num-records") else options.only("messages")
    timeout_ms = options.only("timeout")
    run = Run(timeout_ms / 1000, options.only("reporting-interval") / 1000, options.has("show-detailed-stats"))
    try:
        if count > 0:
            for record in _records(cluster, options, config, run.idle, count):
                run.add(record)
                if run.count >= count and "group.id" not in config:
                    break
    except Enough:
        what = f"timeout ({timeout_ms} ms) exceeded. You can use the --timeout option to increase the timeout."
        print(f"WARNING: Exiting before consuming the expected number of records: {what}")
    if not options.has("show-detailed-stats"):
        run.print_total()


def _records(
    cluster: Cluster, options: Options, config: dict[str, str], on_idle: Callable[[], None], limit: int
) -> Iterator[Record]:
    topic = options.only("topic")

    def topics(client: Cluster) -> Sequence[str]:
        return [topic] if topic is not None else matching(client, options.only("include"))

    if topic is not None:
        cluster.find_topic(topic)
    for _, record in records_of(cluster, options.get("bootstrap-server"), config, topics, on_idle, limit):
        yield record


class Run:
    """Counts records and bytes, and prints them."""

    def __init__(self, timeout_s: float, interval_s: float, shows_details: bool) -> None:
        self.timeout_s = timeout_s
        self.interval_s = interval_s
        self.shows_details = shows_details
        self.count = self.bytes = 0
        self.began = time()
        self.started = self.last = self.reported = monotonic()
        self._before = (0, 0)

    def idle(self) -> None:
        """Nothing has arrived; `Enough` after the timeout."""
        if monotonic() - self.last > self.timeout_s:
            raise Enough

    def add(self, record: Record) -> None:
        """A record was read."""
        self.count += 1
        self.bytes += len(record.key or b"") + len(record.value or b"")
        self.last = monotonic()
        if self.shows_details and self.last - self.reported >= self.interval_s:
            self._print_details()

    def _print_details(self) -> None:
        seconds = self.last - self.reported
        count, size = self.count - self._before[0], (self.bytes - self._before[1]) / MIB
        rates = f"{size / seconds:.4f}, {self.count}, {count / seconds:.4f}"
        fetch = f"0, {seconds * 1000:.0f}, {size / seconds:.4f}, {count / seconds:.4f}"
        print(f"{_moment(time())}, 0, {self.bytes / MIB:.4f}, {rates}, {fetch}", flush=True)
        self.reported, self._before = self.last, (self.count, self.bytes)

    def print_total(self) -> None:
        """One line about everything."""
        seconds = monotonic() - self.started
        size = self.bytes / MIB
        rates = f"{size / seconds:.4f}, {self.count}, {self.count / seconds:.4f}"
        fetch = f"0, {seconds * 1000:.0f}, {size / seconds:.4f}, {self.count / seconds:.4f}"
        print(f"{_moment(self.began)}, {_moment(time())}, {size:.4f}, {rates}, {fetch}")


def _moment(seconds: float) -> str:
    """A local time as Kafka's `yyyy-MM-dd HH:mm:ss:SSS`."""
    moment = datetime.fromtimestamp(seconds).astimezone()
    return f"{moment:%Y-%m-%d %H:%M:%S}:{moment.microsecond // 1000:03}"
