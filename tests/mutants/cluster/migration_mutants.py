"""Bugs in assignors, regular expressions, and groups that change their protocol (G4)."""

from __future__ import annotations

from tests.mutants.mutant import Mutant

_RUNS = (
    "tests/coord/groups/consumer/test_migration_simulation.py"
    "::test_a_group_of_both_protocols_never_shares_a_partition_twice_and_settles"
)
_CASES = "tests/coord/groups/consumer/test_migration.py::"
_AGAINST_KAFKA = "tests/coord/groups/assignors/test_against_kafka.py::"
_PROPERTIES = "tests/coord/groups/assignors/test_properties.py::"
_MIGRATION = "coord/groups/consumer/migration.py"
_CLASSIC_MEMBERS = "coord/groups/consumer/classic_members.py"

MIGRATION = (
    Mutant(
        "upgrade-gives-away-what-a-member-still-has",
        _MIGRATION,
        "    if revoking:\n        consumer.put_member(",
        "    if not member.member_id:\n        consumer.put_member(",
        _CASES + "test_what_a_cooperative_member_still_has_to_give_up_is_not_given_away_by_an_upgrade",
    ),
    Mutant(
        "upgrade-keeps-the-holes-of-an-unfinished-assignment",
        _MIGRATION,
        "    if _is_whole(consumer, topics):\n",
        "    if consumer.members:\n",
        _CASES + "test_a_static_member_that_upgrades_the_group_disturbs_it_only_when_the_leader_was_not_done",
    ),
    Mutant(
        "upgrade-forgets-who-waits",
        _MIGRATION,
        "            self._rebalance.answer_join(member, join_error(member.member_id, error), result)\n",
        "",
        _CASES + "test_who_waits_for_the_classic_group_is_told_to_join_again",
    ),
    Mutant(
        "downgrade-without-rebalance-while-members-move",
        _CLASSIC_MEMBERS,
        "has_to_rebalance=not (is_settled and is_same)",
        "has_to_rebalance=not is_same",
        _CASES + "test_a_group_on_the_move_rebalances_when_its_last_consumer_member_becomes_classic",
    ),
    Mutant(
        "downgrade-forgets-its-rebalance-at-a-restart",
        _MIGRATION,
        "            value.leader = None\n",
        "            pass\n",
        _CASES + "test_when_the_last_one_of_the_consumer_protocol_leaves_the_group_is_classic_again",
    ),
    Mutant(
        "downgrade-that-failed-keeps-the-classic-group",
        _MIGRATION,
        "            self._groups[group_id] = group\n            self._timers.start(group, later)\n",
        "            self._timers.start(group, later)\n",
        _CASES + "test_a_downgrade_that_cannot_be_written_leaves_the_consumer_group_alone",
    ),
    Mutant(
        "classic-member-never-told-to-join",
        _CLASSIC_MEMBERS,
        "        if not must_join(group, member):\n",
        "        if member.epoch >= group.assignment_epoch:\n",
        _RUNS,
    ),
    Mutant(
        "thrown-out-member-keeps-its-partitions",
        _CLASSIC_MEMBERS,
        "    if owned and instance_id is None and member_id not in group.members:\n",
        "    if not topics:\n",
        _CASES + "test_a_classic_member_that_was_thrown_out_lets_go_of_what_it_had",
    ),
    Mutant(
        "migration-policy-not-heeded",
        _MIGRATION,
        "    if not config.consumer_migration_policy.allows_downgrade:\n",
        "    if config.max_size < 0:\n",
        _CASES + "test_the_policy_says_which_way_is_open",
    ),
    Mutant(
        "uniform-moves-too-much",
        "coord/groups/assignors/uniform.py",
        "        by_count = sorted(order, key=counts.__getitem__, reverse=True)\n",
        "        by_count = sorted(order, key=counts.__getitem__)\n",
        _PROPERTIES + "test_uniform_moves_as_few_partitions_as_an_even_assignment_can",
    ),
    Mutant(
        "mixed-group-not-levelled",
        "coord/groups/assignors/uniform_mixed.py",
        "        shares = self._even_shares(topic, sum(map(len, owners.values())))\n",
        "        shares = {member_id: len(mine) for member_id, mine in owners.items()}\n",
        _AGAINST_KAFKA + "test_mixed_uniform_groups_are_as_even_and_as_sticky_as_kafka_makes_them",
    ),
    Mutant(
        "share-group-leaves-members-idle",
        "coord/groups/assignors/simple.py",
        "        readers = -(-len(order) // len(partitions))\n",
        "        readers = max(1, len(order) // len(partitions))\n",
        _AGAINST_KAFKA + "test_members_of_one_subscription_get_as_many_as_kafka_gives_and_keep_no_fewer",
    ),
    Mutant(
        "expression-matches-a-part-of-a-name",
        "coord/groups/consumer/regex.py",
        "        fullmatch = compiled(regex).fullmatch\n",
        "        fullmatch = compiled(regex).search\n",
        "tests/coord/groups/consumer/test_regex.py::test_an_expression_stands_for_the_topics_whose_whole_name_it_matches",
    ),
    Mutant(
        "expression-refreshed-with-every-change-of-topics",
        "coord/groups/consumer/regex_resolution.py",
        "        if group_id in self._ended_at:\n",
        "        if False:\n",
        "tests/coord/groups/consumer/test_consumer_topics.py::TestRegularExpressions"
        "::test_are_refreshed_every_ten_seconds_at_most",
    ),
    Mutant(
        "resolved-expression-without-a-new-epoch",
        "coord/groups/consumer/regex_resolution.py",
        "        if all(resolved.topics == ",
        "        if group.regexes or all(resolved.topics == ",
        "tests/coord/groups/consumer/test_consumer_topics.py::TestRegularExpressions"
        "::test_take_in_topics_that_come_and_let_go_of_those_that_go",
    ),
)
