"""Checks of the logs and the coordinators after every turn of the broker.

The LSO is correct and not above the high watermark (T6); a marker is written only after its outcome is committed in
`__transaction_state`, and a transaction completes only after all its markers are committed (T4); the coordinators equal
a replay of their logs; transactional offsets are valid from the marker on (T11); committed records survive a crash
(R12).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from barnabas.coord.machine import Moment
from barnabas.coord.topic_names import GROUP_METADATA_TOPIC, TRANSACTION_STATE_TOPIC
from barnabas.coord.transactions import records
from barnabas.coord.transactions.states import PREDECESSORS, PREPARED, TransactionState
from tests.simulation.broker.partition_model import Batch, Marker, PartitionModel
from tests.simulation.groups.checks import GroupLog, Replayed, plain, same_groups

if TYPE_CHECKING:
    from barnabas.broker.context import Broker
    from barnabas.broker.coordinators.runtime import CoordinatorRuntime
    from barnabas.broker.coordinators.shard import Shard
    from barnabas.broker.replicas.partition import Partition
    from barnabas.coord.groups.coordinator import GroupCoordinator
    from barnabas.coord.share_state.coordinator import ShareCoordinator
    from barnabas.coord.transactions.coordinator import TransactionCoordinator
    from barnabas.coord.transactions.transaction import Transaction
    from tests.simulation.broker.world import World

TopicPartition = tuple[str, int]


class TransactionLog:
    """The last record by transactional id in `__transaction_state`: up to the log end, and up to the high watermark."""

    def __init__(self) -> None:
        self.written: dict[str, Transaction] = {}
        self.committed: dict[str, Transaction] = {}
        self._waiting: list[tuple[int, str, Transaction | None]] = []

    def append(self, batch: Batch) -> list[tuple[str, Transaction | None, Transaction | None]]:
        """Add a batch; for each record the transactional id, the transaction before it and after it."""
        steps = []
        for record in batch.records:
            transactional_id = records.read_key(record.key or b"")
            assert transactional_id is not None
            new = None if record.value is None else records.read_transaction(record.value)
            steps.append((transactional_id, self.written.get(transactional_id), new))
            _put(self.written, transactional_id, new)
            self._waiting.append((record.offset, transactional_id, new))
        return steps

    def commit(self, high_watermark: int) -> None:
        """Records below the high watermark are committed."""
        while self._waiting and self._waiting[0][0] < high_watermark:
            _, transactional_id, new = self._waiting.pop(0)
            _put(self.committed, transactional_id, new)


def _put(where: dict[str, Transaction], transactional_id: str, new: Transaction | None) -> None:
    if new is None:
        where.pop(transactional_id, None)
    else:
        where[transactional_id] = new


class LogChecks:
    """Checks every partition after every turn."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._models: dict[TopicPartition, PartitionModel] = {}
        self._seen: dict[TopicPartition, tuple[int, int]] = {}
        self._transactions: dict[int, TransactionLog] = {}
        self._groups: dict[int, GroupLog] = {}
        self._replayed: dict[int, Replayed] = {}
        self._committed: dict[TopicPartition, list[tuple[object, ...]]] = {}
        self._checked: dict[TopicPartition, int] = {}
        """How many batches of a partition were checked."""
        node = world.node
        node.after_turn.append(self.check)
        node.at_crash.append(self._crashed)
        node.at_start.append(self._started)

    # ---- crash and start

    def _crashed(self) -> None:
        """Store the committed batches, and check that the logs restore the coordinators."""
        self.check_reloaded()
        self._check_committed()
        self._committed |= {
            topic_partition: [_same(batch) for batch in model.batches if _last(batch) < self._seen[topic_partition][1]]
            for topic_partition, model in self._models.items()
        }

    def _started(self) -> None:
        for states in (self._models, self._seen, self._transactions, self._groups, self._replayed, self._checked):
            states.clear()  # type: ignore[attr-defined]
        self.check()
        self._check_committed()

    def _check_committed(self) -> None:
        """Compare the partitions that are served with what was committed before the crash."""
        for topic_partition in self._committed.keys() & self._models.keys():
            committed = self._committed.pop(topic_partition)
            replayed = [_same(batch) for batch in self._models[topic_partition].batches[: len(committed)]]
            assert replayed == committed, f"committed records of {topic_partition} are missing after the crash"

    # ---- every turn

    def check(self) -> None:
        """Check the partitions that have changed."""
        broker = self._world.node.broker
        assert broker is not None
        changed = [partition for partition in broker.partitions if self._has_changed(partition)]
        for partition in changed:  # outcomes first, since markers are checked against them
            if partition.topic == TRANSACTION_STATE_TOPIC:
                self._check_coordinator(partition)
        for partition in changed:
            if partition.topic != TRANSACTION_STATE_TOPIC:
                self._check_data(partition)
        self._check_live(broker)

    def _has_changed(self, partition: Partition) -> bool:
        log = partition.log
        now = (log.log_end_offset, log.high_watermark)
        topic_partition = (partition.topic, partition.index)
        before = self._seen.get(topic_partition)
        if before == now:
            return False
        assert before is None or now >= before, f"{topic_partition} went back from {before} to {now}"
        self._seen[topic_partition] = now
        return True

    def _model(self, partition: Partition) -> PartitionModel:
        return self._models.setdefault((partition.topic, partition.index), PartitionModel())

    def _check_coordinator(self, partition: Partition) -> None:
        model = self._model(partition)
        log = self._transactions.setdefault(partition.index, TransactionLog())
        for new in model.read(partition.log):
            assert isinstance(new, Batch)
            for transactional_id, before, after in log.append(new):
                self._check_step(transactional_id, before, after)
        log.commit(partition.log.high_watermark)

    def _check_step(self, transactional_id: str, before: Transaction | None, after: Transaction | None) -> None:
        state = TransactionState.DEAD if after is None else after.state
        if before is not None:
            assert before.state in PREDECESSORS[state], f"{transactional_id}: {before.state} -> {state}"
        if before is None or after is None or before.state not in PREPARED:
            return
        missing = [
            topic_partition for topic_partition in before.partitions if not self._is_marked(topic_partition, before)
        ]
        assert not missing, f"{transactional_id} is complete without committed markers in {missing}"

    def _is_marked(self, topic_partition: TopicPartition, transaction: Transaction) -> bool:
        assert self._world.node.broker is not None
        partitions = self._world.node.broker.partitions
        if topic_partition in partitions.offline:
            return True  # it cannot be read now
        log = partitions.get(*topic_partition).log
        model = self._models.setdefault(topic_partition, PartitionModel())
        model.read(log)
        is_commit = transaction.state is TransactionState.PREPARE_COMMIT
        return any(
            isinstance(item, Marker)
            and (item.producer_id, item.producer_epoch) == (transaction.producer_id, transaction.producer_epoch)
            and item.is_commit is is_commit
            and item.offset < log.high_watermark
            for item in reversed(model.batches)
        )

    def _check_data(self, partition: Partition) -> None:
        log = partition.log
        topic_partition = (partition.topic, partition.index)
        model = self._model(partition)
        model.read(log)
        stable = model.stable_offset(log.high_watermark)
        assert log.last_stable_offset <= log.high_watermark, f"LSO > HW of {topic_partition}"
        assert log.last_stable_offset == stable, f"LSO of {topic_partition} is {log.last_stable_offset}, not {stable}"
        for new in model.batches[self._checked.get(topic_partition, len(model.batches)) :]:
            if isinstance(new, Marker):
                self._check_marker(topic_partition, new)
        self._checked[topic_partition] = len(model.batches)

    def _check_marker(self, topic_partition: TopicPartition, marker: Marker) -> None:
        expected_state = TransactionState.PREPARE_COMMIT if marker.is_commit else TransactionState.PREPARE_ABORT
        outcomes = [
            transactional_id
            for log in self._transactions.values()
            for transactional_id, transaction in log.committed.items()
            if (transaction.producer_id, transaction.producer_epoch) == (marker.producer_id, marker.producer_epoch)
            and transaction.state is expected_state
        ]
        assert outcomes, f"{marker} in {topic_partition} without a committed outcome"

    def _check_live(self, broker: Broker) -> None:
        """Check that the coordinators equal a replay of their logs."""
        for index, shard in broker.transaction_coordinators._shards.items():
            log = self._transactions.get(index)
            replayed = {} if log is None else log.written
            assert shard.coordinator.transactions == replayed, f"transaction coordinator {index} differs from its log"
        for index, groups in broker.group_coordinators._shards.items():
            model = self._models.get((GROUP_METADATA_TOPIC, index))
            if model is not None:
                self._check_groups(index, groups, model)

    def _check_groups(self, index: int, shard: Shard[GroupCoordinator], model: PartitionModel) -> None:
        at = Moment(self._world.clock.now, self._world.clock.now_ms)
        if index not in self._replayed:
            assert self._world.node.broker is not None
            loaded = _loaded_again(self._world.node.broker.group_coordinators, shard)
            self._replayed[index] = Replayed(loaded, model.batches)
            self._groups[index] = GroupLog()
        elif not self._replayed[index].read(model.batches, at):
            return
        log = self._groups[index]
        log.read(model.batches)
        log.check(shard.coordinator)
        log.check_owners()
        same_groups(shard.coordinator, self._replayed[index].coordinator)

    def skipped(self, topic: str, partition: int, *, is_read_committed: bool) -> set[int]:
        """The offsets of a partition that readers skip."""
        model = self._models.get((topic, partition), PartitionModel())
        return model.skipped(is_read_committed=is_read_committed)

    def check_reloaded(self) -> None:
        """Check that coordinators loaded from the logs equal the live ones."""
        broker = self._world.node.broker
        assert broker is not None
        runtimes = (
            (broker.group_coordinators, same_groups),
            (broker.transaction_coordinators, same_transactions),
            (broker.share_coordinators, same_share_states),
        )
        for runtime, check in runtimes:
            for shard in runtime._shards.values():
                check(shard.coordinator, _loaded_again(runtime, shard))


def _loaded_again(runtime: CoordinatorRuntime[Any], shard: Shard[Any]) -> Any:
    """A coordinator loaded from the log of a live one."""
    loading = runtime._loading_of(shard.partition)
    for _ in loading.steps():
        pass
    return loading.coordinator


def same_transactions(live: TransactionCoordinator, loaded: TransactionCoordinator) -> None:
    """Check that two transaction coordinators have equal transactions."""
    assert live.transactions == loaded.transactions, "the transaction coordinator differs from its log"


def same_share_states(live: ShareCoordinator, loaded: ShareCoordinator) -> None:
    """Check that two share coordinators have equal states."""
    here, there = (
        {key: plain(state) for key, state in states_of_side.states.items()} for states_of_side in (live, loaded)
    )
    assert here == there, "the share coordinator differs from its log"


def _last(batch: Batch | Marker) -> int:
    return batch.offset if isinstance(batch, Marker) else batch.last_offset


def _same(batch: Batch | Marker) -> tuple[object, ...]:
    return batch if isinstance(batch, Marker) else batch.same()
