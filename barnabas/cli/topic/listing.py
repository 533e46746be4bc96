"""`barnabas topic list|describe`."""

from __future__ import annotations

import click

from barnabas.cli.admin.config import config_rows
from barnabas.cli.options.parameters import listing_options
from barnabas.cli.options.patterns import matching, select
from barnabas.client.admin.configs import describe_config
from barnabas.client.admin.log_dirs import partition_sizes
from barnabas.client.admin.topics import describe_topic_partitions, describe_topics, list_topics
from barnabas.client.cluster import Cluster
from barnabas.client.offsets import TopicPartition, end_offsets, stable_offsets, start_offsets
from barnabas.terminal.tables import is_document, show, show_rows, spaced
from barnabas.wire.errors import ErrorCode, KafkaError
from barnabas.wire.messages.metadata import MetadataResponsePartition, MetadataResponseTopic
from barnabas.wire.types import uuid_to_text

Row = dict[str, object]


@click.command("list")
@click.argument("patterns", nargs=-1, metavar="[PATTERN]...")
@click.option("--internal", is_flag=True, help="Include internal topics, like __consumer_offsets.")
@click.option("-d", "--detailed", is_flag=True, help="A row for each partition: leader, replicas, in-sync replicas.")
@listing_options
def list_(
    patterns: tuple[str, ...], internal: bool, detailed: bool, regex: bool, cluster: Cluster, output: str
) -> None:
    """List topics with their partitions and replicas.

    With -o wide, json or yaml also their records and bytes. Records are the offsets from the first to the end: those of
    markers, and of records that compaction has deleted, count too.

    \b
    barnabas topic list 'ord*'
    barnabas topic list -r 'orders-[0-9]+' -d
    """
    topics = {topic.name or "": topic for topic in list_topics(cluster) if internal or not topic.is_internal}
    selected = [topics[name] for name in matching(patterns, topics, regex=regex)]
    empty = f"no topic matches {' '.join(patterns)}" if patterns else "no topics"
    if detailed:
        rows = [
            {"topic": topic.name} | _partition_row(partition)
            for topic in selected
            for partition in sorted(topic.partitions, key=lambda partition: partition.partition_index)
        ]
        show_rows(rows, output, columns=("topic", "partition", "leader", "replicas", "isr"), empty=empty)
        return
    rows = [_topic_row(topic) for topic in selected]
    if output != "table":
        _add_sizes(cluster, selected, rows)
    show_rows(rows, output, columns=("topic", "partitions", "replicas"), empty=empty)


def _topic_row(topic: MetadataResponseTopic) -> Row:
    return {
        "topic": topic.name,
        "partitions": len(topic.partitions),
        "replicas": max((len(partition.replica_nodes) for partition in topic.partitions), default=0),
        "internal": topic.is_internal,
        "topic_id": uuid_to_text(topic.topic_id),
    }


def _add_sizes(cluster: Cluster, topics: list[MetadataResponseTopic], rows: list[Row]) -> None:
    """Each topic's offsets between start and end, and the bytes of its largest replicas; None if unknown."""
    led = [(t.name or "", p.partition_index) for t in topics for p in t.partitions if p.leader_id >= 0]
    starts, ends = start_offsets(cluster, led), end_offsets(cluster, led)
    try:
        bytes_of = partition_sizes(cluster, [topic.name or "" for topic in topics]) if topics else {}
    except KafkaError as error:
        if error.code is not ErrorCode.CLUSTER_AUTHORIZATION_FAILED:
            raise
        bytes_of = {}  # DescribeLogDirs needs DESCRIBE of the cluster, a list of topics does not
    for topic, row in zip(topics, rows, strict=True):
        partitions = [(topic.name or "", partition.partition_index) for partition in topic.partitions]
        counts = [_between(starts.get(which), ends.get(which)) for which in partitions]
        row["records"] = _sum(counts)
        row["bytes"] = _sum([bytes_of.get(which) for which in partitions])


def _sum(numbers: list[int | None]) -> int | None:
    known = [number for number in numbers if number is not None]
    return sum(known) if len(known) == len(numbers) else None


def _partition_row(partition: MetadataResponsePartition) -> Row:
    return {
        "partition": partition.partition_index,
        "leader": partition.leader_id if partition.leader_id >= 0 else None,
        "leader_epoch": partition.leader_epoch,
        "replicas": list(partition.replica_nodes),
        "isr": list(partition.isr_nodes),
    }


@click.command()
@click.argument("names", nargs=-1, required=True, metavar="TOPIC...")
@click.option("-c", "--configs", is_flag=True, help="Show the configuration that differs from the defaults.")
@click.option("-s", "--sizes", is_flag=True, help="Show the bytes on disk of each partition.")
@click.option("--offsets", is_flag=True, help="Show the last stable offset and the number of offsets too.")
@click.option("-a", "--all", "everything", is_flag=True, help="Show all of these.")
@listing_options
def describe(
    names: tuple[str, ...],
    configs: bool,
    sizes: bool,
    offsets: bool,
    everything: bool,
    regex: bool,
    cluster: Cluster,
    output: str,
) -> None:
    """Show the partitions of topics: leader, replicas, offsets; with several replicas also which are in sync.

    ELR are the eligible leaders that are not in sync (KIP-966).

    \b
    barnabas topic describe orders --configs --sizes
    """
    configs, sizes, offsets = configs or everything, sizes or everything, offsets or everything
    selected = select(
        names,
        lambda: [topic.name or "" for topic in list_topics(cluster) if not topic.is_internal],
        regex=regex,
        kind="topic",
    )
    described = _described(cluster, describe_topics(cluster, selected), sizes=sizes, offsets=offsets)
    if configs:
        for facts in described:
            facts["configs"] = _configs(cluster, str(facts["topic"]))
    if is_document(output):
        show(described, output)
        return
    for facts in spaced(described):
        _show_topic(facts, output, sizes=sizes, offsets=offsets)


def _described(
    cluster: Cluster, topics: list[MetadataResponseTopic], *, sizes: bool, offsets: bool
) -> list[dict[str, object]]:
    led = [(t.name or "", p.partition_index) for t in topics for p in t.partitions if p.leader_id >= 0]
    starts, ends = start_offsets(cluster, led), end_offsets(cluster, led)
    stable = stable_offsets(cluster, led) if offsets else {}
    bytes_of = partition_sizes(cluster, [topic.name or "" for topic in topics]) if sizes else {}
    described: list[dict[str, object]] = []
    eligible = _eligible(cluster, topics)
    for topic in topics:
        rows: list[Row] = []
        for partition in topic.partitions:
            which = (topic.name or "", partition.partition_index)
            row = _partition_row(partition) | eligible.get(which, {})
            row |= {"start_offset": starts.get(which), "end_offset": ends.get(which)}
            if offsets:
                row |= {"stable_offset": stable.get(which), "offsets": _between(starts.get(which), ends.get(which))}
            if sizes:
                row["bytes"] = bytes_of.get(which)
            rows.append(row)
        described.append(
            {
                "topic": topic.name,
                "topic_id": uuid_to_text(topic.topic_id),
                "internal": topic.is_internal,
                "partitions": rows,
            }
        )
    return described


def _eligible(cluster: Cluster, topics: list[MetadataResponseTopic]) -> dict[TopicPartition, Row]:
    """The eligible and last known leaders, and the offline replicas, of partitions with several replicas.

    Nothing from brokers that do not tell (before Kafka 4).
    """
    names = [
        topic.name or "" for topic in topics if any(len(partition.replica_nodes) > 1 for partition in topic.partitions)
    ]
    if not names:
        return {}
    try:
        described = describe_topic_partitions(cluster, names)
    except KafkaError as error:
        if error.code is ErrorCode.UNSUPPORTED_VERSION:
            return {}
        raise
    return {
        (topic.name or "", partition.partition_index): {
            "elr": list(partition.eligible_leader_replicas or ()),
            "last_known_elr": list(partition.last_known_elr or ()),
            "offline": list(partition.offline_replicas),
        }
        for topic in described
        for partition in topic.partitions
    }


def _between(start: int | None, end: int | None) -> int | None:
    return None if start is None or end is None else end - start


def _configs(cluster: Cluster, name: str) -> list[Row]:
    return [row for row in config_rows(describe_config(cluster, "topic", name)) if row["source"] != "default"]


def _show_topic(topic: dict[str, object], output: str, *, sizes: bool, offsets: bool) -> None:
    partitions, configs = topic["partitions"], topic.get("configs")
    assert isinstance(partitions, list)
    columns = ["partition", "leader", "replicas", "start_offset", "end_offset"]
    if any(isinstance(row["replicas"], list) and len(row["replicas"]) > 1 for row in partitions):
        shown = [column for column in ("elr", "offline") if any(row.get(column) for row in partitions)]
        columns[3:3] = ["isr", *shown]
    if offsets:
        columns = ["partition", "leader", "start_offset", "stable_offset", "end_offset", "offsets"]
    if sizes:
        dropped = ("leader", "offsets") if offsets else ("replicas",)  # within 60 columns
        columns = [column for column in columns if column not in dropped] + ["bytes"]
    title = f"{topic['topic']} (id {topic['topic_id']})"
    show_rows(partitions, output, columns=columns, title=title)
    if isinstance(configs, list):
        click.echo()
        show_rows(configs, output, columns=("key", "value", "source"), empty="every key has its default value")
