"""`barnabas group`: list, describe, seek and delete consumer groups."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from barnabas.cli.output import show_json, show_rows
from barnabas.cli.parameters import bootstrap_option, connect, output_option, timeout_option

if TYPE_CHECKING:
    from broker.client.cluster import Cluster
    from wire.messages.groups import DescribeGroupsResponseDescribedGroup

TopicPartition = tuple[str, int]


@click.group()
def group() -> None:
    """List, describe, seek and delete consumer groups."""


@group.command("list")
@bootstrap_option
@timeout_option
@output_option
def list_(bootstrap: str, timeout_s: float, output: str) -> None:
    """List groups with their state."""
    from broker.client.groups import list_groups

    with connect(bootstrap, timeout_s) as cluster:
        groups = list_groups(cluster)
    rows = [
        {
            "group": one.group_id,
            "state": one.group_state or None,
            "type": one.group_type or None,
            "protocol": one.protocol_type or None,
        }
        for one in groups
    ]
    if rows or output == "json":
        show_rows(rows, output)
    else:
        click.echo("no groups", err=True)


@group.command()
@click.argument("names", nargs=-1, required=True, metavar="GROUP...")
@bootstrap_option
@timeout_option
@output_option
def describe(names: tuple[str, ...], bootstrap: str, timeout_s: float, output: str) -> None:
    """Show the lag of each partition and who reads it."""
    from broker.client.groups import describe_group

    with connect(bootstrap, timeout_s) as cluster:
        described = []
        for name in names:
            answer = describe_group(cluster, name)
            described.append((answer, _lags(cluster, answer)))
    if output == "json":
        show_json([_as_json(answer, lags) for answer, lags in described])
        return
    for number, (answer, lags) in enumerate(described):
        if number:
            click.echo()
        total = sum(lag for row in lags if isinstance(lag := row["lag"], int))
        members = len(answer.members)
        click.echo(
            f"group {answer.group_id}: {answer.group_state}, {members} member{'s'[: members != 1]}, "
            f"assignor {answer.protocol_data or '-'}, total lag {total}"
        )
        if lags:
            show_rows(lags, output)


def _lags(cluster: Cluster, answer: DescribeGroupsResponseDescribedGroup) -> list[dict[str, object]]:
    """A row a partition that the group has committed or that a member reads."""
    from broker.client.errors import NotFound
    from broker.client.groups import assigned_partitions, committed_offsets
    from broker.client.offsets import end_offsets

    committed = committed_offsets(cluster, answer.group_id)
    readers = {partition: member for member in answer.members for partition in assigned_partitions(member)}
    partitions = sorted(committed.keys() | readers.keys())
    ends: dict[TopicPartition, int] = {}
    for name in sorted({name for name, _ in partitions}):
        try:
            ends |= end_offsets(cluster, [partition for partition in partitions if partition[0] == name])
        except (NotFound, IndexError):
            continue  # the topic was deleted, or made again with fewer partitions: its offsets have outlived it
    rows: list[dict[str, object]] = []
    for partition in partitions:
        offset, end, member = committed.get(partition), ends.get(partition), readers.get(partition)
        rows.append(
            {
                "topic": partition[0],
                "partition": partition[1],
                "committed": offset,
                "end": end,
                "lag": None if end is None or offset is None else max(0, end - offset),
                "member": None if member is None else member.member_id,
                "client": None if member is None else member.client_id,
                "host": None if member is None else member.client_host,
            }
        )
    return rows


def _as_json(answer: DescribeGroupsResponseDescribedGroup, lags: list[dict[str, object]]) -> dict[str, object]:
    return {
        "group": answer.group_id,
        "state": answer.group_state,
        "protocol_type": answer.protocol_type,
        "assignor": answer.protocol_data,
        "members": [
            {
                "member": member.member_id,
                "instance": member.group_instance_id,
                "client": member.client_id,
                "host": member.client_host,
            }
            for member in answer.members
        ],
        "partitions": lags,
    }


@group.command()
@click.argument("name", metavar="GROUP")
@click.option("--to", required=True, metavar="WHERE", help="earliest, latest, @TIME, or an offset.")
@click.option("-t", "--topic", "topics", multiple=True, metavar="TOPIC[:PARTITION]", help="[default: what it has read]")
@click.option("--dry-run", is_flag=True, help="Show, change nothing.")
@bootstrap_option
@timeout_option
@output_option
def seek(
    name: str, to: str, topics: tuple[str, ...], dry_run: bool, bootstrap: str, timeout_s: float, output: str
) -> None:
    """Set the offsets of a group that has no members.

    WHERE is earliest, latest, an offset, or a time: @2026-11-21T09:00, @1763715600000 (ms), @-1h. An offset
    outside of a partition becomes its nearest end.
    """
    from barnabas.cli.places import parse_place, resolve_places
    from broker.client.groups import committed_offsets

    place = parse_place(to, "--to")
    with connect(bootstrap, timeout_s) as cluster:
        committed = committed_offsets(cluster, name)
        partitions = _named_partitions(cluster, topics) if topics else sorted(committed)
        if not partitions:
            raise click.UsageError(f"group {name!r} has committed nothing; say which topic with -t")
        offsets = resolve_places(cluster, dict.fromkeys(partitions, place))
        if not dry_run:
            _commit(cluster, name, offsets)
    rows = [
        {"topic": topic, "partition": index, "before": committed.get((topic, index)), "after": offset}
        for (topic, index), offset in sorted(offsets.items())
    ]
    show_rows(rows, output)


def _commit(cluster: Cluster, name: str, offsets: dict[TopicPartition, int]) -> None:
    from broker.client.errors import ClientError
    from broker.client.groups import commit_offsets
    from wire.errors import ErrorCode, KafkaError

    try:
        commit_offsets(cluster, name, offsets)
    except KafkaError as error:
        if error.code in (ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.ILLEGAL_GENERATION, ErrorCode.REBALANCE_IN_PROGRESS):
            raise ClientError(f"group {name!r} has members; stop them before moving its offsets") from None
        raise


def _named_partitions(cluster: Cluster, topics: tuple[str, ...]) -> list[TopicPartition]:
    """`topic` means all of its partitions, `topic:2` one of them."""
    from broker.client.errors import NotFound

    found: list[TopicPartition] = []
    for text in topics:
        name, colon, number = text.partition(":")
        if colon and not number.isdigit():
            raise click.BadParameter(f"wants TOPIC or TOPIC:PARTITION, not {text!r}", param_hint="-t")
        count = len(cluster.find_topic(name).leaders)
        if colon and int(number) >= count:
            raise NotFound(f"topic {name!r} has no partition {number}")
        found += [(name, int(number))] if colon else [(name, index) for index in range(count)]
    return found


@group.command()
@click.argument("names", nargs=-1, required=True, metavar="GROUP...")
@bootstrap_option
@timeout_option
def delete(names: tuple[str, ...], bootstrap: str, timeout_s: float) -> None:
    """Delete groups that have no members, with their offsets."""
    from broker.client.groups import delete_group

    with connect(bootstrap, timeout_s) as cluster:
        for name in names:
            delete_group(cluster, name)
            click.echo(f"deleted group {name}")
