"""kafka-topics: create, delete, describe, list and change topics."""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence

from barnabas.cli.kafka_tools.arguments import BOOTSTRAP, COMMAND_CONFIG, BadArgument, Option, Options, Parser, Usage
from barnabas.cli.kafka_tools.common import INTERNAL_TOPICS, connect
from barnabas.cli.kafka_tools.failure import sentence
from barnabas.client.admin.configs import topic_configs
from barnabas.client.admin.topics import (
    add_partitions,
    all_topics,
    create_topic,
    delete_topics,
    describe_topic_partitions,
    partition_counts,
)
from barnabas.client.cluster import Cluster
from barnabas.wire.errors import ErrorCode, KafkaError
from barnabas.wire.messages.configs import DescribeConfigsResourceResult
from barnabas.wire.messages.metadata import (
    DescribeTopicPartitionsResponsePartition,
    DescribeTopicPartitionsResponseTopic,
)
from barnabas.wire.types import ZERO_UUID, uuid_from_text, uuid_to_text

ACTIONS = ("list", "describe", "create", "alter", "delete")
REPORTS = (
    "under-replicated-partitions",
    "unavailable-partitions",
    "under-min-isr-partitions",
    "at-min-isr-partitions",
)
CONFIGS_HINT = " (To alter topic configurations, the kafka-configs tool can be used.)"
DEFAULT_CONFIG = 5
"""DescribeConfigs' source of a value that nobody has set."""

PARSER = Parser(
    "kafka-topics",
    "Create, delete, describe, list and change topics.",
    [
        BOOTSTRAP,
        COMMAND_CONFIG,
        Option("list", "List the names of topics."),
        Option("create", "Create a topic."),
        Option("delete", "Delete topics."),
        Option("alter", "Increase the number of partitions."),
        Option("describe", "Show topics with their partitions and the configs that differ from the default."),
        Option("topic", "The topic; a regular expression, except with --create. Commas separate several.", "TOPIC"),
        Option("topic-id", "The id of a topic to describe.", "ID"),
        Option("config", "A config of a new topic; may be repeated.", "KEY=VALUE"),
        Option("delete-config", "No longer supported by Kafka either; kafka-configs does it.", "KEY"),
        Option("partitions", "Number of partitions of a new or altered topic.", "COUNT", "int"),
        Option("replication-factor", "Replicas of a new topic.", "COUNT", "int"),
        Option("replica-assignment", "Brokers of each partition: 1:2,2:1 are two partitions.", "BROKERS"),
        Option("under-replicated-partitions", "With --describe: only partitions with missing replicas."),
        Option("unavailable-partitions", "With --describe: only partitions without a leader."),
        Option("under-min-isr-partitions", "With --describe: only partitions below min.insync.replicas."),
        Option("at-min-isr-partitions", "With --describe: only partitions exactly at min.insync.replicas."),
        Option("topics-with-overrides", "With --describe: only topics with configs of their own."),
        Option("if-exists", "With --alter, --delete and --describe: a missing topic is no error."),
        Option("if-not-exists", "With --create: an existing topic is no error."),
        Option("exclude-internal", "With --list and --describe: leave out internal topics."),
        Option("partition-size-limit-per-response", "Partitions in one response of the broker.", "COUNT", "int"),
    ],
)


def main(arguments: Sequence[str]) -> int:
    """Run the tool."""
    try:
        options = PARSER.parse(arguments)
        _check(options, arguments)
        with connect(options) as cluster:
            _run(cluster, options)
    except BadArgument as error:
        return _failed(str(error))
    except Usage:
        raise
    except Exception as error:
        text = sentence(error)
        if text is None:
            raise
        return _failed(text)
    return 0


def _failed(text: str) -> int:
    print(f"Error while executing topic command : {text}")
    return 1


def _run(cluster: Cluster, options: Options) -> None:
    if options.has("create"):
        _create(cluster, options)
    elif options.has("alter"):
        _alter(cluster, options)
    elif options.has("list"):
        print("\n".join(_names(cluster, options)))
    elif options.has("describe"):
        _describe(cluster, options)
    else:
        names = _existing(cluster, options)
        if names:
            delete_topics(cluster, names)


# --- options


def _check(options: Options, arguments: Sequence[str]) -> None:
    if not arguments:
        raise Usage("Create, delete, describe, or change a topic.")
    if sum(options.has(action) for action in ACTIONS) != 1:
        listed = ", ".join(f"--{action}" for action in ACTIONS[:-1])
        raise Usage(f"Command must include exactly one action: {listed} or --delete")
    if not options.has("bootstrap-server"):
        raise Usage("--bootstrap-server must be specified")
    if options.has("delete-config"):
        print("delete-config is no longer supported; kafka-configs deletes configs.", file=sys.stderr)
    if options.has("describe") and options.has("if-exists") and not options.has("topic", "topic-id"):
        raise Usage("--topic or --topic-id is required to describe a topic")
    if not options.has("list", "describe"):
        options.require("topic")
    if options.has("alter"):
        if options.has("config"):
            combination = '"[[bootstrap-server], [config]]"'
            raise Usage(f'Option combination {combination} can\'t be used with option "[alter]"{CONFIGS_HINT}')
        options.require("partitions")
    _check_combinations(options)


def _check_combinations(options: Options) -> None:
    allowed = {
        "config": ("create",),
        "partitions": ("alter", "create"),
        "replication-factor": ("create",),
        "replica-assignment": ("alter", "create"),
        "if-exists": ("alter", "delete", "describe"),
        "if-not-exists": ("create",),
        "exclude-internal": ("list", "describe"),
        "topics-with-overrides": ("describe",),
        **dict.fromkeys(REPORTS, ("describe",)),
    }
    for name, actions in allowed.items():
        options.refuse_with(name, (action for action in ACTIONS if action not in actions))
    if options.has("create"):
        options.refuse_with("replica-assignment", ("partitions", "replication-factor"))
    for report in REPORTS:
        options.refuse_with(report, ("topics-with-overrides",))


def _pattern(text: str) -> re.Pattern[str]:
    """A list of topics or regular expressions, separated by commas."""
    try:
        return re.compile(re.sub(r"\s", "", text).replace(",", "|").strip("\"'"))
    except re.error as error:
        raise ValueError(f"{text} is an invalid regex: {error}") from None


def _names(cluster: Cluster, options: Options) -> list[str]:
    """The topics of `--topic`, sorted; all without it."""
    pattern = _pattern(options.get("topic")) if options.has("topic") else None
    names = [topic.name or "" for topic in all_topics(cluster)]
    if options.has("exclude-internal"):
        names = [name for name in names if name not in INTERNAL_TOPICS]
    return names if pattern is None else [name for name in names if pattern.fullmatch(name)]


def _existing(cluster: Cluster, options: Options) -> list[str]:
    """The topics of `--topic`; none is an error without `--if-exists`."""
    names = _names(cluster, options)
    if not names and options.get("topic") and not options.has("if-exists"):
        raise ValueError(f"Topic '{options.get('topic')}' does not exist as expected")
    return names


# --- actions


def _assignment(options: Options) -> list[list[int]]:
    text = options.get("replica-assignment")
    if not text:
        return []
    partitions: list[list[int]] = []
    for index, part in enumerate(text.split(",")):
        brokers = [_number(broker) for broker in part.split(":")]
        twice = sorted({broker for broker in brokers if brokers.count(broker) > 1})
        if twice:
            listed = ",".join(map(str, twice))
            raise ValueError(f"Partition replica lists may not contain duplicate entries: {listed}")
        partitions.append(brokers)
        if len(brokers) != len(partitions[0]):
            raise ValueError(f"Partition {index} has different replication factor: {brokers}")
    return partitions


def _number(text: str) -> int:
    try:
        return int(text)
    except ValueError:
        raise ValueError(f'For input string: "{text.strip()}"') from None


def _configs(options: Options) -> dict[str, str]:
    pairs = [re.split(r"\s*=\s*", text) for text in options.all("config")]
    if any(len(pair) != 2 or not pair[1] for pair in pairs):
        problem = 'Invalid topic config: all configs to be added must be in the format "key=val".'
        raise ValueError(f"requirement failed: {problem}")
    return {key.strip(): value.strip() for key, value in pairs}


def _create(cluster: Cluster, options: Options) -> None:
    name, partitions, factor = (options.get(option) for option in ("topic", "partitions", "replication-factor"))
    assignment, configs = _assignment(options), _configs(options)
    if "." in name or "_" in name:
        print(
            "WARNING: Due to limitations in metric names, topics with a period ('.') or underscore ('_') could "
            "collide. To avoid issues it is best to use either, but not both."
        )
    if factor is not None and not 1 <= factor <= 32767:
        raise ValueError("The replication factor must be between 1 and 32767 inclusive")
    if partitions is not None and partitions < 1:
        raise ValueError("The partitions must be greater than 0")
    if not name:
        raise ValueError("The given topic name '' cannot be represented in a request.")
    try:
        create_topic(
            cluster,
            name,
            partitions=-1 if partitions is None else partitions,
            replication_factor=-1 if factor is None else factor,
            assignment=assignment,
            configs=configs,
        )
    except KafkaError as error:
        if error.code == ErrorCode.TOPIC_ALREADY_EXISTS and options.has("if-not-exists"):
            return
        raise
    print(f"Created topic {name}.")


def _alter(cluster: Cluster, options: Options) -> None:
    names = _existing(cluster, options)
    if not names:
        return
    assignment = _assignment(options)
    new: dict[str, Sequence[Sequence[int]]] = {}
    if assignment:
        counts = partition_counts(cluster, names)
        new = {name: assignment[count:] for name, count in counts.items() if isinstance(count, int)}
    add_partitions(cluster, dict.fromkeys(names, options.get("partitions")), new)


def _describe(cluster: Cluster, options: Options) -> None:
    names = _described(cluster, options)
    if not names:
        return
    limit = options.get("partition-size-limit-per-response") or 2000
    configs = topic_configs(cluster, names)
    reports = [name for name in REPORTS if options.has(name)]
    for topic in describe_topic_partitions(cluster, names, limit):
        config = configs[topic.name or ""]
        own = [f"{entry.name}={entry.value}" for entry in config if entry.config_source != DEFAULT_CONFIG]
        if not reports and (own or not options.has("topics-with-overrides")):
            _print_topic(topic, own)
        if not options.has("topics-with-overrides"):
            for partition in sorted(topic.partitions, key=lambda each: each.partition_index):
                if not reports or any(_is_reported(report, partition, config, cluster) for report in reports):
                    _print_partition(topic.name or "", partition)


def _described(cluster: Cluster, options: Options) -> list[str]:
    text = options.get("topic-id")
    if text is not None:
        topic_id = uuid_from_text(text)
        if topic_id != ZERO_UUID:
            names = [topic.name or "" for topic in all_topics(cluster) if topic.topic_id == topic_id]
            if not names and not options.has("if-exists"):
                raise ValueError(f"TopicId '{text}' does not exist as expected")
            return names
    return _existing(cluster, options)


def _is_reported(
    report: str,
    partition: DescribeTopicPartitionsResponsePartition,
    config: Sequence[DescribeConfigsResourceResult],
    cluster: Cluster,
) -> bool:
    in_sync, has_leader = len(partition.isr_nodes), partition.leader_id >= 0
    least = next(int(entry.value or 1) for entry in config if entry.name == "min.insync.replicas")
    if report == "under-replicated-partitions":
        return in_sync < len(partition.replica_nodes)
    if report == "unavailable-partitions":
        return not has_leader or partition.leader_id not in cluster.nodes
    return in_sync == least if report == "at-min-isr-partitions" else not has_leader or in_sync < least


def _print_topic(topic: DescribeTopicPartitionsResponseTopic, configs: Sequence[str]) -> None:
    factor = len(topic.partitions[0].replica_nodes)
    print(
        f"Topic: {topic.name}",
        f"TopicId: {uuid_to_text(topic.topic_id)}",
        f"PartitionCount: {len(topic.partitions)}",
        f"ReplicationFactor: {factor}",
        f"Configs: {','.join(configs)}",
        sep="\t",
    )


def _print_partition(topic: str, partition: DescribeTopicPartitionsResponsePartition) -> None:
    def listed(nodes: Sequence[int] | None) -> str:
        return "N/A" if nodes is None else ",".join(map(str, nodes))

    print(
        f"\tTopic: {topic}",
        f"Partition: {partition.partition_index}",
        f"Leader: {partition.leader_id if partition.leader_id >= 0 else 'none'}",
        f"Replicas: {listed(partition.replica_nodes)}",
        f"Isr: {listed(partition.isr_nodes)}",
        f"Elr: {listed(partition.eligible_leader_replicas)}",
        f"LastKnownElr: {listed(partition.last_known_elr)}",
        sep="\t",
    )
