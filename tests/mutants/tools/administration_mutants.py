"""Bugs in offset expiry and deletion, configs, feature levels and loading of coordinators (G2, T13, KIP-211)."""

from __future__ import annotations

from tests.mutants.mutant import Mutant

_EXPIRY = "tests/coord/groups/test_expiry.py"
_OFFSETS = "tests/coord/groups/test_committed_offset.py"
_LOADING = "tests/broker/coordinators/test_coordinator_loading.py"

ADMINISTRATION = (
    Mutant(
        "offsets-expire-that-members-read",
        "coord/groups/expiry.py",
        "    if group.group_type == SHARE or group.is_subscribed_to(topic):\n",
        "    if group.group_type == SHARE:\n",
        _EXPIRY + "::TestOffsetsOfAGroupWithMembers::test_stay_where_the_members_read",
    ),
    Mutant(
        "offsets-expire-under-an-open-transaction",
        "coord/groups/expiry.py",
        "            if not pending.has(tombstone.key):\n",
        "            if True:\n",
        _EXPIRY + "::TestOffsetsInTransactions::test_keep_an_offset_and_its_group",
    ),
    Mutant(
        "a-large-group-expires-although-it-has-a-new-offset",
        "coord/groups/group_offsets.py",
        "                values = {partition: there[partition] for partition in looked_at if partition in there}\n",
        "                values = dict.fromkeys(looked_at, next(iter(there.values())))\n",
        _EXPIRY + "::TestManyOffsets::test_what_is_committed_between_two_parts_stays_and_so_does_its_group",
    ),
    Mutant(
        "offsets-loaded-into-what-was-removed",
        "coord/groups/coordinator.py",
        "        if not offsets or group_id not in self._groups or not is_plain(value):\n",
        "        if group_id not in self._groups or not is_plain(value):\n",
        _OFFSETS + "::test_an_offset_that_follows_the_removal_of_all_is_kept",
    ),
    Mutant(
        "offsets-loaded-without-a-group",
        "coord/groups/coordinator.py",
        "        if not offsets or group_id not in self._groups or not is_plain(value):\n",
        "        if not offsets or not is_plain(value):\n",
        _OFFSETS + "::test_an_offset_that_follows_the_removal_of_all_is_kept",
    ),
    Mutant(
        "retention-counts-from-the-commit-of-an-empty-group",
        "coord/groups/expiry.py",
        "        return group.state_since_ms if group.state_since_ms >= 0 else committed.commit_timestamp_ms\n",
        "        return committed.commit_timestamp_ms\n",
        _EXPIRY + "::TestOffsetsOfAnEmptyGroup::test_expire_after_the_last_member_has_gone",
    ),
    Mutant(
        "deleted-offsets-restored-by-a-marker",
        "coord/groups/pending_offsets.py",
        "            if record.key in self._producers:\n                self._drop(record.key)\n",
        "",
        _EXPIRY + "::TestOffsetsInTransactions::test_do_not_come_back_after_they_were_deleted",
    ),
    Mutant(
        "offsets-of-a-new-topic-with-the-name-deleted",
        "coord/groups/offsets.py",
        "                    if ZERO_UUID in (topic_id, committed_to) or committed_to == topic_id:\n",
        "                    if True:\n",
        _EXPIRY + "::TestOffsetsInTransactions::test_go_with_their_topic_and_no_other_of_its_name",
    ),
    Mutant(
        "group-configs-beyond-the-brokers-limits",
        "coord/cluster/changes/group_configs.py",
        "        if not low <= value <= high:\n",
        "        if value < low:\n",
        "tests/broker/groups/test_group_configs.py::test_invalid_group_configs_are_rejected_with_kafkas_message",
    ),
    Mutant(
        "feature-lowered-without-a-downgrade",
        "coord/cluster/changes/feature_changes.py",
        "        if level < current and upgrade_type == UpgradeType.UPGRADE:\n",
        "        if False:\n",
        "tests/coord/cluster/test_feature_changes.py::test_invalid_updates_are_refused_with_a_reason",
    ),
    Mutant(
        "events-during-loading-are-lost",
        "broker/coordinators/runtime.py",
        "        self._loading.defer(event)\n",
        "",
        _LOADING + "::test_offsets_of_a_topic_deleted_during_loading_are_deleted",
    ),
    Mutant(
        "loading-stops-at-the-initial-log-end",
        "broker/coordinators/replay.py",
        "    while offset < partition.log.log_end_offset:\n",
        "    end = partition.log.log_end_offset\n    while offset < end:\n",
        _LOADING + "::test_a_marker_written_during_loading_is_read_from_the_log",
    ),
    Mutant(
        "transactions-listed-before-they-are-durable",
        "broker/apis/transactions/transaction_admin.py",
        "await all_committed(coordinators.uncommitted(ids), ",
        "await all_committed((), ",
        "tests/broker/transactions/test_transactions.py::test_state_that_is_not_durable_is_not_reported",
    ),
)
