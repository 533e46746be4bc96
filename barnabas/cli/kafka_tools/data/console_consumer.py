"""kafka-console-consumer: print records of topics, alone or as a member of a group."""

from __future__ import annotations

import re
import select
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from time import monotonic

from barnabas.cli.kafka_tools.arguments import (
    BOOTSTRAP,
    COMMAND_CONFIG,
    BadArgument,
    Leave,
    Option,
    Options,
    Parser,
    Usage,
)
from barnabas.cli.kafka_tools.common import ACTED_ON, connect_to, key_values, read_properties, warn_of_unused
from barnabas.cli.kafka_tools.data.formatters import PREFIX, Formatter, Message, formatter
from barnabas.client.admin.configs import topic_configs
from barnabas.client.admin.topics import all_topics
from barnabas.client.cluster import Cluster
from barnabas.client.groups.consumer import GroupConsumer
from barnabas.client.groups.member import GroupMember
from barnabas.client.offsets import TopicPartition, end_offsets, start_offsets
from barnabas.client.reader import Reader
from barnabas.wire.batches.records import Record

CONFIG = {"auto.offset.reset", "group.id", "group.instance.id", "isolation.level", "enable.auto.commit"}
_TIMESTAMP_TYPES: dict[str, str] = {}
"""`message.timestamp.type` of topics whose records are printed with their timestamps."""

PARSER = Parser(
    "kafka-console-consumer",
    "This tool helps to read data from Kafka topics and outputs it to standard output.",
    [
        BOOTSTRAP,
        COMMAND_CONFIG,
        Option("topic", "The topic.", "TOPIC"),
        Option("include", "A regular expression of topics; the topics that exist at the start are read.", "REGEX"),
        Option("partition", "Only this partition; from its end without --offset.", "NUMBER", "int"),
        Option("offset", "earliest, latest or a number; with --partition.", "OFFSET", default="latest"),
        Option("from-beginning", "Begin with the earliest record where the group has no offset."),
        Option("max-messages", "Stop after this number of records.", "COUNT", "int"),
        Option("timeout-ms", "Stop when no record has arrived for this time.", "MS", "long"),
        Option("group", "Read as a member of this group, and commit.", "GROUP"),
        Option("isolation-level", "read_uncommitted or read_committed.", "LEVEL", default="read_uncommitted"),
        Option("formatter", "DefaultMessageFormatter, LoggingMessageFormatter or NoOpMessageFormatter.", "CLASS"),
        Option("formatter-property", "A property of the formatter, see below; may be repeated.", "KEY=VALUE"),
        Option("formatter-config", "File with such properties.", "FILE"),
        Option("property", "Old name of --formatter-property.", "KEY=VALUE"),
        Option("key-deserializer", "Class of Kafka for keys, as ...LongDeserializer.", "CLASS"),
        Option("value-deserializer", "Class of Kafka for values.", "CLASS"),
        Option("skip-message-on-error", "Go on after a record that cannot be formatted."),
        Option("enable-systest-events", "Print shutdown_complete at the end."),
        Option("command-property", "Configuration of the consumer; may be repeated.", "KEY=VALUE"),
        Option("consumer-property", "Old name of --command-property.", "KEY=VALUE"),
        Option("consumer.config", "Old name of --command-config.", "FILE"),
    ],
    "Formatter properties: print.timestamp, print.partition, print.offset, print.headers, print.key, print.value, "
    "key.separator, line.separator, headers.separator, null.literal, key.deserializer, value.deserializer, "
    "headers.deserializer.",
)


class Idle(Exception):  # noqa: N818 (a condition, named as such)
    """No record has arrived for `--timeout-ms`."""


def main(arguments: Sequence[str]) -> int:
    """Run the tool."""
    try:
        options = PARSER.parse(arguments)
        _check(options)
        config = _config(options)
        printer = Printer(_formatter(options), options)
    except BadArgument as error:
        raise Usage(str(error)) from None
    try:
        with connect_to(options.get("bootstrap-server"), config) as cluster:
            _consume(cluster, options, config, printer)
    except Idle:
        pass
    finally:
        sys.stdout.flush()
        print(f"Processed a total of {printer.count} messages", file=sys.stderr)
    if options.has("enable-systest-events"):
        print("shutdown_complete")
    return 0


# --- options


def _check(options: Options) -> None:
    if options.has("topic") == options.has("include"):
        raise Usage("Exactly one of the following arguments is required: [topic], [include]")
    if options.has("partition"):
        if not options.has("topic"):
            raise Usage("The topic is required when partition is specified.")
        if options.has("from-beginning") and options.has("offset"):
            raise Usage("Options from-beginning and offset cannot be specified together.")
    elif options.has("offset"):
        raise Usage("The partition is required when offset is specified.")
    options.require("bootstrap-server")
    offset = str(options.only("offset"))
    if offset.lower() not in {"earliest", "latest"} and not (offset.isascii() and offset.isdigit()):
        allowed = "Valid values are 'earliest', 'latest', or a non-negative long."
        raise Usage(f"The provided offset value '{offset}' is incorrect. {allowed}")


def new_name(options: Options, old: str, new: str) -> None:
    """Say that an old option has a new name; both together are an error."""
    if options.has(old) and options.has(new):
        names = sorted((f"--{old}", f"--{new}"), key=lambda name: "formatter" in name)
        raise Usage(f"Options {names[0]} and {names[1]} cannot be specified together.")
    if options.has(old):
        print(f"Option --{old} is deprecated and will be removed in a future version. Use --{new} instead.")
        options.values[new] = options.values.pop(old)


def consumer_config(options: Options, known: Iterable[str]) -> dict[str, str]:
    """The configuration from the file and `--command-property`."""
    new_name(options, "consumer-property", "command-property")
    new_name(options, "consumer.config", "command-config")
    file = options.get("command-config")
    config = read_properties(file) if file else {}
    try:
        config |= key_values(options.all("command-property"))
    except ValueError as error:
        raise Usage(str(error)) from None
    warn_of_unused(config, {*ACTED_ON, *known})
    return config


def _config(options: Options) -> dict[str, str]:
    config = consumer_config(options, CONFIG)
    groups = sorted({*options.all("group"), *([config["group.id"]] if "group.id" in config else [])})
    if len(groups) > 1:
        ways = "(directly using '--group', via '--consumer-property', or via '--consumer.config')"
        listed = ", ".join(f"'{group}'" for group in groups)
        raise Usage(f"The group ids provided in different places {ways} do not match. Detected group ids: {listed}")
    if groups and options.has("partition"):
        raise Usage("Options group and partition cannot be specified together.")
    if groups:
        config["group.id"] = groups[0]
    reset = config.get("auto.offset.reset")
    if reset is not None and options.has("from-beginning") and reset != "earliest":
        both = f"--from-beginning and 'auto.offset.reset={reset}'"
        print(f"Can't simultaneously specify {both}, please remove one option", file=sys.stderr)
        raise Leave(1)
    config.setdefault("auto.offset.reset", "earliest" if options.has("from-beginning") else "latest")
    if options.has("isolation-level") or "isolation.level" not in config:
        config["isolation.level"] = options.only("isolation-level")
    return config


def _formatter(options: Options) -> Formatter:
    try:
        name = options.only("formatter") or f"{PREFIX}DefaultMessageFormatter"
        new_name(options, "property", "formatter-property")
        config = read_properties(options.get("formatter-config")) if options.has("formatter-config") else {}
        for what in ("key", "value"):
            if options.has(f"{what}-deserializer"):
                config[f"{what}.deserializer"] = options.only(f"{what}-deserializer")
        return formatter(name, config | key_values(options.all("formatter-property")))
    except ValueError as error:
        raise Usage(str(error)) from None


# --- reading


class Printer:
    """Prints messages and ends when there were enough, or none for too long."""

    def __init__(self, form: Formatter, options: Options) -> None:
        self.form = form
        self.count = 0
        self.most = options.only("max-messages")
        timeout = options.only("timeout-ms")
        self.timeout_s = None if timeout is None or timeout < 0 else timeout / 1000
        self.is_lenient = options.has("skip-message-on-error")
        self._last = monotonic()

    @property
    def is_done(self) -> bool:
        """True if `--max-messages` have been printed."""
        return self.most is not None and 0 <= self.most <= self.count

    def show(self, message: Message) -> bool:
        """Print one message; True if it was the last one of `--max-messages`."""
        self.count += 1
        self._last = monotonic()
        try:
            sys.stdout.buffer.write(self.form(message))
        except ValueError as error:
            if not self.is_lenient:
                raise
            print(f"Error: {error}", file=sys.stderr)
        return self.is_done

    def idle(self) -> None:
        """Nothing has arrived: show what was printed. `Idle` after `--timeout-ms`, BrokenPipeError without a reader."""
        sys.stdout.buffer.flush()
        if _is_unread():
            raise BrokenPipeError
        if self.timeout_s is not None and monotonic() - self._last > self.timeout_s:
            raise Idle


def _is_unread() -> bool:
    """True if stdout is a pipe whose reader has ended (`| head`): no write would ever notice it."""
    try:
        descriptor = sys.stdout.fileno()
    except OSError:
        return False
    poll = select.poll()
    poll.register(descriptor, 0)
    return any(event & select.POLLERR for _, event in poll.poll(0))


def _consume(cluster: Cluster, options: Options, config: dict[str, str], printer: Printer) -> None:
    if printer.is_done:
        return
    topics = _topics(cluster, options)
    if "group.id" in config:
        _read_as_member(cluster, options, config, printer)
        return
    reader = Reader(cluster, _starts(cluster, options, config, topics), committed_only=_committed_only(config))
    for partition, record in reader.records(printer.idle):
        if printer.show(message_of(cluster, partition, record)):
            return


def _committed_only(config: dict[str, str]) -> bool:
    return config["isolation.level"] == "read_committed"


def _topics(cluster: Cluster, options: Options) -> list[str]:
    if options.has("topic"):
        cluster.retry(lambda deadline: cluster.topic(options.only("topic"), deadline, create=True))
        return [options.only("topic")]
    matched = matching(cluster, options.only("include"))
    if not matched:
        raise Usage(f"--include {options.only('include')} matches no topic")
    return matched


def matching(cluster: Cluster, text: str) -> list[str]:
    """The topics that a regular expression matches, without internal ones."""
    try:
        pattern = re.compile(text)
    except re.error as error:
        raise Usage(f"--include {text} is no regular expression: {error}") from None
    return [
        topic.name or ""
        for topic in all_topics(cluster)
        if not topic.is_internal and pattern.fullmatch(topic.name or "")
    ]


def _starts(
    cluster: Cluster, options: Options, config: dict[str, str], topics: Sequence[str]
) -> dict[TopicPartition, int]:
    partitions = [(name, index) for name in topics for index in range(len(cluster.find_topic(name).leaders))]
    if not options.has("partition"):
        return _reset(cluster, config["auto.offset.reset"], partitions)
    partition = (topics[0], options.only("partition"))
    if partition not in partitions:
        raise Usage(f"topic '{topics[0]}' has no partition {partition[1]}")
    offset = options.only("offset").lower() if options.has("offset") else config["auto.offset.reset"]
    return {partition: int(offset)} if offset.isdigit() else _reset(cluster, offset, [partition])


def _reset(cluster: Cluster, where: str, partitions: Sequence[TopicPartition]) -> dict[TopicPartition, int]:
    """The offsets of `earliest` or `latest`."""
    return (start_offsets if where == "earliest" else end_offsets)(cluster, list(partitions))


def _read_as_member(cluster: Cluster, options: Options, config: dict[str, str], printer: Printer) -> None:
    if config.get("enable.auto.commit", "true").lower() == "false":
        raise Usage(
            "enable.auto.commit=false is not possible with a group: records are committed when they are printed"
        )

    def topics(client: Cluster) -> Sequence[str]:
        return [options.only("topic")] if options.has("topic") else matching(client, options.only("include"))

    records = records_of(cluster, options.get("bootstrap-server"), config, topics, printer.idle, printer.most)
    for partition, record in records:
        printer.show(message_of(cluster, partition, record))


def records_of(
    cluster: Cluster,
    bootstrap: str,
    config: dict[str, str],
    topics: Callable[[Cluster], Sequence[str]],
    on_idle: Callable[[], None],
    limit: int | None = None,
) -> Iterator[tuple[TopicPartition, Record]]:
    """The records of topics, `limit` of them: as a member of `group.id`, or of no group.

    A record is committed when the next one was asked for, so the caller takes them to the end.
    """
    if "group.id" not in config:
        partitions = [
            (name, index) for name in topics(cluster) for index in range(len(cluster.find_topic(name).leaders))
        ]
        starts = _reset(cluster, config["auto.offset.reset"], partitions)
        yield from Reader(cluster, starts, committed_only=_committed_only(config)).records(on_idle)
        return
    with connect_to(bootstrap, config) as member_cluster:
        consumer = GroupConsumer(
            cluster,
            GroupMember(member_cluster, config["group.id"], topics, config.get("group.instance.id")),
            lambda client, partitions: _reset(client, config["auto.offset.reset"], partitions),
            committed_only=_committed_only(config),
            before_commit=sys.stdout.buffer.flush,
        )
        try:
            for number, (partition, record) in enumerate(consumer.records(on_idle), 1):
                consumer.processed(partition, record.offset)
                yield partition, record
                consumer.processed(partition, record.offset + 1)
                if number == limit:
                    return
        finally:
            consumer.close()


def message_of(cluster: Cluster, partition: TopicPartition, record: Record) -> Message:
    """A record as formatters take it."""

    def timestamp_type() -> str:
        if partition[0] not in _TIMESTAMP_TYPES:
            configs = topic_configs(cluster, [partition[0]])[partition[0]]
            (timestamp_type,) = [entry.value for entry in configs if entry.name == "message.timestamp.type"]
            _TIMESTAMP_TYPES[partition[0]] = timestamp_type or "CreateTime"
        return _TIMESTAMP_TYPES[partition[0]]

    headers = list(record.headers)
    return Message(*partition, record.offset, record.timestamp, timestamp_type, record.key, record.value, headers)
