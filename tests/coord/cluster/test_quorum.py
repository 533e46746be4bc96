"""The quorum in a metadata log's control records, and the `quorum-state` file. KIP-595, KIP-853."""

from __future__ import annotations

import pytest

from barnabas.coord.cluster.delta import ClusterDelta
from barnabas.coord.cluster.image import ClusterImage, UnknownMetadataError
from barnabas.coord.cluster.metadata_log.checkpoint import build_checkpoint, load_checkpoint
from barnabas.coord.cluster.metadata_log.metadata_batches import replay_batches
from barnabas.coord.cluster.quorum import Election, Quorum
from barnabas.wire.batches.records import ControlRecordType, control_batch, iter_batches, iter_records
from barnabas.wire.messages.records.raft_records import (
    KRaftVersionRecord,
    VotersRecord,
    VotersRecordEndpoint,
    VotersRecordVoter,
)
from tests.support.cases import for_each

KAFKAS_STATIC = (
    b'{"clusterId":"","leaderId":1,"leaderEpoch":3,"votedId":-1,"appliedOffset":0,'
    b'"currentVoters":[{"voterId":1}],"data_version":0}'
)
KAFKAS_DYNAMIC = (
    b'{"leaderId":1,"leaderEpoch":3,"votedId":-1,"votedDirectoryId":"AAAAAAAAAAAAAAAAAAAAAA","data_version":1}'
)
VOTERS = VotersRecord(
    voters=[
        VotersRecordVoter(
            voter_id=voter,
            voter_directory_id=bytes([voter]) * 16,
            endpoints=[VotersRecordEndpoint(name="CONTROLLER", host="h", port=9093)],
        )
        for voter in (1, 4)
    ]
)
DYNAMIC = Quorum(1, VOTERS)


def test_the_file_is_byte_for_byte_what_kafka_writes() -> None:
    assert Quorum().state_file(1, 3) == KAFKAS_STATIC
    assert DYNAMIC.state_file(1, 3) == KAFKAS_DYNAMIC


def test_the_file_has_the_epoch_and_the_configured_voters() -> None:
    assert Election.from_file(KAFKAS_STATIC) == Election(3, frozenset({1}))
    assert Election.from_file(KAFKAS_DYNAMIC) == Election(3)


@for_each("content", [b"", b"[]", b"{}", b'{"leaderEpoch":null}', b'{"leaderEpoch":1,"currentVoters":[{}]}'])
def test_an_invalid_file_is_refused(content: bytes) -> None:
    with pytest.raises(ValueError, match=r".*"):
        Election.from_file(content)


def test_control_records_change_the_quorum_and_a_snapshot_contains_it() -> None:
    image = ClusterImage()
    version = KRaftVersionRecord(k_raft_version=1).encode(0)
    log = control_batch(ControlRecordType.KRAFT_VERSION, version, timestamp_ms=0) + control_batch(
        ControlRecordType.KRAFT_VOTERS, VOTERS.encode(0), timestamp_ms=0, base_offset=1
    )
    replay_batches(log, image, ClusterDelta())
    assert image.quorum == DYNAMIC
    assert image.quorum.voter_ids == {1, 4}
    parts = list(build_checkpoint([], quorum=image.quorum, epoch=2, last_timestamp_ms=0, now_ms=0))
    (first,) = iter_batches(parts[0])
    assert len(list(iter_records(first))) == 3, "header, version and voters in one batch, as Kafka writes them"
    assert load_checkpoint(b"".join(parts), 9, 2).quorum == DYNAMIC


@pytest.mark.parametrize(("kind", "value"), [(77, b"\0\0"), (ControlRecordType.KRAFT_VOTERS, b"\0")])
def test_unknown_or_invalid_control_records_are_refused(kind: int, value: bytes) -> None:
    with pytest.raises(UnknownMetadataError, match="Invalid control record at offset 5"):
        replay_batches(control_batch(kind, value, timestamp_ms=0, base_offset=5), ClusterImage(), ClusterDelta())
