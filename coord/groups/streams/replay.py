"""Applies the records of streams groups (KIP-1071)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from barnabas.coord.groups.modern.group import FIRST_EPOCH
from barnabas.coord.groups.modern.replay import CommonTypes, Replay
from barnabas.coord.groups.streams import records
from barnabas.coord.groups.streams.topology import Topology

if TYPE_CHECKING:
    from barnabas.coord.groups.streams.group import StreamsGroup
    from barnabas.wire.messages import coordinator_records as r


def _put_epoch(group: StreamsGroup, _: str, value: r.StreamsGroupMetadataValue) -> None:
    group.epoch = value.epoch
    group.metadata_hash = value.metadata_hash
    group.validated_topology_epoch = value.validated_topology_epoch
    group.assignment_configs = records.read_configs(value)


def _put_topology(group: StreamsGroup, _: str, value: r.StreamsGroupTopologyValue) -> None:
    group.topology = Topology(value)


def _remove_target_epoch(group: StreamsGroup, _: str) -> None:
    group.assignment_epoch = FIRST_EPOCH


def _remove_topology(group: StreamsGroup, _: str) -> None:
    group.topology = None


REPLAY: Replay[StreamsGroup] = Replay(
    CommonTypes(
        group=records.GROUP_METADATA,
        member=records.MEMBER_METADATA,
        target_epoch=records.TARGET_ASSIGNMENT_METADATA,
        target=records.TARGET_ASSIGNMENT_MEMBER,
        current_assignment=records.CURRENT_ASSIGNMENT,
    ),
    records,
    put={records.GROUP_METADATA: _put_epoch, records.TOPOLOGY: _put_topology},
    remove={records.TARGET_ASSIGNMENT_METADATA: _remove_target_epoch, records.TOPOLOGY: _remove_topology},
)
