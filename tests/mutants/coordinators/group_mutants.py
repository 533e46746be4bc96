"""Bugs in classic and consumer groups: membership, leaders, assignments, offset commits (G1-G3)."""

from __future__ import annotations

from tests.mutants.mutant import Mutant

_S = "tests/simulation/test_simulation.py::"
_CLASSIC = _S + "test_groups_share_work_and_become_stable_under_faults"
_CONSUMER = _S + "test_consumer_groups_have_one_owner_and_become_stable_under_faults"
_SEEDS = {"BARNABAS_SEEDS": "300"}

GROUPS = (
    Mutant(
        "generation-not-checked-in-commits",
        "coord/groups/classic/group.py",
        "            raise KafkaError(ErrorCode.ILLEGAL_GENERATION)\n",
        "            pass\n",
        "tests/coord/groups/test_offsets.py::TestWhoMayCommit::test_members_of_the_generation",
    ),
    Mutant(
        "session-not-renewed-by-heartbeats",
        "coord/groups/classic/membership.py",
        "        self._rebalance.renew_session(group, member, at)\n        rebalancing = ",
        "        rebalancing = ",
        _CLASSIC,
    ),
    Mutant(
        "session-never-over",
        "coord/groups/classic/rebalance.py",
        "        if member is not None and not member.has_satisfied_heartbeat:\n",
        "        if member is not None and member.has_satisfied_heartbeat:\n",
        _CLASSIC,
    ),
    Mutant(
        "two-leaders",
        "coord/groups/classic/responses.py",
        "            leader=leader,\n",
        "            leader=member_id,\n",
        _CLASSIC,
    ),
    Mutant(
        "sessions-not-started-after-a-restart",
        "coord/groups/coordinator.py",
        "                self._rebalance.renew_session(group, member, at)\n            if group.has",
        "                pass\n            if group.has",
        _CLASSIC,
        _SEEDS,
    ),
    Mutant(
        "assignments-forgotten-at-restart",
        "coord/groups/classic/group.py",
        "            member.assignment = bytes(recorded.assignment)\n            group.add(member, None)\n",
        "            group.add(member, None)\n",
        _CLASSIC,
    ),
    Mutant(
        "unstable-offsets-shown",
        "coord/groups/group_offsets.py",
        "        if require_stable and self.pending:\n",
        "        if require_stable and not self.pending:\n",
        _CLASSIC,
        _SEEDS,
    ),
    Mutant(
        "synced-with-an-old-generation",
        "coord/groups/classic/membership.py",
        "        if request.generation_id != group.generation:\n"
        "            raise KafkaError(ErrorCode.ILLEGAL_GENERATION)\n        if _differs",
        "        if _differs",
        "tests/coord/groups/classic/test_sync_heartbeat_leave.py::TestSync::test_who_is_not_of_this_generation_is_refused",
    ),
    Mutant(
        "revoked-partition-granted-early",
        "coord/groups/consumer/heartbeat.py",
        "            return owner is None or owner in free_too\n",
        "            return owner is None or bool(free_too)\n",
        _CONSUMER,
    ),
    Mutant(
        "revoked-without-the-owner's-word",
        "coord/groups/consumer/reconciliation.py",
        "    if owned is None:\n        return True\n",
        "    if owned is None:\n        return False\n",
        _CONSUMER,
        _SEEDS,
    ),
    Mutant(
        "commit-of-an-earlier-epoch-accepted",
        "coord/groups/consumer/group.py",
        "                if since is None or epoch < since:\n",
        "                if since is not None and epoch < since:\n",
        "tests/coord/groups/consumer/test_consumer_offsets.py::TestCommits::"
        "test_of_an_earlier_epoch_for_what_the_member_has_had_since",
    ),
    Mutant(
        "member-epoch-not-checked",
        "coord/groups/modern/joining.py",
        "        if epoch < member.epoch and epoch == member.previous_epoch and self._owns_only_assigned(member)",
        "        if epoch <= member.epoch",
        "tests/coord/groups/consumer/test_heartbeat.py::TestFencing::test_an_older_epoch_is_fenced",
    ),
    Mutant(
        "consumer-session-never-over",
        "coord/groups/consumer/membership.py",
        '        if key.kind == "consumer-session":\n',
        '        if key.kind == "consumer-session" and member.speaks_classic:\n',
        _CONSUMER,
    ),
    Mutant(
        "consumer-sessions-not-started-after-a-restart",
        "coord/groups/consumer/groups.py",
        "            self._timers.start(group, at)\n",
        "",
        _CONSUMER,
        _SEEDS,
    ),
    Mutant(
        "partitions-of-a-fenced-member-kept",
        "coord/groups/consumer/records.py",
        "    types = (CURRENT_ASSIGNMENT, TARGET_ASSIGNMENT_MEMBER, MEMBER_METADATA)\n",
        "    types = (TARGET_ASSIGNMENT_MEMBER, MEMBER_METADATA)\n",
        _CONSUMER,
    ),
    Mutant(
        "members-removed-at-once-and-not-one-by-one",
        "coord/timers.py",
        "        while not result and (key := ",
        "        while (key := ",
        "tests/coord/groups/consumer/test_heartbeat.py::TestSessions::"
        "test_members_that_go_silent_together_leave_a_group_that_starts_anew_at_once",
    ),
    Mutant(
        "downgraded-members-have-their-target-at-once",
        "coord/groups/consumer/migration.py",
        "            target = {member_id: member.holds for member_id, member in staying.items()}\n",
        "            target = dict(target)\n",
        "tests/coord/groups/consumer/test_mixed_simulation.py::"
        "test_what_a_classic_member_still_reads_is_not_given_away_by_a_downgrade_and_an_upgrade_in_a_row",
    ),
    Mutant(
        "session-lost-with-an-append",
        "coord/groups/consumer/membership.py",
        "                self._timers.renew_session(group_id, member, later)\n",
        "                pass\n",
        "tests/coord/groups/consumer/test_heartbeat.py::TestSessions::"
        "test_a_member_whose_leave_cannot_be_written_has_a_session_again",
    ),
    Mutant(
        "static-member-replaced-while-it-lives",
        "coord/groups/modern/joining.py",
        "            if not has_left and not self._may_take_over(owner):",
        "            if owner.speaks_classic and not self._may_take_over(owner):",
        "tests/coord/groups/consumer/test_static_consumers.py::test_an_instance_id_in_use_is_not_released",
    ),
)
