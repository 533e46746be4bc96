"""Bugs of coordinators on several brokers: loading, fencing, markers, requests to others (G2, G5, R16, T1, T4, T7)."""

from __future__ import annotations

from typing import Final

from tests.mutants.mutant import Mutant

_MOVES = "tests/broker/coordinators/test_coordinator_moves.py"
_SHARES = "tests/broker/share/test_share_moves.py"
_SIMULATION = "tests/simulation/test_simulation.py::test_"
_TRANSACTIONS = _SIMULATION + "transactions_are_atomic_and_complete_while_their_coordinators_move"
_GROUPS = _SIMULATION + "groups_of_both_protocols_keep_their_offsets_while_their_coordinator_moves"
_SHARE = _SIMULATION + "share_groups_finish_every_record_while_leaders_and_coordinator_move"
_DESCRIPTIONS = "tests/broker/admin/test_cluster_descriptions.py"


def _simulated(name: str, file: str, old: str, new: str, test: str, seed: int) -> Mutant:
    """A bug that the simulation of a cluster finds with this seed."""
    return Mutant(name, file, old, new, test, {"BARNABAS_SEED": str(seed), "BARNABAS_SEEDS": "3"})


COORDINATOR_MOVES: Final = (
    Mutant(
        "coordinator-stays-after-its-leadership",
        "broker/coordinators/runtime.py",
        "        shard = self._shards.pop(index, None)\n        if shard is not None:\n            logger.info",
        "        shard = self._shards.get(index)\n        if shard is None:\n            logger.info",
        _MOVES + "::TestGroups::test_a_group_goes_on_at_the_next_coordinator",
    ),
    Mutant(
        "who-waits-for-a-coordinator-that-moves-is-forgotten",
        "broker/coordinators/shard.py",
        "        release_replies(self.coordinator.unload(at), loop)\n",
        "        self.coordinator.unload(at)\n",
        _MOVES + "::TestGroups::test_who_waits_is_answered_when_the_leadership_ends",
    ),
    Mutant(
        "coordinator-of-a-follower",
        "broker/coordinators/runtime.py",
        "partition = self._services.partitions.get_leader(self.topic, index)",
        "partition = self._services.partitions.get(self.topic, index)",
        _MOVES + "::TestGroups::test_another_broker_is_not_the_coordinator",
    ),
    Mutant(
        "coordinator-writes-without-enough-replicas",
        "broker/coordinators/append.py",
        "        partition.check_in_sync_replicas()\n",
        "        pass\n",
        _MOVES + "::TestGroups::test_nothing_is_written_while_too_few_replicas_are_in_sync",
    ),
    Mutant(
        "coordinator-waits-for-followers-for-ever",
        "broker/coordinators/runtime.py",
        "self._loop.now() + self.write_timeout_s, out_of_time)",
        "self._loop.now() + 1e6, out_of_time)",
        _MOVES + "::TestFollowers::test_it_ends_with_an_error",
    ),
    Mutant(
        "coordinator-found-where-it-is-asked-for",
        "broker/apis/groups/find_coordinator.py",
        "        if node_id == broker_id:\n",
        "        if node_id == ctx.broker.node_id:\n",
        _MOVES + "::TestGroups::test_the_coordinator_is_the_leader_of_the_partition",
    ),
    Mutant(
        "marker-not-repeated-at-another-broker",
        "broker/coordinators/remote_markers.py",
        "            sent.decided([], list(sent.targets))\n",
        "            sent.decided(list(sent.targets), [])\n",
        _MOVES + "::TestTransactions::test_markers_are_repeated_until_the_broker_is_reached",
    ),
    Mutant(
        "lost-verification-taken-for-one",
        "broker/coordinators/transaction_requests.py",
        "        error = response.code\n",
        "        error = ErrorCode.NONE\n",
        _MOVES + "::TestTransactions::test_a_coordinator_that_cannot_be_asked_is_a_reason_to_try_again",
    ),
    Mutant(
        "share-partition-outlives-its-leadership",
        "broker/sharing/share_partitions.py",
        "        services.partitions.on_role_change.append(self._role_changed)\n",
        "",
        _SHARES + "::test_the_next_leader_delivers_what_was_not_acknowledged",
    ),
    Mutant(
        "later-share-write-overtakes-a-repeated-one",
        "broker/coordinators/share_states.py",
        "            waiting.append(request)\n            return\n",
        "            self._try(request, 1)\n            return\n",
        _SHARES + "::test_requests_about_one_share_partition_keep_their_order",
    ),
    Mutant(
        "fenced-broker-is-an-online-replica",
        "broker/apis/metadata/replica_view.py",
        "alive.issuperset(replicas) and self._online_directories",
        "self._online_directories",
        _DESCRIPTIONS + "::test_a_fenced_broker_is_not_listed_and_its_replicas_are_offline",
    ),
    _simulated(
        "coordinator-answers-before-it-has-read-its-log",
        "broker/coordinators/loading.py",
        "        for self.count in counts:\n            yield\n",
        "        yield\n",
        _GROUPS,
        1,
    ),
    _simulated(
        "coordinator-read-up-to-its-high-watermark",
        "broker/coordinators/replay.py",
        "    while offset < partition.log.log_end_offset:\n",
        "    while offset < partition.log.high_watermark:\n",
        _GROUPS,
        2,
    ),
    _simulated(
        "coordinator-answers-before-its-followers-have-it",
        "broker/coordinators/runtime.py",
        "        if log.high_watermark == log.log_end_offset:\n            self._finish",
        "        if log.high_watermark <= log.log_end_offset:\n            self._finish",
        _TRANSACTIONS,
        1,
    ),
    _simulated(
        "complete-before-other-brokers-have-the-markers",
        "broker/coordinators/transactions.py",
        "                remote.setdefault(partition.leader, []).append(target)\n",
        "                remote.setdefault(partition.leader, []).append(target)\n                done.append(target)\n",
        _TRANSACTIONS,
        1,
    ),
    _simulated(
        "transactions-of-the-coordinator-before-stay-prepared",
        "coord/transactions/coordinator.py",
        "        for transactional_id in self._table.unmarked:\n",
        "        for transactional_id in ():\n",
        _TRANSACTIONS,
        2,
    ),
    _simulated(
        "offsets-of-a-transaction-lost-at-a-move",
        "broker/coordinators/replay.py",
        '    coordinator.replay_pending(producer_id, key or b"", value, at, offset)\n',
        "",
        _GROUPS,
        1,
    ),
    _simulated(
        "block-of-producer-ids-given-out-twice",
        "coord/cluster/node_records.py",
        "next_producer_id=end\n",
        "next_producer_id=start\n",
        _TRANSACTIONS,
        1,
    ),
    _simulated(
        "share-partition-without-its-state-at-the-next-leader",
        "broker/sharing/live_share_partition.py",
        "saved.state_epoch, state_batches(saved.state_batches))",
        "saved.state_epoch, ())",
        _SHARE,
        1,
    ),
    Mutant(
        "late-acknowledgement-accepted-before-the-end-is-written",
        "broker/sharing/live_share_partition.py",
        "        if is_late and not change:\n",
        "        if is_late and change:\n",
        _SHARES + "::test_a_late_acknowledgement_is_accepted_once_the_end_of_the_record_is_written",
    ),
    Mutant(
        "assignment-told-though-it-is-not-committed",
        "coord/groups/classic_requests.py",
        "result.reply(ticket, response, sync_error)",
        "result.reply(ticket, response)",
        "tests/coord/groups/classic/test_sync_heartbeat_leave.py::TestSync"
        "::test_who_comes_after_the_leader_hears_that_the_assignment_is_not_committed",
    ),
)
