"""Bugs in transactions: the coordinator, markers, and what readers and groups see (T3-T12, I3)."""

from __future__ import annotations

from tests.mutants.mutant import Mutant

_S = "tests/simulation/test_simulation.py::"
_RUNS = _S + "test_transactions_are_atomic_and_complete_under_faults"
_LATE = _S + "test_late_requests_do_not_affect_later_transactions_of_kip_890"
_COORDINATOR = "coord/transactions/coordinator.py"

TRANSACTIONS = (
    Mutant(
        "marker-before-prepare-is-durable",
        "broker/coordinators/transactions.py",
        "            shard.coordinator.replay(key, value, at)\n",
        "            shard.coordinator.replay(key, value, at)\n"
        "        for markers in getattr(result, 'markers', ()):\n"
        "            self._write_markers(shard, markers, sorted(markers.partitions))\n",
        _RUNS,
    ),
    Mutant(
        "late-end-accepted",
        "coord/transactions/transaction.py",
        "    if not is_known_epoch or epoch not in EPOCHS_ACCEPTED_V2[transaction.state]:\n",
        "    if epoch not in EPOCHS_ACCEPTED_V2[transaction.state]:\n",
        _LATE,
    ),
    Mutant(
        "readers-see-open-transactions",
        "storage/log.py",
        "        return min(max(unstable, self.log_start_offset), self._high_watermark)\n",
        "        return self._high_watermark\n",
        _RUNS,
    ),
    Mutant(
        "offsets-valid-before-the-marker",
        "coord/groups/coordinator.py",
        "        self._pending.hold(producer_id, offset, CoordinatorRecord(key, value))\n",
        "        self._pending.hold(producer_id, offset, CoordinatorRecord(key, value))\n"
        "        self._apply(key, value, Moment(0.0, 0))\n",
        _RUNS,
    ),
    Mutant(
        "pending-offsets-dropped-at-restart",
        "broker/coordinators/replay.py",
        '    coordinator.replay_pending(producer_id, key or b"", value, at, offset)\n',
        "",
        _RUNS,
    ),
    Mutant(
        "epoch-not-bumped-by-init-producer-id",
        _COORDINATOR,
        "            new_epoch = epoch + 1\n",
        "            new_epoch = max(epoch, 0)\n",
        _RUNS,
    ),
    Mutant(
        "epoch-not-bumped-at-the-end",
        "coord/transactions/transaction.py",
        "            producer_epoch=min(self.producer_epoch + 1, MAX_EPOCH) if bumps else self.producer_epoch,\n",
        "            producer_epoch=self.producer_epoch,\n",
        _RUNS,
    ),
    Mutant(
        "fenced-without-a-new-epoch",
        "coord/transactions/transaction.py",
        "        return self._replace(producer_epoch=min(self.producer_epoch + 1, MAX_EPOCH))\n",
        "        return self\n",
        "tests/coord/transactions/test_init_producer_id.py::test_an_open_transaction_is_aborted_first",
    ),
    Mutant(
        "complete-with-the-first-marker",
        _COORDINATOR,
        "        if not unmarked:\n            self._complete(transactional_id, at, result)\n        return result\n",
        "        self._complete(transactional_id, at, result)\n        return result\n",
        "tests/coord/transactions/test_transactions.py::test_markers_follow_the_outcome_and_complete_it",
    ),
    Mutant(
        "complete-before-the-markers-are-durable",
        "broker/coordinators/transactions.py",
        "        if offset < partition.log.high_watermark:\n            return True\n",
        "        if offset >= 0:\n            return True\n",
        _RUNS,
    ),
    Mutant(
        "markers-not-written-again-after-a-restart",
        _COORDINATOR,
        "        for transactional_id in self._table.unmarked:\n",
        "        for transactional_id in ():\n",
        _RUNS,
    ),
    Mutant(
        "transactions-do-not-time-out",
        _COORDINATOR,
        "            if transaction.start_ms + transaction.timeout_ms < at.now_ms:\n",
        "            if transaction.start_ms + transaction.timeout_ms < 0:\n",
        _RUNS,
    ),
    Mutant(
        "epochs-never-used-up",
        "coord/transactions/transaction.py",
        "    return producer_epoch >= MAX_EPOCH - 1\n",
        "    return producer_epoch < 0\n",
        _RUNS,
    ),
    Mutant(
        "write-without-its-partition-in-the-transaction",
        "broker/apis/transactions/verification.py",
        "                if not has_open_transaction(partition, producer_id, epoch):\n",
        "                if partition.index > 0 and not has_open_transaction(partition, producer_id, epoch):\n",
        _RUNS,
    ),
    Mutant(
        "room-for-transactional-ids-not-looked-for-again",
        "broker/apis/transactions/transactions.py",
        "        _check_init(ctx, request)  # again",
        "        pass  # again",
        "tests/broker/waiting/test_read_again.py::"
        "test_transactional_ids_that_were_made_while_a_block_of_producer_ids_was_allocated",
    ),
    Mutant(
        "offsets-of-a-topic-deleted-meanwhile-committed",
        "broker/apis/transactions/txn_offset_commit.py",
        "        deleted = _refuse(ctx, request, commit)  # again",
        "        deleted = None  # again",
        "tests/broker/waiting/test_read_again.py::test_a_topic_that_is_deleted_while_a_group_is_added_to_the_transaction",
    ),
    Mutant(
        "init-producer-id-leaves-a-transaction-open",
        _COORDINATOR,
        "        if transaction.state is TransactionState.ONGOING:\n            self._fence(",
        "        if transaction.state is TransactionState.DEAD:\n            self._fence(",
        _RUNS,
    ),
    Mutant(
        "abort-marker-for-a-commit",
        _COORDINATOR,
        "                prepared.state is TransactionState.PREPARE_COMMIT,\n",
        "                prepared.state is TransactionState.PREPARE_ABORT,\n",
        _RUNS,
    ),
)
