"""What the committed records of all partitions say of transactions.

A transaction goes only from a state to one that may follow (T3); a marker is written only after its outcome is
committed in `__transaction_state`, and a transaction completes only after all its markers are committed (T4), wherever
the coordinator and the partitions were led in the meantime.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from barnabas.coord.topic_names import TRANSACTION_STATE_TOPIC
from barnabas.coord.transactions import records
from barnabas.coord.transactions.states import PREDECESSORS, PREPARED, TransactionState
from barnabas.wire.batches.records import ControlRecordType, control_record_type, iter_batches, iter_records

if TYPE_CHECKING:
    from barnabas.coord.transactions.transaction import Transaction
    from tests.simulation.cluster.checks import ClusterChecks, Key

Outcome = tuple[int, int, bool]
"""Producer id, epoch, and whether it is a commit."""


class TransactionChecks:
    """The transactions of one run."""

    def __init__(self, checks: ClusterChecks) -> None:
        self._transactions: dict[str, Transaction] = {}
        self._decided: set[Outcome] = set()
        self._marked: set[tuple[Key, Outcome]] = set()
        checks.on_committed = self._committed

    def _committed(self, key: Key, data: bytes) -> None:
        for batch in iter_batches(memoryview(data)):
            if batch.is_control:
                (record,) = iter_records(batch)
                is_commit = control_record_type(record) == ControlRecordType.COMMIT
                outcome = (batch.producer_id, batch.producer_epoch, is_commit)
                assert outcome in self._decided, f"marker {outcome} in {key} without a committed outcome"
                self._marked.add((key, outcome))
            elif key[0] == TRANSACTION_STATE_TOPIC:
                for record in iter_records(batch):
                    transactional_id = records.read_key(record.key or b"")
                    assert transactional_id is not None
                    after = None if record.value is None else records.read_transaction(record.value)
                    self._step(transactional_id, self._transactions.pop(transactional_id, None), after)

    def _step(self, transactional_id: str, before: Transaction | None, after: Transaction | None) -> None:
        state = TransactionState.DEAD if after is None else after.state
        if before is not None:
            assert before.state in PREDECESSORS[state], f"{transactional_id}: {before.state} -> {state}"
            if before.state in PREPARED:
                missing = [key for key in before.partitions if (key, _outcome(before)) not in self._marked]
                assert not missing, f"{transactional_id} is complete without committed markers in {missing}"
        if after is not None:
            self._transactions[transactional_id] = after
            if after.state in PREPARED:
                self._decided.add(_outcome(after))


def _outcome(prepared: Transaction) -> Outcome:
    is_commit = prepared.state is TransactionState.PREPARE_COMMIT
    return prepared.producer_id, prepared.producer_epoch, is_commit
