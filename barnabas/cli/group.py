"""`barnabas group`: list, describe, seek and delete groups of every type, and delete offsets."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from barnabas.cli.parameters import bootstrap_option, connect, delete_each, output_option, timeout_option
from barnabas.terminal.tables import is_document, show, show_rows

if TYPE_CHECKING:
    from barnabas.client.cluster import Cluster
    from barnabas.client.group_views import GroupView, MemberView

TopicPartition = tuple[str, int]
TYPES = ("classic", "consumer", "share", "streams")
SHARE = "share"


@click.group()
def group() -> None:
    """List, describe, seek and delete groups: consumers, share groups, streams."""


@group.command("list")
@click.option("--type", "types", multiple=True, type=click.Choice(TYPES), help="Only groups of this type.")
@click.option(
    "--state", "states", multiple=True, metavar="STATE", help="Only groups in this state (Stable, Empty ...)."
)
@bootstrap_option
@timeout_option
@output_option
def list_(types: tuple[str, ...], states: tuple[str, ...], bootstrap: str, timeout_s: float, output: str) -> None:
    """List groups with their state."""
    from barnabas.client.groups import list_groups

    with connect(bootstrap, timeout_s) as cluster:
        groups = list_groups(cluster, states, types)
    rows = [
        {
            "group": one.group_id,
            "state": one.group_state or None,
            "type": one.group_type or None,
            "protocol": one.protocol_type or None,
        }
        for one in groups
    ]
    show_rows(rows, output, empty="no groups")


@group.command()
@click.argument("names", nargs=-1, required=True, metavar="GROUP...")
@bootstrap_option
@timeout_option
@output_option
def describe(names: tuple[str, ...], bootstrap: str, timeout_s: float, output: str) -> None:
    """Show the lag and the members of each partition."""
    from barnabas.client.group_views import view_group

    with connect(bootstrap, timeout_s) as cluster:
        described = []
        for name in names:
            view = view_group(cluster, name)
            described.append((view, _lags(cluster, view)))
    if is_document(output):
        show([_as_json(view, lags) for view, lags in described], output)
        return
    for number, (view, lags) in enumerate(described):
        if number:
            click.echo()
        click.echo(_headline(view, lags))
        if lags:
            show_rows(lags, output)


def _headline(view: GroupView, lags: list[dict[str, object]]) -> str:
    total = sum(lag for row in lags if isinstance(lag := row["lag"], int))
    members = len(view.members)
    kind = "" if view.group_type == "classic" else f"{view.group_type} "
    return (
        f"{kind}group {view.group_id}: {view.state}, {members} member{'s'[: members != 1]}, "
        f"assignor {view.assignor or '-'}, total lag {total}"
    )


@group.command()
@click.argument("name", metavar="GROUP")
@bootstrap_option
@timeout_option
@output_option
def offsets(name: str, bootstrap: str, timeout_s: float, output: str) -> None:
    """Show a group's committed offset in each partition."""
    from barnabas.client.group_views import view_group

    with connect(bootstrap, timeout_s) as cluster:
        lags = _lags(cluster, view_group(cluster, name))
    show_rows([{key: row[key] for key in ("topic", "partition", "committed", "end", "lag")} for row in lags], output)


def _lags(cluster: Cluster, view: GroupView) -> list[dict[str, object]]:
    """A row for each partition with a committed offset or a member."""
    from barnabas.client.share_groups import share_offsets

    readers: dict[TopicPartition, list[MemberView]] = {}
    for member in view.members:
        for partition in member.partitions:
            readers.setdefault(partition, []).append(member)
    lags: dict[TopicPartition, int | None] = {}
    if view.group_type == SHARE:
        found = share_offsets(cluster, view.group_id)
        committed = {partition: one.start_offset for partition, one in found.items() if one.start_offset >= 0}
        lags = {partition: one.lag for partition, one in found.items() if one.lag >= 0}
        partitions = sorted(found.keys() | readers.keys())
    else:
        committed = _committed(cluster, view.group_id)
        partitions = sorted(committed.keys() | readers.keys())
    ends = _ends(cluster, partitions)
    rows: list[dict[str, object]] = []
    for partition in partitions:
        offset, end, members = committed.get(partition), ends.get(partition), readers.get(partition, [])
        lag = None if end is None or offset is None else max(0, end - offset)
        rows.append(
            {
                "topic": partition[0],
                "partition": partition[1],
                "committed": offset,
                "end": end,
                "lag": lags.get(partition, lag),
                "member": _together([one.member_id for one in members]),
                "client": _together([one.client_id for one in members]),
                "host": _together([one.client_host for one in members]),
            }
        )
    return rows


def _together(texts: list[str]) -> str | None:
    """The distinct texts of a partition's members, joined; share groups have several."""
    return ",".join(dict.fromkeys(texts)) or None


def _committed(cluster: Cluster, name: str) -> dict[TopicPartition, int]:
    from barnabas.client.groups import committed_offsets

    return committed_offsets(cluster, name)


def _ends(cluster: Cluster, partitions: list[TopicPartition]) -> dict[TopicPartition, int]:
    """The end offset of each existing partition."""
    from barnabas.client.errors import NotFound
    from barnabas.client.offsets import end_offsets

    ends: dict[TopicPartition, int] = {}
    for name in sorted({name for name, _ in partitions}):
        try:
            ends |= end_offsets(cluster, [partition for partition in partitions if partition[0] == name])
        except (NotFound, IndexError):
            continue  # the topic was deleted, or created again with fewer partitions
    return ends


def _as_json(view: GroupView, lags: list[dict[str, object]]) -> dict[str, object]:
    return {
        "group": view.group_id,
        "type": view.group_type,
        "state": view.state,
        "protocol_type": view.protocol_type,
        "assignor": view.assignor,
        "members": [
            {
                "member": member.member_id,
                "instance": member.instance_id,
                "client": member.client_id,
                "host": member.client_host,
            }
            for member in view.members
        ],
        "partitions": lags,
    }


@group.command()
@click.argument("name", metavar="GROUP")
@click.option("--to", required=True, metavar="WHERE", help="earliest, latest, @TIME, or an offset.")
@click.option(
    "-t", "--topic", "topics", multiple=True, metavar="TOPIC[:PARTITION]", help="[default: all with a committed offset]"
)
@click.option("--dry-run", is_flag=True, help="Show the result without changing anything.")
@bootstrap_option
@timeout_option
@output_option
def seek(
    name: str, to: str, topics: tuple[str, ...], dry_run: bool, bootstrap: str, timeout_s: float, output: str
) -> None:
    """Set the offsets of a group without members; of a share group, its start offsets.

    WHERE is earliest, latest, an offset, or a time: @2026-11-21T09:00, @1763715600000 (ms), @-1h. An offset
    outside a partition is moved to its nearest end.
    """
    from barnabas.cli.offset_spec import parse_offset_spec, resolve_offset_specs

    spec = parse_offset_spec(to, "--to")
    with connect(bootstrap, timeout_s) as cluster:
        is_share = _is_share_group(cluster, name)
        committed = _share_starts(cluster, name) if is_share else _committed(cluster, name)
        partitions = _named_partitions(cluster, topics) if topics else sorted(committed)
        if not partitions:
            raise click.UsageError(f"group {name!r} has no committed offsets; name topics with -t")
        offsets = resolve_offset_specs(cluster, dict.fromkeys(partitions, spec))
        if not dry_run:
            _move(cluster, name, offsets, is_share=is_share)
    rows = [
        {"topic": topic, "partition": index, "before": committed.get((topic, index)), "after": offset}
        for (topic, index), offset in sorted(offsets.items())
    ]
    show_rows(rows, output)


def _is_share_group(cluster: Cluster, name: str) -> bool:
    from barnabas.client.errors import NotFound
    from barnabas.client.group_views import group_type

    try:
        return group_type(cluster, name) == SHARE
    except NotFound:
        return False  # seek creates a consumer group


def _share_starts(cluster: Cluster, name: str) -> dict[TopicPartition, int]:
    from barnabas.client.share_groups import share_offsets

    return {partition: one.start_offset for partition, one in share_offsets(cluster, name).items()}


def _move(cluster: Cluster, name: str, offsets: dict[TopicPartition, int], *, is_share: bool) -> None:
    from barnabas.client.errors import ClientError
    from barnabas.client.groups import commit_offsets
    from barnabas.client.share_groups import move_share_group
    from barnabas.wire.errors import ErrorCode, KafkaError

    try:
        (move_share_group if is_share else commit_offsets)(cluster, name, offsets)
    except KafkaError as error:
        if error.code in (
            ErrorCode.UNKNOWN_MEMBER_ID,
            ErrorCode.ILLEGAL_GENERATION,
            ErrorCode.REBALANCE_IN_PROGRESS,
            ErrorCode.NON_EMPTY_GROUP,
        ):
            raise ClientError(f"group {name!r} has members; stop them before changing its offsets") from None
        raise


def _named_partitions(cluster: Cluster, topics: tuple[str, ...]) -> list[TopicPartition]:
    """The partitions of `topic` (all) and `topic:2` (one)."""
    from barnabas.client.errors import NotFound

    found: list[TopicPartition] = []
    for text in topics:
        name, colon, number = text.partition(":")
        if colon and not number.isdigit():
            raise click.BadParameter(f"must be TOPIC or TOPIC:PARTITION, not {text!r}", param_hint="-t")
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
    """Delete groups without members, with their offsets."""
    from barnabas.client.groups import delete_group

    delete_each(bootstrap, timeout_s, "group", names, delete_group)


@group.command()
@click.argument("name", metavar="GROUP")
@click.option("-t", "--topic", "topics", multiple=True, required=True, metavar="TOPIC[:PARTITION]")
@bootstrap_option
@timeout_option
def forget(name: str, topics: tuple[str, ...], bootstrap: str, timeout_s: float) -> None:
    """Delete a group's offsets of topics that no member reads; a share group must have no members."""
    from barnabas.client.groups import delete_offsets
    from barnabas.client.share_groups import forget_share_topics

    with connect(bootstrap, timeout_s) as cluster:
        if _is_share_group(cluster, name):
            if any(":" in text for text in topics):
                raise click.UsageError("offsets of a share group are deleted by topic, not by partition")
            forget_share_topics(cluster, name, topics)
        else:
            delete_offsets(cluster, name, _named_partitions(cluster, topics))
        click.echo(f"group {name} has no offsets of {', '.join(topics)} any more")
