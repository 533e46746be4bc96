"""Bugs in the limits of groups, of what members hold, and of transactional ids."""

from __future__ import annotations

from tests.mutants.mutant import Mutant

_TESTS = "tests/broker/groups/test_group_limits.py::"

LIMITS = (
    Mutant(
        "groups-without-limit",
        "coord/groups/limits.py",
        "        if group is None:\n            self.check_new_group(",
        "        if False:\n            self.check_new_group(",
        _TESTS + "test_there_are_no_more_groups_than_allowed",
    ),
    Mutant(
        "simple-groups-without-limit",
        "coord/groups/group_offsets.py",
        "                self._limits.check_new_group(ErrorCode.POLICY_VIOLATION)\n",
        "",
        _TESTS + "test_there_are_no_more_groups_than_allowed",
    ),
    Mutant(
        "bytes-of-a-member-not-limited",
        "coord/groups/limits.py",
        "        if size > most:\n",
        "        if False:\n",
        _TESTS + "test_the_subscription_of_a_consumer_member_is_limited",
    ),
    Mutant(
        "bytes-of-a-group-not-added-up",
        "coord/groups/limits.py",
        "        self._at_most[group_id] = at_most + size\n",
        "        self._at_most[group_id] = 0\n",
        _TESTS + "test_a_classic_member_and_its_group_hold_no_more_than_allowed",
    ),
    Mutant(
        "bytes-of-members-that-left-still-counted",
        "coord/groups/limits.py",
        "            at_most = self._bytes_of(group_id, member_id)\n",
        "            at_most = at_most or 0\n",
        _TESTS + "test_a_classic_member_and_its_group_hold_no_more_than_allowed",
    ),
    Mutant(
        "assignments-not-limited",
        "broker/apis/groups/classic_groups.py",
        "    if request.assignments:\n",
        "    if False:\n",
        _TESTS + "test_the_assignments_of_a_leader_are_limited",
    ),
    Mutant(
        "transactional-ids-without-limit",
        "broker/coordinators/transactions.py",
        "        if sum([len(coordinator.transactions) for coordinator in self]) >= most:\n",
        "        if False:\n",
        _TESTS + "test_there_are_no_more_transactional_ids_than_allowed",
    ),
    Mutant(
        "elements-of-a-fetch-read-in-one-turn",
        "broker/apis/fetch/fetch.py",
        "        if number % PARTITIONS_OF_A_STEP == 0:\n",
        "        if False:\n",
        "tests/broker/waiting/test_parts.py::test_a_fetch_of_many_partitions_reads_them_in_steps",
    ),
)
