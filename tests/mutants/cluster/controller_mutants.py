"""Bugs in the controller of a cluster: elections, eligible replicas, ISR changes, sessions, placement."""

from __future__ import annotations

from tests.mutants.mutant import Mutant

_CHANGE = "coord/cluster/partitions/partition_change.py"
_CHANGES = "tests/coord/cluster/test_partition_change.py::test_changes"
_LIFECYCLE = "tests/coord/cluster/test_broker_lifecycle.py::"
_ALTER = "tests/coord/cluster/test_alter_partition.py::"
_SNAPSHOTS = "tests/broker/metadata/test_snapshot_schedule.py::"
_EVENTS = "tests/simulation/cluster/test_cluster_node.py::"
CONTROLLER = (
    Mutant(
        "unclean-election-without-the-config",
        _CHANGE,
        "        if self.election is Election.UNCLEAN:\n",
        "        if self.election is not Election.PREFERRED:\n",
        _CHANGES,
    ),
    Mutant(
        "unclean-leader-not-recovering",
        _CHANGE,
        "            self.recovery_state = RECOVERING\n",
        "            pass\n",
        _CHANGES,
    ),
    Mutant(
        "unclean-election-keeps-the-isr",
        _CHANGE,
        "            record.isr = [leader]\n",
        "            pass\n",
        _CHANGES,
    ),
    Mutant(
        "eligible-replicas-while-the-isr-is-large-enough",
        _CHANGE,
        "        if len(self.isr) >= self._min_isr:\n",
        "        if len(self.isr) > self._min_isr:\n",
        _CHANGES,
    ),
    Mutant(
        "replica-that-lost-its-log-stays-eligible",
        _CHANGE,
        "        self._elr = sorted(candidates - set(self.isr) - set(self.unclean_shutdown))\n",
        "        self._elr = sorted(candidates - set(self.isr))\n",
        _LIFECYCLE + "test_unclean_replicas_leave_the_elr_until_the_last_known_leader_recovers",
    ),
    Mutant(
        "last-known-leader-before-the-eligible-ones",
        _CHANGE,
        "not self._elr and not self.isr and len(known)",
        "not self.isr and len(known)",
        _CHANGES,
    ),
    Mutant(
        "reassignment-ends-before-the-new-replicas-are-in-sync",
        _CHANGE,
        "        if isr and replicas and set(needed) <= set(isr):\n",
        "        if isr and replicas:\n",
        "tests/coord/cluster/test_reassignment.py::test_a_reassignment_ends_when_all_new_replicas_are_in_sync",
    ),
    Mutant(
        "removed-replicas-without-a-new-leader-epoch",
        _CHANGE,
        "            self._record.leader = self._old.leader\n\n    def _bump_for_smaller_isr",
        "            pass\n\n    def _bump_for_smaller_isr",
        _CHANGES,
    ),
    Mutant(
        "isr-with-an-old-incarnation",
        "coord/cluster/partitions/alter_partition.py",
        "    return changes.is_active(state.broker_id) and state.broker_epoch in {\n",
        "    return changes.is_active(state.broker_id) or state.broker_epoch in {\n",
        _ALTER + "test_checks",
    ),
    Mutant(
        "expand-without-the-epoch-check-at-the-controller",
        "coord/cluster/partitions/alter_partition.py",
        "    return changes.is_active(state.broker_id) and state.broker_epoch in {\n"
        "        ANY_EPOCH,\n        changes.image.brokers[state.broker_id].epoch,\n    }\n",
        "    return changes.is_active(state.broker_id)\n",
        _EVENTS + "test_a_replica_that_has_lost_everything_does_not_join_as_its_earlier_incarnation",
    ),
    Mutant(
        "isr-of-an-old-partition-epoch",
        "coord/cluster/partitions/alter_partition.py",
        "    if data.partition_epoch < partition.partition_epoch:\n",
        "    if data.partition_epoch < 0:\n",
        _ALTER + "test_a_repeated_request_has_an_old_partition_epoch",
    ),
    Mutant(
        "isr-from-a-broker-that-does-not-lead",
        "coord/cluster/partitions/alter_partition.py",
        "    if broker_id != partition.leader:\n",
        "    if broker_id not in partition.replicas:\n",
        _ALTER + "test_checks",
    ),
    Mutant(
        "second-incarnation-beside-a-living-one",
        "coord/cluster/brokers/broker_registration.py",
        "    if is_other and has_session:\n",
        "    if is_other and not has_session:\n",
        _LIFECYCLE + "test_a_second_incarnation_waits_for_the_end_of_the_session",
    ),
    Mutant(
        "unclean-restart-taken-for-a-clean-one",
        "coord/cluster/brokers/broker_registration.py",
        "request.previous_broker_epoch == last_epoch\n",
        "request.previous_broker_epoch <= last_epoch\n",
        _LIFECYCLE + "test_unclean_replicas_leave_the_elr_until_the_last_known_leader_recovers",
    ),
    Mutant(
        "shutdown-before-the-others-know",
        "coord/cluster/brokers/broker_heartbeat.py",
        "    done = others_know and not has_leaderships\n",
        "    done = not has_leaderships\n",
        _LIFECYCLE + "test_a_controlled_shutdown_moves_leaders_and_waits_for_the_others",
    ),
    Mutant(
        "broker-unfenced-before-it-has-read-its-registration",
        "coord/cluster/cluster_controller.py",
        "next_offset + len(records) - 1, at.now, fenced=fenced)\n",
        "-1, at.now, fenced=fenced)\n",
        _LIFECYCLE + "test_a_broker_is_unfenced_when_it_has_read_its_registration",
    ),
    Mutant(
        "brokers-fenced-for-the-controllers-absence",
        "coord/cluster/brokers/broker_sessions.py",
        "        if first is None or now - first < ABSENCE_S:\n",
        "        if first is None or now - first < 1000:\n",
        _LIFECYCLE + "test_a_controller_that_was_stopped_blames_no_broker",
    ),
    Mutant(
        "replica-on-a-lost-directory-leads",
        "coord/cluster/partitions/leader_changes.py",
        "    return directory != LOST_DIRECTORY and (not online or directory in online)\n",
        "    return True\n",
        "tests/coord/cluster/test_reassignment.py::test_replicas_are_assigned_to_directories",
    ),
    Mutant(
        "fenced-broker-gets-leaders",
        "coord/cluster/changes/placement.py",
        "        self._leaders, self._led = list(self.live.brokers), start\n",
        "        self._leaders, self._led = self.live.brokers + self.fenced.brokers, start\n",
        "tests/coord/cluster/test_placement.py::test_fenced_brokers_never_lead_and_racks_share",
    ),
    Mutant(
        "elr-outlives-a-change-of-min-isr",
        "coord/cluster/partitions/elr_changes.py",
        '        return (yield from _end(image.topics.values(), ""))\n',
        "        return []\n",
        "tests/coord/cluster/test_elr.py::test_another_min_isr_ends_the_elr",
    ),
    Mutant(
        "second-eligible-leader-after-acknowledgements-of-one",
        _CHANGE,
        "            is_enough = self._min_isr <= 1\n",
        "            is_enough = False\n",
        "tests/coord/cluster/test_elr.py::test_a_partition_without_an_isr_keeps_its_elr",
    ),
    Mutant(
        "no-snapshot-after-the-last-change",
        "broker/metadata/controller.py",
        "            self._plan_snapshot()\n            yield from self.loader.publish(delta)\n",
        "            yield from self.loader.publish(delta)\n",
        _SNAPSHOTS + "test_a_single_node_writes_one_when_nothing_more_happens",
    ),
    Mutant(
        "no-snapshot-by-time-after-one-by-size",
        "broker/metadata/controller.py",
        "        self._plan_snapshot(self._loop.now() + SNAPSHOT_RETRY_S)\n",
        "        pass\n",
        _SNAPSHOTS + "test_the_time_counts_from_a_snapshot_that_was_written_because_of_the_size",
    ),
    Mutant(
        "snapshots-written-without-new-records",
        "broker/metadata/log/snapshot_schedule.py",
        "        if not self.bytes or not self._interval_s:\n",
        "        if not self._interval_s:\n",
        _SNAPSHOTS + "TestSchedule",
    ),
    Mutant(
        "failed-snapshot-tried-again-at-once",
        "broker/metadata/log/snapshot_schedule.py",
        "        self._not_before = now + RETRY_S\n",
        "        pass\n",
        _SNAPSHOTS + "TestSchedule",
    ),
    Mutant(
        "snapshot-of-what-no-controller-has-confirmed",
        "broker/metadata/log/metadata_copy.py",
        "        has_more = image.offset + 1 > self._snapshot_end and not image.is_in_transaction\n",
        "        has_more = True\n",
        _SNAPSHOTS + "TestFollower",
    ),
)
