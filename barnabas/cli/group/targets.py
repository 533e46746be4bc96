"""Where `group seek` moves each partition: options, `-t TOPIC:0=WHERE`, files, other groups."""

from __future__ import annotations

from collections.abc import Mapping
from time import time_ns
from typing import NamedTuple

import click

from barnabas.cli.options.offset_spec import parse_offset_spec
from barnabas.cli.options.partitions import named_partitions, partition_count, read_offsets
from barnabas.client.cluster import Cluster
from barnabas.client.errors import ClientError, NotFound
from barnabas.client.groups.consumer_groups import committed_offsets, list_groups
from barnabas.client.offsets import TopicPartition
from barnabas.client.records.offset_spec import OffsetSpec, resolve_offset_specs
from barnabas.terminal.notes import note
from barnabas.terminal.suggestion import suggestion


class Goal(NamedTuple):
    """A position in a partition, or a distance from the committed offset (`spec` is None)."""

    spec: OffsetSpec | None
    shift: int = 0

    @classmethod
    def from_text(cls, text: str, option: str) -> Goal:
        """`current`, or any position of `offset_spec`."""
        return cls(None) if text == "current" else cls(parse_offset_spec(text, option))

    @classmethod
    def from_options(
        cls,
        to: str | None,
        shift_by: int | None,
        to_datetime: str | None,
        duration_s: float | None,
        *,
        to_current: bool,
    ) -> Goal | None:
        """The goal that one of these options names; None if none does, a usage error if several do."""
        goals = []
        if to is not None:
            goals.append(cls.from_text(to, "--to"))
        if shift_by is not None:
            goals.append(cls(None, shift_by))
        if to_datetime is not None:
            goals.append(cls(parse_offset_spec(f"@{to_datetime.removeprefix('@')}", "--to-datetime")))
        if duration_s is not None:
            goals.append(cls(OffsetSpec("time", time_ns() // 1_000_000 - round(duration_s * 1000))))
        if to_current:
            goals.append(cls(None))
        if len(goals) > 1:
            raise click.UsageError(
                "say where to in one way: --to, --shift-by, --to-datetime, --by-duration, --to-current"
            )
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
        own = Goal.from_text(where, "-t") if equals else goal
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


def resolve_goals(
    cluster: Cluster, goals: Mapping[TopicPartition, Goal], committed: Mapping[TopicPartition, int]
) -> dict[TopicPartition, int]:
    """The offset of each goal; what is outside its partition is moved to the nearest end, with a note on stderr."""
    specs: dict[TopicPartition, OffsetSpec] = {}
    for (name, index), goal in goals.items():
        if goal.spec is None and (name, index) not in committed:
            raise ClientError(f"there is no committed offset in {name}-{index} to move from")
        specs[name, index] = goal.spec or OffsetSpec("offset", committed[name, index] + goal.shift)

    def moved(partition: TopicPartition, offset: int, why: str) -> None:
        reason = {
            "beyond": f"{specs[partition].value} is after the end",
            "before": f"{specs[partition].value} is before the first record",
            "late": "no record is that new",
        }[why]
        note(f"{partition[0]}-{partition[1]}: {reason}; {offset} is used")

    return resolve_offset_specs(cluster, specs, on_moved=moved)
