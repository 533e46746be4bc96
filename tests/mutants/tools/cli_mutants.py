"""Planted bugs of the command line."""

from __future__ import annotations

from tests.mutants.mutant import Mutant

_TOPICS = "tests/cli/admin/test_topic_administration.py"

CLI = (
    Mutant(
        "patterns-delete-topics-without-confirmation",
        "barnabas/cli/options/patterns.py",
        "    if not (is_terminal(sys.stdin) and is_terminal(sys.stderr)):\n",
        "    if False:\n",
        _TOPICS + "::test_patterns_describe_alter_and_delete",
    ),
    Mutant(
        "trim-beyond-the-end-deletes-everything",
        "barnabas/cli/topic/trim.py",
        "        if offset > ends[name, index]:\n",
        "        if False:\n",
        _TOPICS + "::test_trim_beyond_the_end_deletes_nothing",
    ),
    Mutant(
        "topics-deleted-before-all-names-are-checked",
        "barnabas/cli/topic/changes.py",
        "    topics = describe_topics(cluster, existing)  # reports a wrong name before anything is deleted\n",
        "    topics = []\n",
        _TOPICS + "::test_nothing_is_deleted_when_one_name_is_wrong",
    ),
    Mutant(
        "regular-expressions-match-parts-of-names",
        "barnabas/cli/options/patterns.py",
        "compiled.fullmatch(name.encode())",
        "compiled.match(name.encode())",
        _TOPICS + "::test_lists_match_globs_and_regular_expressions",
    ),
    Mutant(
        "transaction-of-a-living-coordinator-aborted-in-one-partition",
        "barnabas/client/admin/transactions.py",
        "        if which in transaction_partitions(cluster, transaction.transactional_id):\n",
        "        if False:\n",
        "tests/cli/admin/test_txn_commands.py::test_a_transaction_is_listed_described_and_aborted",
    ),
    Mutant(
        "transactions-of-a-coordinator-hang",
        "barnabas/client/admin/transactions.py",
        "        if (transaction.topic, transaction.partition) not in held"
        '.get(transaction.transactional_id or "", ())\n',
        "",
        "tests/cli/admin/test_txn_commands.py::test_a_transaction_is_listed_described_and_aborted",
    ),
    Mutant(
        "offline-partitions-are-healthy",
        "barnabas/client/admin/cluster.py",
        "    return partition.leader_id < 0\n",
        "    return False\n",
        "tests/cli/admin/test_cluster_commands.py::test_problems_are_listed_and_exit_code_1",
    ),
    Mutant(
        "an-export-of-offsets-changes-them",
        "barnabas/cli/group/seek.py",
        "    if not (dry_run or export):\n",
        "    if not dry_run:\n",
        "tests/cli/admin/test_group_seek.py::test_export_and_import",
    ),
    Mutant(
        "shift-counts-from-the-start-of-the-partition",
        "barnabas/client/groups/seek.py",
        'OffsetSpec("offset", committed[name, index] + goal.shift)',
        'OffsetSpec("offset", goal.shift)',
        "tests/cli/admin/test_group_seek.py::test_ways_to_say_where_to",
    ),
    Mutant(
        "no-similar-name-for-a-misspelt-group",
        "barnabas/cli/connect/command_cluster.py",
        '        if kind in ("group", "share group"):\n',
        "        if False:\n",
        "tests/cli/admin/test_group_views.py::test_lists_and_deletion_take_patterns",
    ),
    Mutant(
        "a-silent-server-uses-up-the-time-of-the-others",
        "barnabas/client/cluster.py",
        "                return self._open(host, port, now + share)\n",
        "                return self._open(host, port, deadline)\n",
        "tests/cli/general/test_command_cluster.py::test_a_server_that_never_answers_leaves_time_for_the_next",
    ),
    Mutant(
        "an-offline-partition-hides-its-topic",
        "barnabas/client/cluster.py",
        "        leaders = self.topic(name, deadline, partitions=[index]).leaders\n",
        "        leaders = self.topic(name, deadline).leaders\n",
        "tests/cli/admin/test_cluster_commands.py::test_a_topic_with_an_offline_partition_is_described",
    ),
)
