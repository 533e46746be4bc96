"""R28: a replica that cannot serve is reported as lost if another in sync can lead, and joins again by itself."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from barnabas.broker.exhausted_dirs import PAUSE_S
from barnabas.broker.metadata.directory_assignments import LOST_AGAIN_S
from barnabas.broker.replicas.partition import Partition
from barnabas.coord.cluster.topic_image import LOST_DIRECTORY, PartitionImage
from barnabas.storage.directories.log_dir import LogDir
from barnabas.storage.files import Files
from barnabas.wire.messages.log_dirs import (
    AssignReplicasToDirsRequest,
    AssignReplicasToDirsResponse,
    AssignReplicasToDirsResponseDirectoryData,
    AssignReplicasToDirsResponsePartitionData,
    AssignReplicasToDirsResponseTopicData,
)
from barnabas.wire.messages.records.metadata_records import (
    BrokerEndpoint,
    PartitionChangeRecord,
    PartitionRecord,
    RegisterBrokerRecord,
    TopicRecord,
)
from barnabas.wire.types import Uuid, uuid_from_text
from tests.broker.fake_controller import FEATURES, FakeController, FakeQuorum, JoinedBroker
from tests.broker.scripted_nodes import Wire
from tests.support.memory.broker import batch

OTHERS = Uuid(b"directory of two")
TOPIC = Uuid(b"the id of topic ")


class LocalFailures:
    """Broker 1, a scripted broker 2, and a controller that does as Kafka's with what broker 1 reports."""

    def __init__(self, wire: Wire, folder: Path, *, name: str = "t") -> None:
        self.wire, self.name = wire, name
        quorum = FakeQuorum()
        quorum.write(*FEATURES)
        self.controller = FakeController(wire, quorum, 3000)
        self.controller.node.on(AssignReplicasToDirsRequest, self._assigned)
        self.folder = folder
        self.reported: list[Uuid] = []
        self.answer_to_lost: Callable[[], dict[str, Any]] = lambda: {"leader": 2, "isr": [2]}
        """What the controller changes when the replica of broker 1 is lost."""
        self.member = self.start()

    def start(self) -> JoinedBroker:
        member = JoinedBroker(self.wire, [self.folder / "data"], self.controller.address)
        member.start()
        self.wire.advance(1)
        assert member.joined.all == [None]
        return member

    @property
    def own(self) -> Uuid:
        return uuid_from_text(self.log_dir.directory_id)

    @property
    def log_dir(self) -> LogDir:
        return self.member.broker.log_dirs.dirs[0]

    @property
    def image(self) -> PartitionImage:
        partition = self.member.image.partition(self.name, 0)
        assert partition is not None
        return partition

    @property
    def partition(self) -> Partition:
        return self.member.broker.partitions.get(self.name, 0)

    def create(self, *, isr: tuple[int, ...] = (1, 2), fenced: bool = False) -> None:
        """A topic that broker 1 leads, with two records; broker 2 is there."""
        two = RegisterBrokerRecord(
            broker_id=2,
            incarnation_id=Uuid(b"incarnation of 2"),
            broker_epoch=100,
            end_points=[BrokerEndpoint(name="PLAINTEXT", host="127.0.0.1", port=self.wire.node().port)],
            log_dirs=[OTHERS],
            fenced=fenced,
        )
        partition = PartitionRecord(
            topic_id=TOPIC,
            partition_id=0,
            replicas=[1, 2],
            isr=list(isr),
            leader=1,
            leader_epoch=0,
            partition_epoch=0,
            directories=[self.own, OTHERS],
        )
        self.controller.quorum.write(two, TopicRecord(name=self.name, topic_id=TOPIC), partition)
        self.wire.advance(0.5)
        for value in (b"a", b"b"):
            self.partition.append(memoryview(bytearray(batch(value))), self.wire.now)

    def change(self, **fields: Any) -> None:
        """Change the partition, as a controller does."""
        fields.setdefault("leader", -2)
        self.controller.quorum.write(PartitionChangeRecord(topic_id=TOPIC, partition_id=0, **fields))
        self.wire.advance(0.5)

    def _assigned(self, request: AssignReplicasToDirsRequest, _: int) -> AssignReplicasToDirsResponse:
        (directory,) = request.directories
        self.reported.append(directory.id)
        change = PartitionChangeRecord(topic_id=TOPIC, partition_id=0, directories=[directory.id, OTHERS])
        self.controller.quorum.write(change)
        if directory.id == LOST_DIRECTORY and (fields := self.answer_to_lost()):
            self.controller.quorum.write(PartitionChangeRecord(topic_id=TOPIC, partition_id=0, **fields))
        topic = AssignReplicasToDirsResponseTopicData(
            topic_id=TOPIC, partitions=[AssignReplicasToDirsResponsePartitionData(partition_index=0)]
        )
        return AssignReplicasToDirsResponse(
            directories=[AssignReplicasToDirsResponseDirectoryData(id=directory.id, topics=[topic])]
        )

    def set_aside(self) -> list[str]:
        return [path.name for path in (self.folder / "data").iterdir() if path.name.endswith("-stray")]


@pytest.fixture
def world(wire: Wire, tmp_path: Path) -> LocalFailures:
    world = LocalFailures(wire, tmp_path)
    world.create()
    return world


def test_a_damaged_leader_is_lost_then_filled_again_then_back_in_its_directory(
    world: LocalFailures, caplog: pytest.LogCaptureFixture
) -> None:
    damaged = world.partition
    waits: list[int] = []
    damaged.when_committed(1, waits.append)
    damaged.damaged("a batch is not whole")
    world.wire.advance(0.5)
    assert world.reported == [LOST_DIRECTORY, world.own]
    assert (world.image.leader, world.image.isr) == (2, (2,))
    assert waits == [6]  # NOT_LEADER_OR_FOLLOWER: its client asks the new leader
    assert world.partition is not damaged
    assert world.partition.log.log_end_offset == 0
    assert len(world.set_aside()) == 1
    assert "The replica t-0 of this broker is damaged: a batch is not whole. As soon as" in caplog.text
    assert "Partition t-0 is filled from its leader again, since a batch is not whole" in caplog.text


@pytest.mark.parametrize("case", ["alone in sync", "the other is fenced"])
def test_a_damaged_replica_that_nobody_replaces_goes_on(wire: Wire, tmp_path: Path, case: str) -> None:
    world = LocalFailures(wire, tmp_path)
    world.create(isr=(1,) if case == "alone in sync" else (1, 2), fenced=case == "the other is fenced")
    world.partition.damaged("a batch is not whole")
    world.partition.damaged("a batch is not whole")
    wire.advance(1)
    assert world.reported == []
    assert world.partition.is_leader
    world.partition.append(memoryview(bytearray(batch(b"c"))), wire.now)
    assert world.set_aside() == []


def test_it_is_reported_as_soon_as_another_is_in_sync(wire: Wire, tmp_path: Path) -> None:
    world = LocalFailures(wire, tmp_path)
    world.create(isr=(1,))
    world.partition.damaged("a batch is not whole")
    wire.advance(0.5)
    world.change(isr=[1, 2])
    assert world.reported[0] == LOST_DIRECTORY
    assert world.image.leader == 2


def test_a_replica_of_the_elr_is_given_up_only_when_lost_and_reported_only_when_in_sync(world: LocalFailures) -> None:
    """KIP-966: what the ELR has could be elected; a new log has nothing."""
    world.answer_to_lost = lambda: {"leader": 2, "isr": [2], "eligible_leader_replicas": [1]}
    world.partition.damaged("a batch is not whole")
    world.wire.advance(1)
    assert world.partition.log.log_end_offset == 0
    assert world.reported == [LOST_DIRECTORY]
    world.change(isr=[2, 1], eligible_leader_replicas=[])
    assert world.reported == [LOST_DIRECTORY, world.own]


def test_after_a_start_a_lost_replica_of_the_elr_claims_nothing(world: LocalFailures) -> None:
    """It is unknown whether its log is new: the controller takes the broker out of the ELRs (KIP-966)."""
    world.answer_to_lost = lambda: {"leader": 2, "isr": [2], "eligible_leader_replicas": [1]}
    world.partition.damaged("a batch is not whole")
    world.wire.advance(1)
    world.member.stop()
    world.controller.sessions.clear()
    world.member = world.start()
    assert world.controller.registrations[-1].previous_broker_epoch == -1
    world.change(eligible_leader_replicas=[])
    assert world.reported[-1] == world.own


def test_a_whole_log_of_the_elr_is_reported_when_there_is_space(
    world: LocalFailures, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It may be the only one that can lead: nothing is missing in it."""
    monkeypatch.setattr(LogDir, "volume", lambda _: (1 << 30, 1 << 30))
    world.answer_to_lost = lambda: {"leader": 2, "isr": [2], "eligible_leader_replicas": [1]}
    refuse(world, errno.ENOSPC)
    world.wire.advance(PAUSE_S + 0.5)
    assert world.reported == [LOST_DIRECTORY]
    check(world)
    world.wire.advance(0.5)
    assert world.reported == [LOST_DIRECTORY, world.own]


def test_it_is_not_given_up_while_the_elr_counts_on_it(world: LocalFailures) -> None:
    world.answer_to_lost = dict
    damaged = world.partition
    world.controller.node.on(AssignReplicasToDirsRequest, lambda *_: AssignReplicasToDirsResponse(error_code=41))
    damaged.damaged("a batch is not whole")
    world.change(leader=2, isr=[2], eligible_leader_replicas=[1])
    assert world.partition is damaged
    world.controller.node.on(AssignReplicasToDirsRequest, world._assigned)
    world.wire.advance(1)
    assert world.partition is not damaged


def test_a_lost_replica_that_nobody_replaces_any_more_is_reported_in_its_directory(world: LocalFailures) -> None:
    """The other has gone before it was elected: what this one has can be read at least."""
    world.answer_to_lost = dict
    world.partition.damaged("a batch is not whole")
    world.wire.advance(0.5)
    assert world.reported == [LOST_DIRECTORY]
    world.change(isr=[1])
    assert world.reported == [LOST_DIRECTORY, world.own]
    assert world.partition.is_leader


def test_a_report_that_is_put_off_has_one_timer(world: LocalFailures) -> None:
    """Each change of the metadata meanwhile set another one."""
    world.answer_to_lost = dict
    world.partition.damaged("a batch is not whole")
    world.wire.advance(0.5)
    for _ in range(4):
        world.change(isr=[1, 2])
    reports = [
        timer.callback.__name__ for *_, timer in world.member.broker.loop.timers.heap if timer.callback is not None
    ]
    assert [name for name in reports if "report" in name] == ["_report_scheduled"]
    world.wire.advance(LOST_AGAIN_S)
    assert world.reported == [LOST_DIRECTORY, LOST_DIRECTORY]


def test_one_that_came_into_the_isr_while_lost_is_reported_again(world: LocalFailures) -> None:
    """A fetch in flight may have caused that; the replica must not count as in sync."""
    world.answer_to_lost = dict
    world.partition.damaged("a batch is not whole")
    world.wire.advance(0.5)
    assert world.reported == [LOST_DIRECTORY]
    world.answer_to_lost = lambda: {"leader": 2, "isr": [2]}
    world.change(leader=2, isr=[2, 1])
    world.wire.advance(LOST_AGAIN_S)
    assert world.reported[:2] == [LOST_DIRECTORY, LOST_DIRECTORY]
    assert world.image.isr == (2,)


def test_a_leader_that_cannot_be_loaded_is_lost_and_filled_again(world: LocalFailures) -> None:
    """It is still the leader in the metadata: no other node has noticed its restart."""
    world.member.stop()
    (world.folder / "data" / "t-0" / "leader-epoch-checkpoint").write_text("not a checkpoint\n")
    world.controller.sessions.clear()
    world.reported.clear()
    world.member = world.start()
    world.wire.advance(1)
    assert world.reported == [LOST_DIRECTORY, world.own]
    assert world.partition.log.log_end_offset == 0
    assert not world.member.broker.partitions.offline


def test_a_damaged_log_that_cannot_be_set_aside_now_is_later(
    world: LocalFailures, monkeypatch: pytest.MonkeyPatch
) -> None:
    rename, failures = Files.rename, [errno.ENOSPC]

    def fail_once(files: Files, old: str, new: str) -> None:
        if new.endswith("-stray") and failures:
            code = failures.pop()
            raise OSError(code, os.strerror(code), old)
        rename(files, old, new)

    monkeypatch.setattr(Files, "rename", fail_once)
    world.partition.damaged("a batch is not whole")
    world.wire.advance(0.5)
    assert ("t", 0) in world.member.broker.partitions.offline
    assert world.reported == [LOST_DIRECTORY]
    world.wire.advance(PAUSE_S)
    for _ in range(2):
        check(world)
        world.member.broker.partitions.reopen(world.member.image)
        world.wire.advance(0.5)
    assert world.member.broker.halt_reason is None
    assert world.reported == [LOST_DIRECTORY, world.own]
    assert world.partition.log.log_end_offset == 0


def test_an_internal_partition_moves_as_well(wire: Wire, tmp_path: Path) -> None:
    world = LocalFailures(wire, tmp_path, name="__consumer_offsets")
    world.create()
    world.partition.damaged("a batch is not whole")
    wire.advance(0.5)
    assert world.reported == [LOST_DIRECTORY, world.own]


def test_a_read_error_of_the_disk_is_damage_and_one_that_passes_is_none(world: LocalFailures) -> None:
    world.partition.report_unreadable(OSError(errno.EMFILE, os.strerror(errno.EMFILE)))
    world.wire.advance(0.5)
    assert world.reported == []
    world.partition.report_unreadable(OSError(errno.EIO, os.strerror(errno.EIO)))
    world.wire.advance(0.5)
    assert world.reported[0] == LOST_DIRECTORY


def refuse(world: LocalFailures, code: int) -> None:
    world.partition.report_failure("write", OSError(code, os.strerror(code)))
    world.wire.settle()


def check(world: LocalFailures) -> None:
    """What the broker does every second."""
    world.member.broker.log_dir_failures.check()
    world.wire.settle()


def is_followed(world: LocalFailures) -> bool:
    return any((TOPIC, 0) in fetcher.partitions for fetcher in world.member.member.fetchers._fetchers.values())


@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EDQUOT])
def test_a_full_disk_has_others_lead_until_there_is_space(
    world: LocalFailures, code: int, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    free = 0
    monkeypatch.setattr(LogDir, "volume", lambda _: (1 << 30, free))
    partition = world.partition
    for _ in range(3):
        refuse(world, code)
    world.wire.advance(0.5)
    assert world.reported == [LOST_DIRECTORY]
    assert (world.image.leader, partition.is_leader) == (2, False)
    assert not is_followed(world)  # nothing is fetched that cannot be written
    free = 1 << 30
    check(world)
    assert world.reported == [LOST_DIRECTORY]
    world.wire.advance(PAUSE_S)
    check(world)
    world.wire.advance(0.5)
    assert world.reported == [LOST_DIRECTORY, world.own]
    assert world.partition is partition  # its log is whole
    assert is_followed(world)
    assert "1 replicas in" in caplog.text


def test_a_disk_that_is_full_again_and_again_waits_longer(
    world: LocalFailures, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(LogDir, "volume", lambda _: (1 << 30, 1 << 30))
    exhausted, waits = world.member.broker.log_dir_failures.exhausted, []
    for _ in range(8):
        began = world.wire.now
        exhausted.refused(world.log_dir, errno.ENOSPC)
        while world.log_dir in exhausted:
            world.wire.now += 1
            exhausted.check()
        waits.append(round(world.wire.now - began))
    assert waits == [5, 10, 20, 40, 60, 60, 60, 60]
    world.wire.now += 601
    exhausted.refused(world.log_dir, errno.ENOSPC)
    world.wire.now += PAUSE_S
    exhausted.check()
    assert world.log_dir not in exhausted


def test_descriptors_that_are_still_missing_after_a_second_have_others_lead(
    world: LocalFailures, monkeypatch: pytest.MonkeyPatch
) -> None:
    failures, missing = world.member.broker.log_dir_failures, False
    monkeypatch.setattr(failures.exhausted, "_has_descriptors", lambda: not missing)
    refuse(world, errno.EMFILE)
    check(world)
    assert world.reported == []  # log files were closed meanwhile
    missing = True
    refuse(world, errno.EMFILE)
    check(world)
    world.wire.advance(0.5)
    assert world.reported == [LOST_DIRECTORY]
    missing = False
    world.wire.advance(PAUSE_S)
    check(world)
    world.wire.advance(0.5)
    assert world.reported == [LOST_DIRECTORY, world.own]


def test_controllers_that_know_no_directories_are_told_nothing(
    wire: Wire, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("barnabas.broker.metadata.directory_assignments.DIRECTORIES_SINCE", 1000)
    world = LocalFailures(wire, tmp_path)
    world.create()
    world.partition.damaged("a batch is not whole")
    wire.advance(0.5)
    assert world.reported == []


def test_a_damaged_replica_that_was_moved_away_comes_back_whole(world: LocalFailures) -> None:
    """R29: what was wrong with its former log is not held against the new one."""
    world.answer_to_lost = lambda: {"isr": [1, 2]}  # the controller elects no leader, so the log is kept
    world.partition.damaged("a batch is not whole")
    world.wire.advance(0.5)
    assert world.set_aside() == []
    world.change(replicas=[2], isr=[2], leader=2, directories=[OTHERS])
    world.reported.clear()
    world.change(replicas=[1, 2], isr=[2], directories=[world.own, OTHERS])
    world.wire.advance(0.5)
    assert world.reported == []
    assert world.set_aside() == []
