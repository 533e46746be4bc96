"""kafka-get-offsets: offsets of partitions at a time."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Sequence

from barnabas.cli.kafka_tools.arguments import BOOTSTRAP, COMMAND_CONFIG, Option, Options, Parser, Usage
from barnabas.cli.kafka_tools.common import INTERNAL_TOPICS, Failed, connect
from barnabas.client.admin.topics import all_topics
from barnabas.client.cluster import Cluster
from barnabas.client.offsets import TopicPartition, list_offsets

TIMES = {
    "latest": -1,
    "earliest": -2,
    "max-timestamp": -3,
    "earliest-local": -4,
    "latest-tiered": -5,
    "earliest-pending-upload": -6,
}
UNKNOWN = -1
RANGE = re.compile(r"(\d*)-(\d*)")

PARSER = Parser(
    "kafka-get-offsets",
    "An interactive shell for getting topic-partition offsets.",
    [
        BOOTSTRAP,
        COMMAND_CONFIG,
        Option("topic", "Topics: a regular expression.", "REGEX"),
        Option("partitions", "Partitions of --topic, separated by commas.", "NUMBERS"),
        Option("topic-partitions", "topic:0, topic:0-2 (without 2), topic:1-, separated by commas.", "PATTERNS"),
        Option("time", f"A time in milliseconds, or {', '.join(TIMES)}.", "TIME", default="latest"),
        Option("exclude-internal-topics", "Leave out internal topics."),
        Option("broker-list", "Old name of --bootstrap-server.", "HOST:PORT"),
    ],
)

Accepts = Callable[[str, int], bool]


def main(arguments: Sequence[str]) -> int:
    """Run the tool."""
    if not arguments:
        raise Usage(PARSER.purpose)
    try:
        options = _options(arguments)
        with connect(options) as cluster:
            _print(cluster, options)
    except Failed as error:
        print(f"Error occurred: {error}", file=sys.stderr)
        return 1
    return 0


def _options(arguments: Sequence[str]) -> Options:
    try:
        options = PARSER.parse(arguments)
    except Usage as error:
        raise Failed(str(error)) from None
    if options.has("broker-list"):
        options.values.setdefault("bootstrap-server", options.all("broker-list"))
    options.require("bootstrap-server")
    return options


def _print(cluster: Cluster, options: Options) -> None:
    time, accepts = _time(options.only("time")), _filter(options)
    topics = [topic for topic in all_topics(cluster) if topic.name is not None]
    if options.has("exclude-internal-topics"):
        topics = [topic for topic in topics if topic.name not in INTERNAL_TOPICS]
    places = [(topic.name or "", partition.partition_index) for topic in topics for partition in topic.partitions]
    selected: list[TopicPartition] = sorted(place for place in places if accepts(*place))
    if not selected:
        raise Failed("Could not match any topic-partitions with the specified filters")
    offsets = list_offsets(cluster, dict.fromkeys(selected, time))
    for topic, index in selected:
        if offsets[topic, index] != UNKNOWN:
            print(f"{topic}:{index}:{offsets[topic, index]}")


def _time(text: str) -> int:
    if text in TIMES:
        return TIMES[text]
    try:
        return int(text)
    except ValueError:
        known = " / ".join(f"{number} or {name}" for name, number in TIMES.items())
        problem = f"Malformed time argument {text}. Please use {known}"
        raise Failed(f"{problem}, or a specified long format timestamp") from None


# --- filters


def _filter(options: Options) -> Accepts:
    if not options.has("topic-partitions"):
        return _topic_filter(options.only("topic"), options.only("partitions"))
    if options.has("topic", "partitions"):
        raise Failed("--topic-partitions cannot be used with --topic or --partitions")
    rules = [_rule(text.strip()) for text in options.only("topic-partitions").split(",")]
    return lambda topic, index: any(rule(topic, index) for rule in rules)


def _pattern(text: str) -> re.Pattern[str]:
    try:
        return re.compile(text)
    except re.error as error:
        raise Failed(f"{text} is an invalid regex: {error}") from None


def _topic_filter(topic: str | None, partitions: str | None) -> Accepts:
    pattern = _pattern((topic or ".*").replace(",", "|"))
    numbers = partitions.split(",") if partitions else []
    if not all(number.isdigit() for number in numbers):
        what = "--partitions expects a comma separated list of numeric partition ids"
        raise Failed(f"{what}, but received: {partitions}")
    indexes = set(map(int, numbers))
    return lambda name, index: pattern.fullmatch(name) is not None and (not indexes or index in indexes)


def _rule(text: str) -> Accepts:
    """`topic`, `topic:0`, `topic:0-2`, `topic:1-`, `:0`."""
    topic, colon, partitions = text.partition(":")
    if ":" in partitions:
        raise Failed(f"org.apache.kafka.tools.TerseException: Invalid rule specification: {text}")
    pattern = _pattern(topic or ".*")
    low, high = _limits(partitions, text) if colon and partitions else (0, None)
    return lambda name, index: pattern.fullmatch(name) is not None and index >= low and (high is None or index < high)


def _limits(partitions: str, rule: str) -> tuple[int, int | None]:
    if partitions.isdigit():
        return int(partitions), int(partitions) + 1
    match = RANGE.fullmatch(partitions)
    if match is None or partitions == "-":
        raise Failed(f"org.apache.kafka.tools.TerseException: Invalid rule specification: {rule}")
    return int(match[1] or 0), int(match[2]) if match[2] else None
