"""Where replicas are: reported to the controller until the metadata says so (KIP-858)."""

from __future__ import annotations

import logging

import pytest

from barnabas.broker.metadata.directory_assignments import CHECK_S, MAX_RETRY_S
from barnabas.coord.cluster.topic_image import MIGRATING_DIRECTORY, UNASSIGNED_DIRECTORY
from barnabas.wire.errors import ErrorCode
from barnabas.wire.messages.log_dirs import (
    AssignReplicasToDirsRequest,
    AssignReplicasToDirsResponse,
    AssignReplicasToDirsResponseDirectoryData,
    AssignReplicasToDirsResponsePartitionData,
    AssignReplicasToDirsResponseTopicData,
)
from barnabas.wire.messages.records.metadata_records import FeatureLevelRecord, PartitionChangeRecord
from barnabas.wire.types import uuid_from_text
from tests.broker.metadata.scripted_controller import started, topic_records


def answer(request: AssignReplicasToDirsRequest, code: ErrorCode = ErrorCode.NONE) -> AssignReplicasToDirsResponse:
    """The same for each replica."""
    return AssignReplicasToDirsResponse(
        directories=[
            AssignReplicasToDirsResponseDirectoryData(
                id=directory.id,
                topics=[
                    AssignReplicasToDirsResponseTopicData(
                        topic_id=topic.topic_id,
                        partitions=[
                            AssignReplicasToDirsResponsePartitionData(
                                partition_index=partition.partition_index, error_code=int(code)
                            )
                            for partition in topic.partitions
                        ],
                    )
                    for topic in directory.topics
                ],
            )
            for directory in request.directories
        ]
    )


class Reports:
    """The reports that the controller was sent, and what it answers."""

    def __init__(self, controller) -> None:
        self.code = ErrorCode.NONE
        self.requests: list[AssignReplicasToDirsRequest] = []
        controller.node.on(AssignReplicasToDirsRequest, self.reported)

    def reported(self, request: AssignReplicasToDirsRequest, _: int) -> AssignReplicasToDirsResponse:
        """One report."""
        self.requests.append(request)
        return answer(request, self.code)


@pytest.fixture
def reports(wire, tmp_path, controller) -> Reports:
    """Reports of a broker with two directories and one replica, in a directory that the metadata does not have."""
    reports = Reports(controller)
    started(wire, tmp_path, controller, tmp_path / "more")
    return reports


def test_a_replica_that_the_controller_refuses_is_reported_again_and_the_log_says_why_once(
    wire, controller, reports, caplog: pytest.LogCaptureFixture
) -> None:
    reports.code = ErrorCode.NOT_LEADER_OR_FOLLOWER
    with caplog.at_level(logging.WARNING):
        controller.quorum.write(*topic_records("t", 1, UNASSIGNED_DIRECTORY))
        wire.advance(10)
        count = len(reports.requests)
        assert 3 <= count <= 6  # after 0.5, 1, 2 and 4 seconds
        reports.code = ErrorCode.UNKNOWN_TOPIC_ID
        wire.advance(MAX_RETRY_S)
    assert len(reports.requests) > count
    lines = [record.getMessage() for record in caplog.records if "directories of all" in record.getMessage()]
    assert [text.rpartition(" ")[2] for text in lines] == ["NOT_LEADER_OR_FOLLOWER", "UNKNOWN_TOPIC_ID"]


def test_what_the_controller_has_taken_is_reported_again_if_the_metadata_does_not_come(
    wire, controller, reports, caplog: pytest.LogCaptureFixture
) -> None:
    controller.quorum.write(*topic_records("t", 1, UNASSIGNED_DIRECTORY))
    wire.advance(CHECK_S - 1)
    assert len(reports.requests) == 1
    wire.advance(2)
    assert len(reports.requests) == 2
    assert "accepted the directories of 1 replicas" in caplog.text
    (directory,) = reports.requests[-1].directories
    own = PartitionChangeRecord(partition_id=0, topic_id=directory.topics[0].topic_id, directories=[directory.id])
    controller.quorum.write(own)
    wire.advance(3 * CHECK_S)
    assert len(reports.requests) == 2


def test_the_directories_of_replicas_are_reported_when_there_are_several(wire, tmp_path, controller):
    reported: list[AssignReplicasToDirsRequest] = []

    def assign(request: AssignReplicasToDirsRequest, _: int) -> AssignReplicasToDirsResponse:
        reported.append(request)
        if len(reported) == 1:
            return AssignReplicasToDirsResponse(error_code=ErrorCode.STALE_BROKER_EPOCH)
        topic = AssignReplicasToDirsResponseTopicData(
            topic_id=request.directories[0].topics[0].topic_id,
            partitions=[AssignReplicasToDirsResponsePartitionData(partition_index=0)],
        )
        directory = AssignReplicasToDirsResponseDirectoryData(id=request.directories[0].id, topics=[topic])
        return AssignReplicasToDirsResponse(directories=[directory])

    controller.node.on(AssignReplicasToDirsRequest, assign)
    member = started(wire, tmp_path, controller, tmp_path / "more")
    controller.quorum.write(*topic_records("t", 1, bytes(16)))
    wire.advance(2)
    log_dir = member.broker.log_dirs.dir_of("t", 0)
    assert log_dir is not None
    last = reported[-1]
    assert len(reported) == 2
    assert last.broker_epoch == member.lifecycle.broker_epoch
    assert [listed.id for listed in last.directories] == [uuid_from_text(log_dir.directory_id)]
    assert last.directories[0].topics[0].partitions[0].partition_index == 0


@pytest.mark.parametrize(
    ("assigned", "is_reported"),
    [(UNASSIGNED_DIRECTORY, False), (MIGRATING_DIRECTORY, False), (b"another one     ", True)],
)
def test_one_directory_is_reported_where_it_has_taken_the_place_of_another(
    wire, tmp_path, controller, assigned: bytes, is_reported: bool
):
    controller.node.on(AssignReplicasToDirsRequest, lambda request, _: AssignReplicasToDirsResponse())
    started(wire, tmp_path, controller)
    controller.quorum.write(*topic_records("t", 1, assigned))
    wire.advance(0.2)
    reported = [received for received in controller.node.requests if isinstance(received, AssignReplicasToDirsRequest)]
    assert bool(reported) == is_reported


def test_directories_are_reported_when_the_metadata_can_have_them(wire, tmp_path, controller):
    """metadata.version 17 (3.7-IV2); before, the controller would refuse the report for ever."""
    controller.node.on(AssignReplicasToDirsRequest, lambda request, _: AssignReplicasToDirsResponse())
    started(wire, tmp_path, controller, tmp_path / "more")

    def reported() -> int:
        return sum(isinstance(received, AssignReplicasToDirsRequest) for received in controller.node.requests)

    controller.quorum.write(FeatureLevelRecord(name="metadata.version", feature_level=16))
    controller.quorum.write(*topic_records("t", 1, MIGRATING_DIRECTORY))
    wire.advance(2)
    assert reported() == 0
    controller.quorum.write(FeatureLevelRecord(name="metadata.version", feature_level=17))
    wire.advance(0.4)
    assert reported() == 1
