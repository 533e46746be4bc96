"""Bugs in share partitions: locks, deliveries, acknowledgements and their durability (G5, KIP-932)."""

from __future__ import annotations

from tests.mutants.mutant import Mutant

_RUNS = "tests/simulation/test_simulation.py::test_share_groups_finish_every_record_and_lock_it_once_under_faults"
_PARTITION = "coord/share_partitions/partition.py"
_ACQUISITION = "coord/share_partitions/acquisition.py"

SHARE = (
    Mutant(
        "lock-expiry-not-counted",
        _ACQUISITION,
        "                part.delivery_count += 1\n",
        "                part.delivery_count += 0\n",
        _RUNS,
    ),
    Mutant(
        "delivery-limit-ignored",
        _PARTITION,
        "    if run.delivery_count < settings.share_delivery_count_limit:\n",
        "    if run.delivery_count > 0:\n",
        _RUNS,
    ),
    Mutant(
        "archived-one-delivery-early",
        _PARTITION,
        "    if run.delivery_count < settings.share_delivery_count_limit:\n",
        "    if run.delivery_count < settings.share_delivery_count_limit - 1:\n",
        _RUNS,
    ),
    Mutant(
        "locked-records-acquired",
        "coord/share_partitions/window.py",
        "        return self.state is RecordState.AVAILABLE and self.undo is None\n",
        "        return self.state in (RecordState.AVAILABLE, RecordState.ACQUIRED) and self.undo is None\n",
        _RUNS,
    ),
    Mutant(
        "records-acquired-before-their-release-is-written",
        "coord/share_partitions/window.py",
        "        return self.state is RecordState.AVAILABLE and self.undo is None\n",
        "        return self.state is RecordState.AVAILABLE\n",
        "tests/coord/share_partitions/test_acquiring.py::test_a_release_that_is_not_written_blocks_records_next_to_available_ones",
    ),
    Mutant(
        "acknowledged-before-the-state-is-durable",
        "broker/sharing/live_share_partition.py",
        "        self._write(state, change.batches, written)\n",
        "        then(ErrorCode.NONE)\n        then = _ignore\n        self._write(state, change.batches, written)\n",
        "tests/broker/share/test_share_fetch.py::test_an_acknowledgement_is_answered_when_its_state_is_durable",
    ),
    Mutant(
        "acknowledged-and-not-written",
        "broker/sharing/live_share_partition.py",
        "        self._write(state, change.batches, written)\n",
        "        written(ErrorCode.NONE)\n",
        _RUNS,
    ),
    Mutant(
        "locks-never-expire",
        _PARTITION,
        "                if run.state is RecordState.ACQUIRED and run.deadline <= now:\n",
        "                if run.state is RecordState.ACQUIRED and run.deadline < 0:\n",
        _RUNS,
    ),
    Mutant(
        "start-moves-past-unfinished-records",
        "coord/share_partitions/window.py",
        "            if run.undo is not None or run.state not in FINISHED:\n",
        "            if run.undo is not None or run.state is RecordState.ACQUIRED:\n",
        _RUNS,
    ),
    Mutant(
        "released-is-accepted",
        _PARTITION,
        "        if kind is AcknowledgeType.RELEASE:\n            return _state_after_release(run, settings)\n",
        "        if kind is AcknowledgeType.RELEASE:\n            return RecordState.ACKNOWLEDGED\n",
        _RUNS,
    ),
    Mutant(
        "another-member-s-records-acknowledged",
        _PARTITION,
        "            if run.member_id != member_id:\n",
        "            if run.member_id is None:\n",
        "tests/coord/share_partitions/test_acknowledging.py::test_only_records_acquired_by_the_member_can_be_acknowledged",
    ),
    Mutant(
        "aborted-records-skipped-one-wait-at-a-time",
        "broker/sharing/share_fetch_plan.py",
        "                    has_moved = True\n",
        "                    has_moved = False\n",
        "tests/broker/share/test_share_fetch.py::test_a_fetch_that_found_only_aborted_records_is_answered",
    ),
    Mutant(
        "free-locks-do-not-wake-waiting-fetches",
        "broker/sharing/live_share_partition.py",
        "        self._was_found_full = self._was_found_full or not can\n",
        "        self._was_found_full = False\n",
        "tests/broker/share/test_share_fetch.py::test_records_finished_in_a_full_partition_wake_waiting_fetches",
    ),
    Mutant(
        "cold-share-fetch-in-the-loop",
        "broker/sharing/share_fetch_plan.py",
        "min_one_batch=min_one_batch, may_wait=may_wait)",
        "min_one_batch=min_one_batch)",
        "tests/broker/share/test_cold_share_fetch.py::test_records_are_acquired_after_a_thread_has_found_them",
    ),
    Mutant(
        "records-acquired-for-a-client-that-has-gone",
        "broker/event_loop/waiting.py",
        "        work, self._coroutine, self._then = self._coroutine, None, _ignore\n",
        "        work, self._then = None, _ignore\n",
        "tests/broker/share/test_cold_share_fetch.py::test_a_client_may_disconnect_meanwhile",
    ),
)
