"""The voters of the metadata quorum, from the control records of its log, and the `quorum-state` file.

With kraft.version 0 the voters are configured (`controller.quorum.voters`) and `quorum-state` repeats them; from 1
on they are records (KIP-853). A snapshot contains the version and the voters, so both are stored unchanged.
The file contains the newest epoch of this node: it is written before a record of that epoch, so that an epoch never
has two leaders. Source: Kafka 4.4 `KRaftControlRecordStateMachine`, `FileQuorumStateStore`. KIP-595.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Final, NamedTuple

from barnabas.wire.batches.records import ControlRecordType
from barnabas.wire.messages.records.raft_records import (
    KRaftVersionRecord,
    VotersRecord,
    VotersRecordEndpoint,
    VotersRecordKRaftVersionFeature,
    VotersRecordVoter,
)
from barnabas.wire.schema import Message
from barnabas.wire.types import Uuid

DYNAMIC_VOTERS: Final = 1
"""The first kraft.version with voters in records."""

_IGNORED: Final = frozenset(
    {ControlRecordType.LEADER_CHANGE, ControlRecordType.SNAPSHOT_HEADER, ControlRecordType.SNAPSHOT_FOOTER}
)
_NO_DIRECTORY: Final = "A" * 22


class Quorum(NamedTuple):
    """The quorum as of one offset of the metadata log."""

    kraft_version: int = 0
    voters: VotersRecord | None = None

    def after(self, kind: int, value: bytes) -> Quorum:
        """The quorum after a control record; ValueError for an unknown type."""
        if kind == ControlRecordType.KRAFT_VERSION:
            return self._replace(kraft_version=KRaftVersionRecord.decode(value, 0).k_raft_version)
        if kind == ControlRecordType.KRAFT_VOTERS:
            return self._replace(voters=VotersRecord.decode(value, 0))
        if kind in _IGNORED:
            return self
        raise ValueError(f"unknown control record type {kind}")

    @property
    def voter_ids(self) -> frozenset[int]:
        """The ids of the voters; empty when the log does not contain them."""
        return frozenset() if self.voters is None else frozenset(voter.voter_id for voter in self.voters.voters)

    def records(self) -> Iterator[tuple[int, Message]]:
        """(control record type, record) for the beginning of a log or snapshot."""
        if self.kraft_version >= DYNAMIC_VOTERS:
            yield ControlRecordType.KRAFT_VERSION, KRaftVersionRecord(k_raft_version=self.kraft_version)
            if self.voters is not None:
                yield ControlRecordType.KRAFT_VOTERS, self.voters

    def at(self, node_id: int, endpoint: VotersRecordEndpoint) -> Quorum:
        """The quorum with this address of a voter in records; the same if it has it already or has no such voter."""
        voters = () if self.voters is None else self.voters.voters
        for voter in voters:
            if voter.voter_id == node_id and list(voter.endpoints) != [endpoint]:
                moved = VotersRecordVoter(
                    voter_id=node_id,
                    voter_directory_id=voter.voter_directory_id,
                    endpoints=[endpoint],
                    k_raft_version_feature=voter.k_raft_version_feature,
                )
                others = [moved if other is voter else other for other in voters]
                return self._replace(voters=VotersRecord(voters=others))
        return self

    def state_file(self, leader_id: int, epoch: int) -> bytes:
        """The content of `quorum-state` while `leader_id`, the only voter, leads `epoch`."""
        state: dict[str, object] = {"leaderId": leader_id, "leaderEpoch": epoch, "votedId": -1}
        if self.kraft_version >= DYNAMIC_VOTERS:
            state |= {"votedDirectoryId": _NO_DIRECTORY, "data_version": 1}
        else:
            state = {"clusterId": "", **state, "appliedOffset": 0}
            state |= {"currentVoters": [{"voterId": leader_id}], "data_version": 0}
        return json.dumps(state, separators=(",", ":")).encode()


def standalone(node_id: int, directory_id: Uuid, endpoint: VotersRecordEndpoint) -> Quorum:
    """A quorum of one node with voters in records, as made by `kafka-storage format --standalone`."""
    feature = VotersRecordKRaftVersionFeature(min_supported_version=0, max_supported_version=DYNAMIC_VOTERS)
    voter = VotersRecordVoter(
        voter_id=node_id, voter_directory_id=directory_id, endpoints=[endpoint], k_raft_version_feature=feature
    )
    return Quorum(DYNAMIC_VOTERS, VotersRecord(voters=[voter]))


class Election(NamedTuple):
    """The content of a `quorum-state` file."""

    epoch: int = 0
    voter_ids: frozenset[int] = frozenset()
    """The configured voters, with kraft.version 0."""

    @classmethod
    def from_file(cls, content: bytes) -> Election:
        """Parse the file; ValueError when it is invalid."""
        state = json.loads(content)
        if not isinstance(state, dict):
            raise ValueError("it is not a JSON object")
        try:
            voters = frozenset(int(voter["voterId"]) for voter in state.get("currentVoters") or ())
            return cls(int(state["leaderEpoch"]), voters)
        except (KeyError, TypeError) as error:
            raise ValueError("it has no epoch, or a voter without an id") from error
