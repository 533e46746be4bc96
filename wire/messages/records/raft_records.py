"""Control records and files of a KRaft log: voters, leader changes, snapshot header and footer.

KIP-595, KIP-630, KIP-853.
"""

from __future__ import annotations

from barnabas.wire.schema import (
    Message,
    Struct,
    Uuid,
    array,
    int16,
    int32,
    int64,
    message,
    nested,
    string,
    struct,
    uint16,
    uuid,
)


@message("data", versions="0", flexible="0+")
class KRaftVersionRecord(Message):
    version: int = int16("0+")
    k_raft_version: int = int16("0+")


@struct
class LeaderChangeMessageVoter(Struct):
    voter_id: int = int32("0+")
    voter_directory_id: Uuid = uuid("1+")


@message("data", versions="0-1", flexible="0+")
class LeaderChangeMessage(Message):
    version: int = int16("0+")
    leader_id: int = int32("0+", entity="brokerId")
    voters: list[LeaderChangeMessageVoter] = array(LeaderChangeMessageVoter, "0+")
    granting_voters: list[LeaderChangeMessageVoter] = array(LeaderChangeMessageVoter, "0+")


@message("data", versions="0", flexible="0+")
class SnapshotFooterRecord(Message):
    version: int = int16("0+")


@message("data", versions="0", flexible="0+")
class SnapshotHeaderRecord(Message):
    version: int = int16("0+")
    last_contained_log_timestamp: int = int64("0+")


@struct
class VotersRecordEndpoint(Struct):
    name: str = string("0+")
    host: str = string("0+")
    port: int = uint16("0+")


@struct
class VotersRecordKRaftVersionFeature(Struct):
    min_supported_version: int = int16("0+")
    max_supported_version: int = int16("0+")


@struct
class VotersRecordVoter(Struct):
    voter_id: int = int32("0+", entity="brokerId")
    voter_directory_id: Uuid = uuid("0+")
    endpoints: list[VotersRecordEndpoint] = array(VotersRecordEndpoint, "0+")
    k_raft_version_feature: VotersRecordKRaftVersionFeature = nested(VotersRecordKRaftVersionFeature, "0+")


@message("data", versions="0", flexible="0+")
class VotersRecord(Message):
    version: int = int16("0+")
    voters: list[VotersRecordVoter] = array(VotersRecordVoter, "0+")


@struct
class QuorumStateDataVoter(Struct):
    voter_id: int = int32("0")


@message("data", versions="0-1", flexible="0+")
class QuorumStateData(Message):
    cluster_id: str = string("0")
    leader_id: int = int32("0+", default=-1)
    leader_epoch: int = int32("0+", default=-1)
    voted_id: int = int32("0+", default=-1)
    voted_directory_id: Uuid = uuid("1+")
    applied_offset: int = int64("0")
    current_voters: list[QuorumStateDataVoter] | None = array(QuorumStateDataVoter, "0", nullable="0")
