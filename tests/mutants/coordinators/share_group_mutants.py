"""Bugs in the share group coordinator and the share coordinator: fencing, snapshots, assignments (KIP-932)."""

from __future__ import annotations

from tests.mutants.mutant import Mutant

_COORDINATOR = "coord/share_state/coordinator.py"
_GROUPS = "coord/groups/share/groups.py"
_STATE = "tests/coord/share_state/test_share_coordinator.py"
_GROUP = "tests/coord/groups/share/test_share_groups.py"

SHARE_GROUPS = (
    Mutant(
        "old-leader-writes-share-state",
        _COORDINATOR,
        "    if state.leader_epoch_fence > leader_epoch:\n",
        "    if state.leader_epoch_fence > leader_epoch + 1:\n",
        f"{_STATE}::test_a_read_with_a_newer_leader_epoch_fences_older_ones",
    ),
    Mutant(
        "write-with-an-old-state-epoch",
        _COORDINATOR,
        "            if state.state_epoch > request.state_epoch:\n                raise",
        "            if state.state_epoch > request.state_epoch + 1:\n                raise",
        f"{_STATE}::test_a_newer_state_epoch_fences_writes_with_older_ones",
    ),
    Mutant(
        "share-start-goes-back",
        _COORDINATOR,
        "            start_offset = max(request.start_offset, state.start_offset)\n",
        "            start_offset = request.start_offset\n",
        f"{_STATE}::test_the_start_offset_never_decreases",
    ),
    Mutant(
        "share-log-pruned-past-the-last-snapshot",
        "coord/share_state/coordinator.py",
        "    return min((offset for offset in offsets if offset is not None), default=end_offset)\n",
        "    return max((offset for offset in offsets if offset is not None), default=end_offset)\n",
        f"{_STATE}::test_a_replay_of_the_log_equals_the_coordinator",
    ),
    Mutant(
        "snapshot-without-the-last-write",
        "coord/share_state/changes.py",
        "    merged = combine(state.batches, change.batches, change.start_offset)\n",
        "    merged = combine(state.batches, (), change.start_offset)\n",
        f"{_STATE}::test_a_snapshot_is_written_after_a_number_of_updates",
    ),
    Mutant(
        "lower-delivery-count-wins",
        "coord/share_state/batches.py",
        "new if _rank(new) > _rank(old) else old",
        "new if _rank(new) < _rank(old) else old",
        "tests/coord/share_state/test_batches.py::test_combining_equals_a_map_of_offsets",
    ),
    Mutant(
        "assigned-before-state-is-initialized",
        _GROUPS,
        "        missing = group.missing(heartbeat.subscribed_names(), self._topics)\n",
        "        missing = group.members and group.missing(heartbeat.subscribed_names(), self._topics)\n",
        f"{_GROUP}::test_a_first_member_gets_everything",
    ),
    Mutant(
        "added-partitions-begin-at-the-reset",
        _GROUPS,
        "FROM_START if topic_id in known else FROM_RESET",
        "FROM_RESET",
        f"{_GROUP}::test_state_is_initialized_with_the_groups_epoch",
    ),
    Mutant(
        "initialized-though-it-failed",
        "coord/groups/share/registry.py",
        "        done = without(minus(partitions, failed), deleted)\n",
        "        done = without(partitions, deleted)\n",
        f"{_GROUP}::test_state_that_cannot_be_initialized_fails_the_heartbeat",
    ),
    Mutant(
        "state-initialized-by-every-heartbeat",
        _GROUPS,
        "        remaining = self._registry.without_task(group.group_id, missing, at)\n",
        "        remaining = missing\n",
        f"{_GROUP}::test_state_is_initialized_once_however_many_heartbeats_wait_for_it",
    ),
    Mutant(
        "members-fenced-together-share-an-epoch",
        "coord/timers.py",
        "        while not result and (key := ",
        "        while (key := ",
        f"{_GROUP}::test_sessions_that_end_together_all_end",
    ),
    Mutant(
        "share-member-of-any-epoch",
        "coord/groups/share/member.py",
        "        if epoch not in (0, self.epoch, self.previous_epoch):\n",
        "        if epoch < 0:\n",
        f"{_GROUP}::test_an_epoch_before_the_last_is_fenced",
    ),
    Mutant(
        "share-group-deleted-with-members",
        "coord/groups/share/administration.py",
        "        group.validate_delete()  # a member may have joined in between\n",
        "",
        f"{_GROUP}::test_who_joins_while_the_group_is_deleted_keeps_it",
    ),
    Mutant(
        "topic-id-of-a-deleted-topic-kept",
        _GROUPS,
        "            if deleted:\n",
        "            if False:\n",
        f"{_GROUP}::test_topics_that_come_and_go",
    ),
    Mutant(
        "stale-member-affects-the-next-group",
        "broker/coordinators/share_coordinators.py",
        "            for listener in self.on_reset:\n",
        "            for listener in ():\n",
        "tests/broker/share/test_share_fetch.py::test_a_late_member_does_not_change_the_state_of_a_new_group_of_the_same_id",
    ),
)
