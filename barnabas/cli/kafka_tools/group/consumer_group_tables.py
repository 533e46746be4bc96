"""The tables of `kafka-consumer-groups --describe`: offsets, members, state."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping, Sequence

from barnabas.cli.kafka_tools.arguments import Options
from barnabas.cli.kafka_tools.common import Failed, padded
from barnabas.cli.kafka_tools.errors import exception_of
from barnabas.client.cluster import Cluster
from barnabas.client.groups import consumer_groups as groups
from barnabas.client.groups.consumer_groups import Committed
from barnabas.client.groups.views import GroupView, MemberView, consumer_group_for_tools
from barnabas.client.offsets import TopicPartition, end_offsets
from barnabas.wire.errors import KafkaError

REBALANCING = {"PreparingRebalance", "CompletingRebalance", "Assigning", "Reconciling"}
Row = tuple[str, ...]


def describe(cluster: Cluster, options: Options, groups: Sequence[str]) -> None:
    """Print one table per group, in the order of their names."""
    try:
        descriptions = {group: consumer_group_for_tools(cluster, group) for group in sorted(groups)}
    except KafkaError as error:
        raise Failed(exception_of(error)) from None
    is_verbose = options.has("verbose")
    for group, (description, coordinator) in descriptions.items():
        if options.has("members"):
            _members(group, description, is_verbose)
        elif options.has("state"):
            _state(group, description, coordinator, is_verbose)
        else:
            _offsets(group, description, _offset_rows(cluster, group, description), is_verbose)


def _text(value: object) -> str:
    return "-" if value is None or value == "" else str(value)


def _print_note(group: str, state: str) -> None:
    """Say on stderr that a group has no members, or has no assignment yet."""
    if state == "Empty":
        print(f"\nConsumer group '{group}' has no active members.", file=sys.stderr)
    elif state in REBALANCING:
        print(f"\nWarning: Consumer group '{group}' is rebalancing.", file=sys.stderr)
    elif state == "Dead":
        print(f"\nError: Consumer group '{group}' does not exist.")


# --- offsets


def _offset_rows(cluster: Cluster, group: str, description: GroupView) -> list[Row]:
    """Rows of group, topic, partition, leader epoch, offset, end, lag, member, host, client."""
    committed = groups.committed(cluster, group)
    owned = {partition for member in description.members for partition in member.partitions}
    ends = end_offsets(cluster, sorted({*owned, *committed}))
    rows: list[Row] = []
    for member in sorted(description.members, key=lambda each: -len(each.partitions)):
        whose = (member.member_id, member.client_host, member.client_id)
        rows += _rows(group, sorted(member.partitions), committed, ends, whose)
    rows += _rows(group, sorted(set(committed) - owned), committed, ends, ("-", "-", "-"))
    return rows


def _rows(
    group: str,
    partitions: Iterable[TopicPartition],
    committed: Mapping[TopicPartition, Committed],
    ends: Mapping[TopicPartition, int],
    whose: tuple[str, str, str],
) -> list[Row]:
    rows: list[Row] = []
    for topic, index in partitions:
        place = committed.get((topic, index))
        end = ends[topic, index]
        epoch = None if place is None or place.leader_epoch < 0 else place.leader_epoch
        offset = None if place is None else place.offset
        lag = None if offset is None else end - offset
        rows.append((group, topic, str(index), _text(epoch), _text(offset), str(end), _text(lag), *whose))
    return rows


def _offsets(group: str, description: GroupView, rows: Sequence[Row], is_verbose: bool) -> None:
    _print_note(group, description.state)
    if not rows or description.state == "Dead":
        return
    head = ("GROUP", "TOPIC", "PARTITION", "LEADER-EPOCH", "CURRENT-OFFSET", "LOG-END-OFFSET", "LAG", "CONSUMER-ID")
    table = [(*head, "HOST", "CLIENT-ID"), *rows]
    longest = [max(15, *(len(row[column]) for row in rows)) for column in (0, 1, 7, 8)]
    widths = [longest[0], longest[1], 10, 15, 15, 15, 15, longest[2], longest[3]]
    columns = [column for column in range(10) if is_verbose or column != 3]
    widths = [width for column, width in enumerate(widths) if is_verbose or column != 3]
    print("".join(f"\n{padded([row[column] for column in columns], widths)}" for row in table))


# --- members


def _assignment(partitions: Iterable[TopicPartition]) -> str:
    """`topic:0,1;other:0`."""
    by_topic: dict[str, list[int]] = {}
    for topic, index in partitions:
        by_topic.setdefault(topic, []).append(index)
    texts = [f"{topic}:{','.join(map(str, sorted(indexes)))}" for topic, indexes in by_topic.items()]
    return ";".join(sorted(texts))


def _members(group: str, description: GroupView, is_verbose: bool) -> None:
    _print_note(group, description.state)
    members = description.members
    has_instances = any(member.instance_id for member in members)
    is_mixed = len({member.is_upgraded for member in members}) == 2
    head = ["GROUP", "CONSUMER-ID", "GROUP-INSTANCE-ID", "HOST", "CLIENT-ID", "#PARTITIONS"]
    least = [15, 15, 17, 15, 15, 15]
    if is_verbose:
        head += ["CURRENT-EPOCH", "CURRENT-ASSIGNMENT", "TARGET-EPOCH", "TARGET-ASSIGNMENT"]
        least += [15, 20, 15, 20]
    rows = [_member_row(group, member, description, is_verbose) for member in members]
    widths = [max(width, *(len(row[column]) for row in rows), 0) for column, width in enumerate(least)]
    columns = [column for column in range(len(head)) if has_instances or column != 2]
    print()
    for member, row in [(None, head), *zip(members, rows, strict=True)]:
        text = padded([row[column] for column in columns], [widths[column] for column in columns])
        if is_verbose and is_mixed:
            text += " UPGRADED" if member is None else f" {_text(member.is_upgraded).lower()}"
        print(text if is_verbose else f"{text} ")


def _member_row(group: str, member: MemberView, description: GroupView, is_verbose: bool) -> list[str]:
    row = [
        group,
        member.member_id,
        member.instance_id or "",
        member.client_host,
        member.client_id,
        str(len(member.partitions)),
    ]
    if is_verbose:
        row += [_text(member.epoch), _text(_assignment(member.partitions))]
        row += [_text(description.assignment_epoch), _text(_assignment(member.target))]
    return row


# --- state


def _state(group: str, description: GroupView, coordinator: str, is_verbose: bool) -> None:
    _print_note(group, description.state)
    if description.state == "Dead":
        return
    head = ["GROUP", "COORDINATOR (ID)", "ASSIGNMENT-STRATEGY", "STATE", "#MEMBERS"]
    row = [group, coordinator, _text(description.assignor), description.state]
    row.append(str(len(description.members)))
    widths = [max(15, len(group)), max(25, len(coordinator)), 20, 20]
    if is_verbose:
        head[4:4] = ["GROUP-EPOCH", "TARGET-ASSIGNMENT-EPOCH"]
        row[4:4] = [_text(description.epoch), _text(description.assignment_epoch)]
        widths += [15, 25]
    print(f"\n{padded(head, widths)}\n{padded(row, widths)}")
