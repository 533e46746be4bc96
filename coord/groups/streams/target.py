"""Computes the target assignment of a streams group (KIP-1071).

The sticky assignor computes it from the members, the present target assignment and the reported offsets. While the
topology is not ready, no member has tasks.
Source: Kafka 4.4 `TargetAssignmentBuilder`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from barnabas.coord.groups.streams.assignor import MemberSpec, Spec, SubtopologySpec
from barnabas.coord.groups.streams.assignor import assign as assign_sticky
from barnabas.coord.groups.streams.tasks import Task, Tasks

if TYPE_CHECKING:
    from barnabas.coord.groups.settings import GroupSettings
    from barnabas.coord.groups.streams.internal_topics import ConfiguredTopology
    from barnabas.coord.groups.streams.member import StreamsMember

ASSIGNOR = "sticky"
"""The only assignor, as in Kafka 4.4."""


def assignment_configs(settings: GroupSettings) -> dict[str, str]:
    """The configs that an assignment depends on, as in the group's record; a change causes a new assignment."""
    return {
        "num.standby.replicas": str(settings.streams_num_standby_replicas),
        "rack.aware.assignment.tags": ",".join(settings.streams_rack_aware_assignment_tags),
    }


def assign(
    members: Mapping[str, StreamsMember],
    target: Mapping[str, Tasks],
    configured: ConfiguredTopology,
    offsets: Mapping[str, tuple[Mapping[Task, int], Mapping[Task, int]]],
    settings: GroupSettings,
) -> dict[str, Tasks]:
    """The new target assignment of each member; `target` is the present one."""
    if not configured.is_ready:
        return dict.fromkeys(members, Tasks())
    specs = {
        member.member_id: MemberSpec(
            process_id=member.process_id,
            client_tags=member.client_tags,
            before=target.get(member.member_id, Tasks()),
            offsets=offsets.get(member.member_id, ({}, {}))[0],
        )
        for member in members.values()
    }
    subtopologies = {
        name: SubtopologySpec(each.task_count, each.is_stateful) for name, each in configured.subtopologies.items()
    }
    return assign_sticky(
        Spec(
            specs,
            subtopologies,
            standbys=settings.streams_num_standby_replicas,
            tags=settings.streams_rack_aware_assignment_tags,
        )
    )
