"""`barnabas topic`: list, create, describe and delete topics."""

from __future__ import annotations

import click

from barnabas.cli.parameters import bootstrap_option, connect, delete_each, key_values, output_option, timeout_option
from barnabas.terminal.tables import is_document, show, show_rows


@click.group()
def topic() -> None:
    """List, create, describe and delete topics."""


@topic.command("list")
@bootstrap_option
@timeout_option
@output_option
@click.option("--internal", is_flag=True, help="Include internal topics, like __consumer_offsets.")
def list_(bootstrap: str, timeout_s: float, output: str, internal: bool) -> None:
    """List topics with their partitions and replicas."""
    from barnabas.client.admin import list_topics
    from barnabas.wire.types import uuid_to_text

    with connect(bootstrap, timeout_s) as cluster:
        topics = [topic for topic in list_topics(cluster) if internal or not topic.is_internal]
    rows = [
        {
            "topic": topic.name,
            "partitions": len(topic.partitions),
            "replicas": max((len(partition.replica_nodes) for partition in topic.partitions), default=0),
            "topic_id": uuid_to_text(topic.topic_id),
        }
        for topic in topics
    ]
    show_rows(rows, output, columns=("topic", "partitions", "replicas"), empty="no topics")


@topic.command()
@click.argument("names", nargs=-1, required=True, metavar="TOPIC...")
@click.option("-p", "--partitions", type=click.IntRange(min=1), help="[default: the broker's num.partitions]")
@click.option("-r", "--replicas", type=click.IntRange(min=1), help="[default: the broker's default.replication.factor]")
@click.option("-c", "--config", "configs", multiple=True, metavar="KEY=VALUE", help="A topic key; may be repeated.")
@click.option("--if-not-exists", is_flag=True, help="Do not fail if the topic exists.")
@bootstrap_option
@timeout_option
def create(
    names: tuple[str, ...],
    partitions: int | None,
    replicas: int | None,
    configs: tuple[str, ...],
    if_not_exists: bool,
    bootstrap: str,
    timeout_s: float,
) -> None:
    """Create topics."""
    from barnabas.client.admin import create_topic
    from barnabas.wire.errors import ErrorCode, KafkaError

    settings = key_values(configs, "-c")
    with connect(bootstrap, timeout_s) as cluster:
        for name in names:
            try:
                made = create_topic(
                    cluster, name, partitions=partitions or -1, replication_factor=replicas or -1, configs=settings
                )
            except KafkaError as error:
                if error.code == ErrorCode.TOPIC_ALREADY_EXISTS and if_not_exists:
                    click.echo(f"topic {name} exists", err=True)
                    continue
                raise
            count = made.num_partitions
            click.echo(f"created topic {name}" + (f" with {count} partition{'s'[: count != 1]}" if count > 0 else ""))


@topic.command()
@click.argument("names", nargs=-1, required=True, metavar="TOPIC...")
@bootstrap_option
@timeout_option
@output_option
def describe(names: tuple[str, ...], bootstrap: str, timeout_s: float, output: str) -> None:
    """Show the partitions of topics: leader, replicas, offsets."""
    from barnabas.client.admin import describe_topics
    from barnabas.client.offsets import end_offsets, start_offsets
    from barnabas.wire.types import uuid_to_text

    with connect(bootstrap, timeout_s) as cluster:
        topics = describe_topics(cluster, names)
        led = [(t.name or "", p.partition_index) for t in topics for p in t.partitions if p.leader_id >= 0]
        starts, ends = start_offsets(cluster, led), end_offsets(cluster, led)
    described = [
        {
            "topic": topic.name,
            "topic_id": uuid_to_text(topic.topic_id),
            "internal": topic.is_internal,
            "partitions": [
                {
                    "partition": partition.partition_index,
                    "leader": partition.leader_id,
                    "leader_epoch": partition.leader_epoch,
                    "replicas": list(partition.replica_nodes),
                    "isr": list(partition.isr_nodes),
                    "start_offset": starts.get((topic.name or "", partition.partition_index)),
                    "end_offset": ends.get((topic.name or "", partition.partition_index)),
                }
                for partition in topic.partitions
            ],
        }
        for topic in topics
    ]
    if is_document(output):
        show(described, output)
        return
    for number, one in enumerate(described):
        if number:
            click.echo()
        partitions = one["partitions"]
        assert isinstance(partitions, list)
        show_rows(partitions, output, title=f"{one['topic']} (id {one['topic_id']})")


@topic.command()
@click.argument("names", nargs=-1, required=True, metavar="TOPIC...")
@bootstrap_option
@timeout_option
def delete(names: tuple[str, ...], bootstrap: str, timeout_s: float) -> None:
    """Delete topics with all their records."""
    from barnabas.client.admin import delete_topic

    delete_each(bootstrap, timeout_s, "topic", names, delete_topic)
