"""The runs about coordinators that move, one class for each kind of client."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from barnabas.coord.share_state.key import SharePartitionKey
from barnabas.coord.topic_names import GROUP_METADATA_TOPIC
from barnabas.wire.errors import KafkaError
from barnabas.wire.messages import metadata as md
from tests.simulation.broker.partition_model import PartitionModel
from tests.simulation.cluster.coordinator_run import CoordinatorRun, coordinator_world
from tests.simulation.cluster.links import DIRECTLY, METADATA, Leader
from tests.simulation.cluster.share_ledger import ClusterShareLedger
from tests.simulation.groups.clients import BOTH, CLASSIC, CONSUMER, GROUP, STILL_S, GroupClients, group_settings
from tests.simulation.share import clients as share
from tests.simulation.share.clients import ShareClients
from tests.simulation.transactions.clients import IN, OUT, PARTITIONS, TransactionClients

if TYPE_CHECKING:
    from barnabas.coord.groups.coordinator import GroupCoordinator
    from tests.simulation.clients.process import Process, Steps
    from tests.simulation.share.member import ShareMember, ShareSession

SHARE_HEARTBEAT, SHARE_FETCH, SHARE_ACKNOWLEDGE = 76, 78, 79
INITIALIZE_STATE, READ_STATE, WRITE_STATE = 83, 84, 85
FIND_COORDINATOR, PRODUCE = 10, 0
OFFSET_COMMIT, OFFSET_FETCH, JOIN, HEARTBEAT, LEAVE, SYNC, CONSUMER_HEARTBEAT = 8, 9, 11, 12, 13, 14, 68
INIT_PRODUCER_ID, ADD_PARTITIONS, ADD_OFFSETS, END_TXN, WRITE_MARKERS, TXN_OFFSET_COMMIT = 22, 24, 25, 26, 27, 28


class ClusterTransactions(TransactionClients, CoordinatorRun):
    """Transactions: a transaction is visible completely or not at all, and the copiers copy exactly once."""

    transactions = (5, 20)
    apis = (
        *(PRODUCE, FIND_COORDINATOR, INIT_PRODUCER_ID, ADD_PARTITIONS, ADD_PARTITIONS, ADD_OFFSETS),
        *(END_TXN, END_TXN, WRITE_MARKERS, WRITE_MARKERS, TXN_OFFSET_COMMIT, OFFSET_FETCH),
    )

    def __init__(self, name: str, *, is_verbose: bool = False) -> None:
        world = coordinator_world(name, {}, is_verbose=is_verbose)
        TransactionClients.__init__(self, world)
        CoordinatorRun.__init__(self, world, {IN: PARTITIONS, OUT: PARTITIONS})

    def start_clients(self) -> None:
        """Writers and copiers of both generations."""
        random = self.world.random
        writers = [f"writer{n}" for n in range(random.choice((1, 2, 3)))]
        copiers = [f"copier{n}" for n in range(PARTITIONS)] if random.random() < 0.7 else []
        self.begin({name: random.choice((1, 2, 2)) for name in (*writers, *copiers)}, writers, copiers)

    def is_done(self) -> bool:
        """Whether every writer is done or was killed for good."""
        return self.is_written()

    def visible(self, topic: str) -> Counter[bytes]:
        """All values of a topic under read_committed."""
        return self.visible_values(topic, lambda index, records: self.check_read(topic, index, records))

    def check_end(self) -> None:
        """Everything is written, copied and visible."""
        CoordinatorRun.check_end(self)
        self.check_visible()


class ClusterGroups(GroupClients, CoordinatorRun):
    """Groups of either protocol, or of both: one owner at a time, offsets that do not go back, copies exactly once."""

    apis = (
        *(FIND_COORDINATOR, JOIN, JOIN, SYNC, SYNC, HEARTBEAT, LEAVE, CONSUMER_HEARTBEAT, CONSUMER_HEARTBEAT),
        *(OFFSET_COMMIT, OFFSET_COMMIT, OFFSET_FETCH, TXN_OFFSET_COMMIT, END_TXN, WRITE_MARKERS),
    )
    batches = 30
    commits_may_be_late = True

    def __init__(self, name: str, *, is_verbose: bool = False) -> None:
        world = coordinator_world(name, group_settings(BOTH), is_verbose=is_verbose)
        GroupClients.__init__(self, world, world.random.choice((CLASSIC, CONSUMER, BOTH)))
        CoordinatorRun.__init__(self, world, {IN: self.partitions, OUT: self.partitions})

    def start_clients(self) -> None:
        """Members and sources."""
        image = self.world.image
        assert image is not None
        self.topic_ids = {name: image.topics[name].topic_id for name in (IN, OUT)}
        self.begin()

    def is_done(self) -> bool:
        """Whether all records are written."""
        return self.sources_are_done()

    def coordinator(self) -> GroupCoordinator | None:
        """The coordinator of the group, None while it moves."""
        broker = self.leader_of(GROUP_METADATA_TOPIC, 0)
        if broker is None:
            return None
        try:
            return broker.group_coordinators.coordinator_of(GROUP)
        except KafkaError:
            return None

    def log_end(self, partition: int) -> int:
        """The end of a partition of the input."""
        broker = self.leader_of(IN, partition)
        assert broker is not None, f"{partition} has no leader"
        return broker.partitions.get(IN, partition).log.log_end_offset

    def visible(self, topic: str) -> Counter[bytes]:
        """All values of a topic under read_committed."""
        return self.visible_values(topic, lambda _index, _found: None)

    def check_end(self) -> None:
        """Everything is processed, and the group is stable."""
        CoordinatorRun.check_end(self)
        self.check_records()

    def settle(self, seconds: float) -> None:
        """Wait until everything is as it should be, and see that it stays so."""
        super().settle(seconds)
        epoch = self.ledger.newest_epoch
        self.world.run(STILL_S)
        assert self.ledger.newest_epoch == epoch, "the group does not become stable"
        self.check_end()


class ClusterShare(ShareClients, CoordinatorRun):
    """A share group: every record is finished, and nothing that was acknowledged is delivered again."""

    apis = (
        *(SHARE_HEARTBEAT, SHARE_FETCH, SHARE_FETCH, SHARE_ACKNOWLEDGE, SHARE_ACKNOWLEDGE),
        *(INITIALIZE_STATE, READ_STATE, READ_STATE, WRITE_STATE, WRITE_STATE, END_TXN),
    )
    batches = 30
    transactions = (5, 20)

    def __init__(self, name: str, *, is_verbose: bool = False) -> None:
        world = coordinator_world(name, share.SETTINGS, is_verbose=is_verbose)
        ShareClients.__init__(self, world)
        CoordinatorRun.__init__(self, world, {share.QUEUE: self.partitions})
        self.ledger = self.observer = ClusterShareLedger(
            world.clock,
            self.limit,
            self.partitions,
            lambda index, node_id: world.links.leadership(Leader(share.QUEUE, index), node_id),
        )

    def start_clients(self) -> None:
        """Members and sources."""
        for name, value in self.configs().items():
            response = self.administer(share.group_config(name, value))
            assert response.responses[0].error_code == 0, response
        image = self.world.image
        assert image is not None
        self.topic_id = image.topics[share.QUEUE].topic_id
        self.begin()

    def next_session(self, process: Process, member: ShareMember) -> Steps[tuple[ShareSession, set[int]]]:
        """A session with one of the leaders, as the metadata of any broker has them."""
        request = md.MetadataRequest(topics=[md.MetadataRequestTopic(name=share.QUEUE)])
        response = yield from process.ask(request, METADATA)
        leaders = {}
        for topic in () if response is None else response.topics:
            leaders |= {
                partition.partition_index: partition.leader_id
                for partition in topic.partitions
                if partition.leader_id >= 0
            }
        nodes = sorted({node for index, node in leaders.items() if index in member.assigned})
        if not nodes:
            return member.session(), set()
        chosen = process.random.choice(nodes)
        return member.session(f"{DIRECTLY}{chosen}"), {
            index for index, node in leaders.items() if node == chosen and index in member.assigned
        }

    def wait_s(self) -> float:
        """How long a fetch waits for records: shortly, since a member has several leaders to ask."""
        return 0.5

    def is_done(self) -> bool:
        """Whether all records are written."""
        return self.sources_are_done()

    def check_end(self) -> None:
        """Every record is finished, for a reason."""
        CoordinatorRun.check_end(self)
        for partition in range(self.partitions):
            broker = self.leader_of(share.QUEUE, partition)
            assert broker is not None
            log = broker.partitions.get(share.QUEUE, partition).log
            live = broker.share_partitions.find(SharePartitionKey(share.GROUP, self.topic_id, partition))
            state = None if live is None else live.state
            assert not log.log_end_offset or (state is not None and state.start_offset >= log.log_end_offset), (
                f"{partition}: {log.log_end_offset} records, {state and state.runs()}"
            )
            model = PartitionModel()
            model.read(log)
            expected = set(range(log.log_end_offset)) - model.skipped(is_read_committed=self.is_read_committed)
            lost = [offset for offset in sorted(expected) if not self.ledger.is_accounted_for((partition, offset))]
            assert not lost, f"archived without a reason: {lost} of partition {partition}"
