"""Bugs in what administrators and time do to groups: expiry, deletion, configs, features, loading. G2, T13, KIP-211."""

from __future__ import annotations

from tests.mutants.mutant import Mutant

_EXPIRY = "tests/coord/groups/test_expiry.py"
_LOADING = "tests/broker/test_coordinator_loading.py"

ADMINISTRATION = (
    Mutant(
        "offsets-expire-that-members-read",
        "coord/groups/expiry.py",
        "            if is_read or not _is_over(",
        "            if not _is_over(",
        _EXPIRY,
    ),
    Mutant(
        "offsets-expire-under-an-open-transaction",
        "coord/groups/expiry.py",
        "            if pending.has(tombstone.key):\n",
        "            if False:\n",
        _EXPIRY,
    ),
    Mutant(
        "retention-counts-from-the-commit-of-an-empty-group",
        "coord/groups/expiry.py",
        "        return group.state_since_ms if group.state_since_ms >= 0 else committed.commit_timestamp_ms\n",
        "        return committed.commit_timestamp_ms\n",
        _EXPIRY,
    ),
    Mutant(
        "deleted-offsets-come-back-with-a-marker",
        "coord/groups/pending_offsets.py",
        "            if record.key in self._keys:\n                self._drop(record.key)\n",
        "",
        _EXPIRY,
    ),
    Mutant(
        "offsets-of-another-topic-of-the-name-go",
        "coord/groups/offsets.py",
        "            if ZERO_UUID in (topic_id, committed.topic_id) or committed.topic_id == topic_id\n",
        "",
        _EXPIRY,
    ),
    Mutant(
        "group-configs-beyond-the-brokers-limits",
        "coord/cluster/group_configs.py",
        "        if not low <= value <= high:\n",
        "        if value < low:\n",
        "tests/broker/test_group_configs.py",
    ),
    Mutant(
        "features-go-down-unasked",
        "coord/cluster/feature_changes.py",
        "        if level < current and upgrade_type == UpgradeType.UPGRADE:\n",
        "        if False:\n",
        "tests/coord/cluster/test_feature_changes.py",
    ),
    Mutant(
        "what-happens-during-loading-is-lost",
        "broker/coordinator_runtime.py",
        "        for loading in self._loading.values():\n            loading.missed.append(event)\n",
        "",
        _LOADING,
    ),
    Mutant(
        "loading-ends-where-the-log-was-at-its-start",
        "broker/coordinator_log.py",
        "    while offset < log.log_end_offset:\n",
        "    end = log.log_end_offset\n    while offset < end:\n",
        _LOADING,
    ),
    Mutant(
        "transactions-are-told-before-they-are-safe",
        "broker/apis/transaction_admin.py",
        "    return once_committed(response, ctx.broker.transactions.uncommitted(ids))\n",
        "    return response\n",
        "tests/broker/test_transactions.py",
    ),
)
