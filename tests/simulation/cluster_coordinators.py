"""The runs about coordinators that move, one class for each kind of client."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from barnabas.coord.topic_names import GROUP_METADATA_TOPIC
from barnabas.wire.errors import KafkaError
from tests.simulation.coordinator_run import CoordinatorRun, coordinator_world
from tests.simulation.group_clients import BOTH, CLASSIC, CONSUMER, GROUP, STILL_S, GroupClients, group_settings
from tests.simulation.transaction_clients import IN, OUT, PARTITIONS, TransactionClients

if TYPE_CHECKING:
    from barnabas.coord.groups.coordinator import GroupCoordinator

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
        return self.visible_values(topic, lambda records: self.ledger.check_seen(topic, records))

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
        return self.visible_values(topic, lambda _: None)

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
