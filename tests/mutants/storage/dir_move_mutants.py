"""Bugs of moves between log directories (KIP-113, L15)."""

from __future__ import annotations

from typing import Final

from tests.mutants.mutant import Mutant

_ALTER = "tests/broker/replicas/test_alter_log_dirs.py"
_EDGES = "tests/broker/replicas/test_dir_moves.py"
_CRASHES = "tests/crash/test_broker_crashes.py::test_moves_between_log_directories_lose_nothing_in_any_crash"
_MOVE = "broker/replicas/log_dirs/dir_move.py"
_MOVES = "broker/replicas/log_dirs/dir_moves.py"


def _crashes(name: str, file: str, old: str, new: str, *, seed: int, states: int = 100) -> Mutant:
    env = {"BARNABAS_CRASH_STATES": str(states), "BARNABAS_SEED": str(seed)}
    return Mutant(name, file, old, new, _CRASHES, env)


DIR_MOVES: Final = (
    _crashes(
        "copy-takes-over-unflushed",
        _MOVE,
        "            yield job.run\n            copy.finish_flush(job)\n",
        "            job.targets.clear()\n            yield job.run\n            copy.finish_flush(job)\n",
        seed=1,
    ),
    _crashes(
        "copy-without-its-first-segments-takes-over",
        _MOVE,
        "            if copy.log_start_offset > log.log_start_offset:",
        "            if copy.log_start_offset < 0:",
        seed=11,
    ),
    Mutant(
        "copy-does-not-follow-truncations",
        _MOVE,
        "            elif end < copy.log_end_offset:\n",
        "            elif end < 0:\n",
        _ALTER + "::test_a_truncation_is_followed",
    ),
    Mutant(
        "controller-not-told-of-a-move",
        _MOVES,
        "        if not move.future.is_assigned:\n",
        "        if not move.is_live():\n",
        _ALTER + "::test_the_metadata_has_the_new_directory",
    ),
    Mutant(
        "copy-does-not-follow-the-log-start",
        _MOVE,
        "        if start > copy.log_start_offset:\n",
        "        if start > copy.log_end_offset:\n",
        _ALTER + "::test_deleted_records_do_not_come_back",
    ),
    Mutant(
        "cancelled-move-leaves-its-copy",
        _MOVES,
        "        if not move.is_running:\n            self._delete(move.future)\n",
        "",
        _ALTER + "::test_a_move_is_cancelled_by_a_move_to_the_current_directory",
    ),
    Mutant(
        "moves-without-quota",
        _MOVES,
        "        return self._quota.is_exceeded(rate, self._loop.now())\n",
        "        return rate < 0\n",
        _ALTER + "::test_a_future_replica_is_described_with_its_lag",
    ),
    Mutant(
        "copy-not-found-by-a-start",
        "broker/start/builder.py",
        "    if broker.log_dirs.futures.directories:\n        broker.dir_moves.resume()\n",
        "",
        _ALTER + "::test_a_move_goes_on_after_a_restart",
    ),
    Mutant(
        "copy-takes-over-without-its-mark",
        _MOVE,
        "        yield lambda: mark_as_moved(copy.files, copy)\n",
        "",
        _ALTER + "::test_a_crash_right_after_the_change_of_directories_keeps_what_came_later",
    ),
    Mutant(
        "flushes-not-held-back-while-a-copy-takes-over",
        _MOVE,
        "            policy.hold()\n",
        "            pass\n",
        _EDGES + "::test_a_move_ends_while_records_are_appended",
    ),
    Mutant(
        "records-flushed-by-the-copy-are-never-acknowledged",
        "broker/replicas/flush/policy.py",
        "        self._request_flush = request_flush\n        request_flush(self)\n",
        "        self._request_flush = request_flush\n        if self.partition.log.unflushed:\n"
        "            request_flush(self)\n",
        _EDGES + "::test_records_are_acknowledged_whenever_a_move_meets_them",
    ),
    Mutant(
        "flush-begun-in-the-former-directory",
        "broker/replicas/flush/flusher.py",
        "policy.is_held or not policy.is_flushed_by(self.request):\n            return None",
        "policy.is_held:\n            return None",
        _EDGES + "::test_a_flush_that_was_requested_in_the_former_directory_is_not_begun_there",
    ),
    Mutant(
        "gaps-of-compaction-above-the-recovery-point",
        _MOVE,
        "        yield from self._flush()  # only below",
        "        # only below",
        _EDGES + "::test_a_compacted_log_is_whole_after_a_kill_at_any_step",
    ),
    Mutant(
        "copied-while-it-is-cleaned",
        _MOVES,
        "        if move.partition.log.is_cleaning:\n            return PAUSE_S",
        "        if move.is_cancelled:\n            return PAUSE_S",
        _EDGES + "::test_nothing_is_copied_while_the_log_is_cleaned",
    ),
    Mutant(
        "coordinator-reads-on-in-the-former-directory",
        "broker/coordinators/replay.py",
        "    offset, count, cost = partition.log.log_start_offset, 0, 0\n"
        "    while offset < partition.log.log_end_offset:\n"
        "        log = partition.log  #",
        "    log = partition.log\n    offset, count, cost = log.log_start_offset, 0, 0\n"
        "    while offset < log.log_end_offset:\n"
        "        #",
        _EDGES + "::test_a_coordinator_that_loads_reads_on_in_the_new_directory",
    ),
    Mutant(
        "offsets-of-a-copy-that-was-given-up",
        "storage/directories/future_logs.py",
        "        future.stale_checkpoints = stale\n",
        "",
        _EDGES + "::test_the_offsets_of_a_copy_that_was_given_up_are_not_those_of_the_next",
    ),
)
