"""Random histories of a cluster: brokers come, go, crash and stop; leaders change ISRs; replicas are reassigned.

After each step the invariants of `partition_change` hold, and each change of a leader was one that is allowed. The
image that a new process builds from the records is equal.
"""

from __future__ import annotations

from contextlib import suppress

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from barnabas.coord.cluster.delta import ClusterDelta
from barnabas.coord.cluster.image import ClusterImage
from barnabas.coord.cluster.metadata_log.image_diff import image_diff_steps
from barnabas.coord.cluster.metadata_log.replay import replay_record
from barnabas.coord.cluster.partitions.partition_change import RECOVERING
from barnabas.coord.cluster.topic_image import NO_LEADER, PartitionImage
from barnabas.wire.errors import ErrorCode, KafkaError
from barnabas.wire.messages.cluster import UnregisterBrokerRequest
from barnabas.wire.messages.records.metadata_records import PartitionChangeRecord
from barnabas.wire.messages.topics import (
    AlterPartitionReassignmentsRequest,
    ElectLeadersRequest,
    ElectLeadersRequestTopicPartitions,
    ReassignablePartition,
    ReassignableTopic,
)
from barnabas.wire.schema import Message
from barnabas.wire.steps import result_of
from tests.support.controller.brokers import SESSION_S, Brokers
from tests.support.volume import how_many

IDS = (1, 2, 3, 4)
TOPICS = ("orders", "unclean")
brokers = st.sampled_from(IDS)
topics = st.sampled_from(TOPICS)
partitions = st.integers(0, 1)


class Observed(Brokers):
    """Checks every record of a partition against what the partition was before it."""

    def __init__(self, *ids: int, elr: bool) -> None:
        self.log: list[Message] = []
        self.proposed: set[int] = set()
        """The ISR that a leader asks for now: it knows that these have everything."""
        super().__init__(*ids, elr=elr)

    def apply(self, records: list[Message]) -> ClusterDelta:  # type: ignore[override]
        for record in records:
            self.log.append(record)
            if not isinstance(record, PartitionChangeRecord):
                super().apply([record])
                continue
            topic = self.image.topics_by_id[record.topic_id]
            before = topic.partitions[record.partition_id]
            super().apply([record])
            after = topic.partitions[record.partition_id]
            if after.leader not in self.proposed:
                check_change(before, after, may_be_unclean=topic.name == "unclean")
        return ClusterDelta()


def check_change(before: PartitionImage, after: PartitionImage, *, may_be_unclean: bool) -> None:
    """Epochs grow, and a new leader had everything, unless an unclean election says otherwise."""
    assert after.partition_epoch == before.partition_epoch + 1
    assert after.leader_epoch >= before.leader_epoch
    if after.leader in {before.leader, NO_LEADER}:
        return
    assert after.leader_epoch > before.leader_epoch
    if after.leader in before.isr or (after.leader in before.elr and not set(before.isr) & set(after.isr)):
        return
    assert after.isr == (after.leader,)
    assert after.leader_recovery_state == RECOVERING
    assert may_be_unclean or (after.leader,) == before.last_known_elr


class ClusterMachine(RuleBasedStateMachine):
    """The rules are the events that a controller sees."""

    @initialize(elr=st.booleans())
    def begin(self, elr: bool) -> None:
        self.cluster = Observed(*IDS, elr=elr)
        self.cluster.create("orders", [1, 2, 3], [2, 3, 4], min_insync_replicas="2")
        self.cluster.create("unclean", [3, 1], [4, 2], unclean_leader_election_enable="true")

    def is_registered(self, broker: int) -> bool:
        return broker in self.cluster.image.brokers

    @rule(broker=brokers, clean=st.booleans())
    def restart(self, broker: int, clean: bool) -> None:
        epoch = self.cluster.image.brokers[broker].epoch if self.is_registered(broker) else -1
        with suppress(KafkaError):  # its session lasts
            self.cluster.register(broker, previous_epoch=epoch if clean else -1)

    @rule(broker=brokers, fence=st.booleans(), shut_down=st.booleans(), behind=st.sampled_from([0, 0, 0, 30]))
    def heartbeat(self, broker: int, fence: bool, shut_down: bool, behind: int) -> None:
        if self.is_registered(broker):
            self.cluster.heartbeat(broker, fence=fence, shut_down=shut_down, behind=behind)

    @rule(broker=brokers)
    def wake(self, broker: int) -> None:
        if self.is_registered(broker):
            self.cluster.heartbeat(broker)

    @rule(broker=brokers)
    def lose_directory(self, broker: int) -> None:
        if self.is_registered(broker):
            self.cluster.heartbeat(broker, offline=[bytes([broker]) * 16])

    @rule(broker=brokers)
    def unregister(self, broker: int) -> None:
        if self.is_registered(broker):
            request = UnregisterBrokerRequest(broker_id=broker)
            self.cluster.commit(self.cluster.controller.unregister_broker(request))

    @rule(seconds=st.sampled_from([1.0, SESSION_S / 2, SESSION_S + 1, 301.0]))
    def time_passes(self, seconds: float) -> None:
        self.cluster.pass_time(seconds)

    @rule()
    def controller_restarts(self) -> None:
        self.cluster.new_controller()

    @rule(topic=topics, index=partitions, isr=st.sets(brokers), recovery=st.sampled_from([0, 0, 1]))
    def alter_isr(self, topic: str, index: int, isr: set[int], recovery: int) -> None:
        current = self.cluster.partition(topic, index)
        if current.leader == NO_LEADER:
            return
        self.cluster.proposed = isr
        response = self.cluster.alter(topic, sorted(isr | {current.leader}), index=index, recovery=recovery)
        self.cluster.proposed = set()
        allowed = {0, ErrorCode.INVALID_REQUEST, ErrorCode.INELIGIBLE_REPLICA, ErrorCode.NEW_LEADER_ELECTED}
        assert response.error_code in allowed
        if not response.error_code:
            now = self.cluster.partition(topic, index)
            assert (response.leader_epoch, response.partition_epoch) == (now.leader_epoch, now.partition_epoch)

    @rule(topic=topics, index=partitions, kind=st.sampled_from([0, 1]))
    def elect(self, topic: str, index: int, kind: int) -> None:
        requested = [ElectLeadersRequestTopicPartitions(topic=topic, partitions=[index])]
        is_unclean = topic == "unclean" and kind == 1
        request = ElectLeadersRequest(election_type=int(is_unclean), topic_partitions=requested if is_unclean else None)
        self.cluster.commit(self.cluster.controller.elect_leaders(request))

    @rule(topic=topics, index=partitions, replicas=st.none() | st.lists(brokers, min_size=1, max_size=3, unique=True))
    def reassign(self, topic: str, index: int, replicas: list[int] | None) -> None:
        partition = ReassignablePartition(partition_index=index, replicas=replicas)
        request = AlterPartitionReassignmentsRequest(topics=[ReassignableTopic(name=topic, partitions=[partition])])
        self.cluster.commit(self.cluster.controller.alter_partition_reassignments(request))

    @precondition(lambda self: hasattr(self, "cluster"))
    @invariant()
    def partitions_are_sound(self) -> None:
        image = self.cluster.image
        for topic in image.topics.values():
            for partition in topic.partitions.values():
                isr, elr = set(partition.isr), set(partition.elr)
                assert len(isr) == len(partition.isr)
                assert isr <= set(partition.replicas)
                assert elr <= set(partition.replicas)
                assert not isr & elr
                assert set(partition.adding_replicas) <= set(partition.replicas)
                assert set(partition.removing_replicas) <= set(partition.replicas)
                assert len(partition.directories) == len(partition.replicas)
                if partition.leader == NO_LEADER:
                    continue
                assert partition.leader in isr
                assert len(isr) == 1 or partition.leader_recovery_state != RECOVERING
                leader = image.brokers[partition.leader]
                assert not leader.fenced

    @precondition(lambda self: hasattr(self, "cluster"))
    @invariant()
    def a_partition_that_can_have_a_leader_has_one(self) -> None:
        image = self.cluster.image
        for topic in image.topics.values():
            for partition in topic.partitions.values():
                if partition.leader == NO_LEADER:
                    eligible = partition.isr or partition.elr
                    able = [
                        replica
                        for replica in eligible
                        if self.cluster.controller.leaders.is_active(replica)
                        and self.cluster.controller.leaders.has_online_directory(partition, replica)
                    ]
                    assert not able, (partition, image.brokers)

    def teardown(self) -> None:
        if hasattr(self, "cluster"):
            rebuilt = ClusterImage()
            for record in self.cluster.log:
                replay_record(rebuilt, record, ClusterDelta())
            rebuilt.offset = self.cluster.image.offset
            assert vars(rebuilt) == vars(self.cluster.image)
            delta = result_of(image_diff_steps(rebuilt, self.cluster.image))
            assert not delta.changed_partitions
            assert not delta.changed_brokers


TestCluster = ClusterMachine.TestCase
TestCluster.settings = settings(max_examples=how_many("BARNABAS_EXAMPLES", 25), stateful_step_count=40)
