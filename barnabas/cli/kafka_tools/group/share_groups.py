"""kafka-share-groups: list, describe and delete share groups, reset and delete their offsets (KIP-932)."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from barnabas.cli.kafka_tools.arguments import Option, Options, Parser, Usage
from barnabas.cli.kafka_tools.common import Failed, chosen, connect, padded
from barnabas.cli.kafka_tools.errors import exception_of, text_of
from barnabas.cli.kafka_tools.group import offset_resets
from barnabas.client.cluster import Cluster
from barnabas.client.errors import refusal
from barnabas.client.groups.consumer_groups import delete_group, list_groups
from barnabas.client.groups.share_groups import forget_share_topics, move_share_group, share_offsets
from barnabas.client.groups.views import GroupView, share_group_for_tools
from barnabas.wire.errors import ErrorCode, KafkaError

PURPOSE = "This tool helps to list, describe, reset and delete share groups."
ACTIONS = ("list", "describe", "delete", "reset-offsets", "delete-offsets")
STATES = ("Dead", "Empty", "Stable")
SCENARIOS = ("to-datetime", "to-earliest", "to-latest")

PARSER = Parser(
    "kafka-share-groups",
    PURPOSE,
    [
        Option("list", "List the share groups."),
        Option("describe", "Show groups with their offsets, members or state."),
        Option("delete", "Delete groups."),
        Option("all-groups", "All share groups."),
        Option("topic", "The topic; may be repeated. With --reset-offsets also topic:0,1.", "TOPIC"),
        Option("all-topics", "All topics of which the group has offsets."),
        Option("offsets", "With --describe: the offsets, which is the default.", needs=("describe",)),
        *offset_resets.OPTIONS,
    ],
)


def main(arguments: Sequence[str]) -> int:
    """Run the tool."""
    if not arguments:
        raise Usage(PURPOSE)
    options = PARSER.parse(arguments)
    if sum(options.has(action) for action in ACTIONS) != 1:
        raise Usage(f"Command must include exactly one action: {', '.join(f'--{action}' for action in ACTIONS)}.")
    _check(options)
    with connect(options, timeout_s=options.get("timeout") / 1000) as cluster:
        try:
            _run(cluster, options)
        except ValueError as error:
            raise Usage(str(error)) from None
        except (Failed, KafkaError) as error:
            text = text_of(error) if isinstance(error, KafkaError) else str(error)
            print(f"\nError: Executing share group command failed due to {text}")
    return 0


def _run(cluster: Cluster, options: Options) -> None:
    if options.has("list"):
        _list(cluster, options)
    elif options.has("describe"):
        _describe(cluster, options)
    elif options.has("delete"):
        _delete(cluster, _groups(cluster, options))
    elif options.has("reset-offsets"):
        _reset(cluster, options)
    else:
        _delete_offsets(cluster, options)


def _check(options: Options) -> None:
    options.require("bootstrap-server")
    if options.has("describe"):
        if not options.has("group", "all-groups"):
            raise Usage("Option [describe] takes one of these options: [all-groups], [group]")
        offset_resets.check_describe(options)
    if options.has("delete") and options.has("group") == options.has("all-groups"):
        raise Usage("Option [delete] takes the options [group] or [all-groups]")
    offset_resets.check_delete_offsets(options)
    if options.has("reset-offsets"):
        _check_reset(options)


def _check_reset(options: Options) -> None:
    offset_resets.only_one_way(options)
    offset_resets.missing_execute_warning(options)
    if not options.has("group"):
        raise Usage("Option [reset-offsets] takes the following options: [group]")
    for names in (SCENARIOS, ("all-topics", "topic")):
        if sum(options.has(name) for name in names) != 1:
            listed = ", ".join(f"[{name}]" for name in names)
            raise Usage(f"Option [reset-offsets] takes one of these options: {listed}")


def _share_groups(cluster: Cluster, states: Sequence[str] = ()) -> list[tuple[str, str]]:
    """Names and states of the share groups."""
    return [(group.group_id, group.group_state) for group in list_groups(cluster, states, ["Share"])]


def _groups(cluster: Cluster, options: Options) -> list[str]:
    if options.has("all-groups"):
        return [name for name, _ in _share_groups(cluster)]
    return list(dict.fromkeys(options.all("group")))


# --- list and describe


def _list(cluster: Cluster, options: Options) -> None:
    states = chosen(options.get("state"), STATES, "state", "states") if options.has("state") else []
    groups = _share_groups(cluster, states)
    if not options.has("state"):
        for name, _ in groups:
            print(name)
        return
    width = max(15, *(len(name) for name, _ in groups), 0)
    for row in (("GROUP", "STATE"), *groups):
        print(padded(row, (width,)))


def _describe(cluster: Cluster, options: Options) -> None:
    try:
        groups = {name: share_group_for_tools(cluster, name) for name in sorted(_groups(cluster, options))}
    except KafkaError as error:
        raise Failed(exception_of(error)) from None
    is_verbose = options.has("verbose")
    for name, (group, coordinator) in groups.items():
        if options.has("members"):
            _print_members(name, group, is_verbose)
        elif options.has("state"):
            _print_state(name, group, coordinator, is_verbose)
        else:
            _print_offsets(cluster, name, is_verbose)


def _note_empty(name: str, group: GroupView) -> None:
    if group.state == "Empty":
        print(f"\nShare group '{name}' has no active members.", file=sys.stderr)


def _print_offsets(cluster: Cluster, name: str, is_verbose: bool) -> None:
    offsets = share_offsets(cluster, name)
    if not offsets:
        print(f"\nShare group '{name}' has no offset information.")
        return
    head = ["GROUP", "TOPIC", "PARTITION", "LEADER-EPOCH", "START-OFFSET", "LAG"]
    rows = [
        [
            name,
            topic,
            str(index),
            *("-" if number < 0 else str(number) for number in (state.leader_epoch, state.start_offset, state.lag)),
        ]
        for (topic, index), state in offsets.items()
    ]
    widths = [max(15, len(name)), max(15, *(len(topic) for topic, _ in offsets)), 10, 13, 13]
    columns = [column for column in range(6) if is_verbose or column != 3]
    widths = [width for column, width in enumerate(widths) if is_verbose or column != 3]
    print("".join(f"\n{padded([row[column] for column in columns], widths)}" for row in (head, *rows)))


def _print_members(name: str, group: GroupView, is_verbose: bool) -> None:
    _note_empty(name, group)
    if not group.members:
        return
    rows = [["GROUP", "CONSUMER-ID", "HOST", "CLIENT-ID", "#PARTITIONS", "MEMBER-EPOCH", "ASSIGNMENT"]]
    for member in group.members:
        row = [
            name,
            member.member_id,
            member.client_host,
            member.client_id,
            str(len(member.partitions)),
            str(member.epoch),
        ]
        rows.append([*row, _assignment(member.partitions)])
    widths = [max(15, *(len(row[column]) for row in rows)) for column in range(4)] + [12, 13]
    columns = [column for column in range(7) if is_verbose or column != 5]
    widths = widths if is_verbose else widths[:5]
    print("".join(f"\n{padded([row[column] for column in columns], widths)}" for row in rows))


def _assignment(partitions: Sequence[tuple[str, int]]) -> str:
    by_topic: dict[str, list[int]] = {}
    for topic, index in sorted(partitions):
        by_topic.setdefault(topic, []).append(index)
    return ";".join(f"{topic}:{','.join(map(str, indexes))}" for topic, indexes in by_topic.items()) or "-"


def _print_state(name: str, group: GroupView, coordinator: str, is_verbose: bool) -> None:
    _note_empty(name, group)
    head = ["GROUP", "COORDINATOR (ID)", "STATE", "#MEMBERS"]
    row = [name, coordinator, group.state, str(len(group.members))]
    widths = [max(15, len(name)), max(25, len(coordinator)), 15]
    if is_verbose:
        head[3:3] = ["GROUP-EPOCH", "ASSIGNMENT-EPOCH"]
        row[3:3] = [str(group.epoch), str(group.assignment_epoch)]
        widths += [12, 17]
    print(f"\n{padded(head, widths)}\n{padded(row, widths)}")


# --- delete


def _delete(cluster: Cluster, groups: Sequence[str]) -> None:
    known = dict(_share_groups(cluster))
    problems: dict[str, str | None] = {}
    for name in groups:
        if name not in known:
            problems[name] = f"java.lang.IllegalArgumentException: Group '{name}' is not a share group."
        elif known[name] != "Empty":
            problem = f"Share group '{name}' is not EMPTY."
            problems[name] = f"org.apache.kafka.common.errors.GroupNotEmptyException: {problem}"
    for name in [name for name in groups if name not in problems]:
        error = refusal(delete_group, cluster, name)
        problems[name] = None if error is None else exception_of(error)
    offset_resets.print_deletions("share groups", problems)


def _delete_offsets(cluster: Cluster, options: Options) -> None:
    topics = options.all("topic")
    outcome: dict[str, KafkaError | None]
    try:
        outcome = forget_share_topics(cluster, options.only("group"), topics)
    except KafkaError as error:
        print(f"\nError: {text_of(error)}")
        outcome = dict.fromkeys(topics, error)
    width = max(15, *map(len, outcome))
    rows = [("TOPIC", "STATUS")]
    rows += [
        (name, "Successful" if error is None else f"Error: {text_of(error)}") for name, error in sorted(outcome.items())
    ]
    print("".join(f"\n{padded(row, (width,))}" for row in rows))


# --- offsets


def _reset(cluster: Cluster, options: Options) -> None:
    name = options.only("group")
    try:
        state = share_group_for_tools(cluster, name)[0].state
    except KafkaError as error:
        if error.code != ErrorCode.GROUP_ID_NOT_FOUND:
            raise
        state = "Dead"
    if state not in {"Empty", "Dead"}:
        raise Usage(f"Share group '{name}' is not empty.")
    if options.has("all-topics"):
        partitions = list(share_offsets(cluster, name))
    else:
        partitions = offset_resets.partitions_of(cluster, options.all("topic"))
    offset_resets.check_existing(cluster, partitions)
    if options.has("to-datetime"):
        timestamp = offset_resets.parse_datetime(options.only("to-datetime"))
        new = offset_resets.at_time(cluster, partitions, timestamp)
    else:
        new = offset_resets.at_ends(cluster, options, partitions)
    if options.has("execute"):
        move_share_group(cluster, name, new)
    offset_resets.print_plan({name: new})
