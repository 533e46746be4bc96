"""Where `group seek` moves each partition: options, `-t TOPIC:0=WHERE`, files, other groups."""

from __future__ import annotations

from collections.abc import Mapping
from time import time_ns

import click

from barnabas.cli.options.offset_spec import parse_offset_spec
from barnabas.cli.options.partitions import named_partitions, partition_count, read_offsets
from barnabas.client.cluster import Cluster
from barnabas.client.errors import NotFound
from barnabas.client.groups.consumer_groups import committed_offsets, list_groups
from barnabas.client.groups.seek import Goal
from barnabas.client.offsets import TopicPartition
from barnabas.client.positions import OffsetSpec
from barnabas.terminal.suggestion import suggestion


def goal_from_text(text: str, option: str) -> Goal:
    """`current`, or any position of `offset_spec`."""
    return Goal(None) if text == "current" else Goal(parse_offset_spec(text, option))


def goal_from_options(
    to: str | None, shift_by: int | None, to_datetime: str | None, duration_s: float | None, *, to_current: bool
) -> Goal | None:
    """The goal that one of these options names; None if none does, a usage error if several do."""
    goals = []
    if to is not None:
        goals.append(goal_from_text(to, "--to"))
    if shift_by is not None:
        goals.append(Goal(None, shift_by))
    if to_datetime is not None:
        goals.append(Goal(parse_offset_spec(f"@{to_datetime.removeprefix('@')}", "--to-datetime")))
    if duration_s is not None:
        goals.append(Goal(OffsetSpec("time", time_ns() // 1_000_000 - round(duration_s * 1000))))
    if to_current:
        goals.append(Goal(None))
    if len(goals) > 1:
        raise click.UsageError("say where to in one way: --to, --shift-by, --to-datetime, --by-duration, --to-current")
    return goals[0] if goals else None


def goals_from(
    cluster: Cluster,
    group: str,
    committed: Mapping[TopicPartition, int],
    goal: Goal | None,
    topics: tuple[str, ...],
    path: str | None,
    to_group: str | None,
) -> dict[TopicPartition, Goal]:
    """The goal of each partition. `NotFound` for topics and partitions that do not exist."""
    if path is not None:
        return _from_file(cluster, group, path)
    others = None if to_group is None else _of_group(cluster, to_group)
    if not topics:
        if others is not None:
            return others
        if not committed:
            raise click.UsageError(
                f"group {group!r} has no committed offsets{_similar(cluster, group)}; name topics with -t"
            )
        assert goal is not None
        return dict.fromkeys(sorted(committed), goal)
    goals: dict[TopicPartition, Goal] = {}
    for text in topics:
        name, equals, where = text.partition("=")
        own = goal_from_text(where, "-t") if equals else goal
        for partition in named_partitions(cluster, (name,), "-t"):
            if others is not None and not equals:
                if partition in others:
                    goals[partition] = others[partition]
            elif own is None:
                raise click.UsageError(f"say where to for {name}: -t {name}=WHERE, or --to WHERE for all")
            else:
                goals[partition] = own
    return goals


def _from_file(cluster: Cluster, group: str, path: str) -> dict[TopicPartition, Goal]:
    lines = read_offsets(path, "--from-file")
    own = [line for line in lines if line.group in (None, group)]
    if not own:
        raise click.BadParameter(f"{path} has no offsets of group {group!r}", param_hint="--from-file")
    goals = {}
    for line in own:
        if line.offset < 0:
            raise click.BadParameter(
                f"{path}: the offset of {line.topic}-{line.partition} must be 0 or more, not {line.offset}",
                param_hint="--from-file",
            )
        partition_count(cluster, line.topic, (line.partition,))
        goals[line.topic, line.partition] = Goal(OffsetSpec("offset", line.offset))
    return goals


def _of_group(cluster: Cluster, group: str) -> dict[TopicPartition, Goal]:
    committed = committed_offsets(cluster, group)
    if not committed:
        raise NotFound(f"group {group!r} has no committed offsets{_similar(cluster, group)}")
    return {partition: Goal(OffsetSpec("offset", offset)) for partition, offset in sorted(committed.items())}


def _similar(cluster: Cluster, group: str) -> str:
    return suggestion(group, [listed.group_id for listed in list_groups(cluster) if listed.group_id != group])
