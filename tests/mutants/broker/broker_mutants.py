"""Bugs in the order of writes, syncs and responses of the broker (R12, R13, R15, G2, L5)."""

from __future__ import annotations

from tests.mutants.mutant import Mutant

_S = "tests/broker/replicas/test_flush_policy.py::"
_B = "tests/crash/test_broker_crashes.py::test_answers_of_a_broker_hold_after_any_crash"
_ENV = {"BARNABAS_CRASH_STATES": "2000", "BARNABAS_SEED": "1"}
BROKER = (
    Mutant(
        "acknowledged-before-the-sync",
        "broker/replicas/partition.py",
        "        if offset < self.log.high_watermark and not self._awaiting.is_calling:\n",
        "        if offset < self.log.log_end_offset:\n",
        _S + "TestAlways::test_a_record_is_neither_acknowledged_nor_readable_before_its_flush",
    ),
    Mutant(
        "acknowledged-before-the-sync-and-crashed",
        "broker/replicas/partition.py",
        "        if offset < self.log.high_watermark and not self._awaiting.is_calling:\n",
        "        if offset < self.log.log_end_offset:\n",
        _B,
        _ENV,
    ),
    Mutant(
        "high-watermark-ahead-of-the-disk",
        "broker/replicas/flush/policy.py",
        "            partition.advance_own_end(min(job.offset, log.synced_offset), self._bytes_in_job)\n",
        "            partition.advance_own_end(log.log_end_offset, self._bytes_in_job)\n",
        _S + "TestAlways::test_records_appended_during_a_flush_share_the_next_one",
    ),
    Mutant(
        "high-watermark-ahead-of-the-disk-and-crashed",
        "broker/replicas/flush/policy.py",
        "            partition.advance_own_end(min(job.offset, log.synced_offset), self._bytes_in_job)\n",
        "            partition.advance_own_end(log.log_end_offset, self._bytes_in_job)\n",
        _B,
        {**_ENV, "BARNABAS_SEED": "2"},
    ),
    Mutant(
        "one-record-too-many-ahead-of-the-disk",
        "broker/replicas/flush/policy.py",
        "        if log.unflushed < self.messages:\n            partition.advance_own_end(log.log_end_offset,"
        " self.bytes_written)\n            self._set_timer()\n        else:\n            self._request",
        "        if log.unflushed <= self.messages:\n            partition.advance_own_end(log.log_end_offset,"
        " self.bytes_written)\n            self._set_timer()\n        else:\n            self._request",
        _S + "TestOtherPolicies::test_flush_messages_limits_the_acknowledged_records_that_are_not_flushed",
    ),
    Mutant(
        "offset-commit-answered-before-the-sync",
        "broker/coordinators/runtime.py",
        "        if log.high_watermark == log.log_end_offset:\n            self._finish",
        "        if True:\n            self._finish",
        _S + "TestGroups::test_a_committed_offset_is_not_acknowledged_or_fetched_before_its_flush",
    ),
    Mutant(
        "failed-sync-tried-again",
        "broker/replicas/flush/flusher.py",
        '            self._failures.take_offline(self._log_dir, "sync", failure)\n            return\n        for',
        "            self._requested |= {policy: None for policy, _ in flushes}\n        for",
        "tests/broker/replicas/test_disk_failures.py::TestFailedSync::test_is_never_retried",
    ),
    Mutant(
        "metadata-answered-before-the-sync",
        "broker/metadata/log/metadata_log.py",
        "                yield job.run\n",
        "                yield\n",
        _B,
        _ENV,
    ),
    Mutant(
        "log-start-not-persisted-before-deletion",
        "broker/replicas/log_starts.py",
        "yield from self._failures.write_checkpoint(layout.LOG_START_CHECKPOINT)\n",
        "True\n",
        _B,
        _ENV,
    ),
    Mutant(
        "api-versions-of-an-old-epoch",
        "broker/apis/metadata/api_versions.py",
        "    if encoded is None or offset != ctx.broker.image.offset:\n",
        "    if encoded is None:\n",
        "tests/broker/admin/test_features.py::test_a_feature_level_is_changed_and_reported",
    ),
    Mutant(
        "clients-wait-in-the-queue-of-a-starting-broker",
        "broker/server.py",
        "self._listen(endpoint, backlog if self.config.is_standalone else None)",
        "self._listen(endpoint, backlog)",
        "tests/cluster/failover/test_start.py::test_connections_are_refused_until_the_broker_serves",
    ),
    Mutant(
        "no-garbage-collection-after-the-start",
        "broker/server.py",
        "    gc.set_threshold(*GC_THRESHOLDS)\n    gc.enable()\n",
        "    gc.set_threshold(*GC_THRESHOLDS)\n",
        "tests/broker/server/test_start.py::test_garbage_is_collected_again_after_the_start",
    ),
    Mutant(
        "commands-imported-by-serve",
        "barnabas/cli/serve/run.py",
        "import argparse\nimport gc\n",
        "import argparse\nimport gc\nimport click\n",
        "tests/broker/server/test_start.py::test_a_start_imports_nothing_that_it_does_not_need",
    ),
)
