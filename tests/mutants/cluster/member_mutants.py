"""Bugs of a broker that follows controllers elsewhere: its metadata, its registration, its requests to them."""

from __future__ import annotations

from tests.mutants.mutant import Mutant

_OBSERVER = "tests/broker/metadata/test_observer.py"
_LIFECYCLE = "tests/broker/metadata/test_lifecycle.py"
_CHANNEL = "tests/broker/metadata/test_remote_channel.py"
_CLIENT = "tests/broker/net/test_network_client.py"
_FORWARDING = "tests/broker/metadata/test_forwarding.py"

MEMBER: list[Mutant] = [
    Mutant(
        "new-disk-not-told",
        "broker/metadata/directory_assignments.py",
        "        if log_dir is None:\n",
        "        if log_dir is None or len(self._log_dirs.dirs) == 1:\n",
        "tests/simulation/cluster/test_cluster_node.py::test_a_broker_with_a_new_disk_may_lead",
    ),
    Mutant(
        "metadata-applied-before-it-is-committed",
        "broker/metadata/log/metadata_copy.py",
        "        self.high_watermark = max(self.high_watermark, high_watermark)\n        committed",
        "        self.high_watermark = self.end_offset\n        committed",
        _OBSERVER + "::test_only_what_is_committed_is_applied",
    ),
    Mutant(
        "metadata-of-a-deposed-leader-kept",
        "broker/metadata/log/metadata_copy.py",
        "            self._fetched.pop()\n        return had_any",
        "            break\n        return had_any",
        _OBSERVER + "::test_what_another_leader_does_not_have_is_dropped",
    ),
    Mutant(
        "half-a-metadata-transaction-applied",
        "coord/cluster/metadata_log/replay.py",
        "        if image.transaction is not None or isinstance(record, m.BeginTransactionRecord):",
        "        if isinstance(record, (m.BeginTransactionRecord, m.EndTransactionRecord)):",
        _OBSERVER + "::test_a_transaction_is_applied_whole_or_not_at_all",
    ),
    Mutant(
        "damaged-metadata-taken",
        "broker/metadata/log/metadata_copy.py",
        "if batch.base_offset != self.end_offset or not batch.crc_is_valid():",
        "if batch.base_offset != self.end_offset:",
        _OBSERVER + "::test_a_damaged_batch_is_fetched_again",
    ),
    Mutant(
        "epoch-of-the-quorum-lowered",
        "broker/metadata/quorum_leader.py",
        "        if epoch < self.epoch:\n            return False\n",
        "",
        _CHANNEL + "::test_an_older_epoch_says_nothing",
    ),
    Mutant(
        "caught-up-with-a-snapshot-alone",
        "broker/metadata/observer.py",
        "self._runner.start(self._replace(outcome), self._applied, self._cannot_apply)",
        "self._runner.start(self._replace(outcome), self._taken, self._cannot_apply)",
        _OBSERVER + "::test_a_new_broker_begins_with_the_snapshot",
    ),
    Mutant(
        "unfenced-before-the-logs-are-open",
        "broker/metadata/lifecycle.py",
        "            want_fence=not self._ready_to_unfence,",
        "            want_fence=False,",
        _LIFECYCLE + "::test_it_is_fenced_until_it_has_caught_up_and_its_logs_are_open",
    ),
    Mutant(
        "unfenced-before-the-epoch-is-written",
        "broker/metadata/lifecycle.py",
        "        self._persist_epoch(epoch, lambda: self._later(0.0))",
        "        self._persist_epoch(epoch, lambda: None)\n        self._later(0.0)",
        _LIFECYCLE + "::test_the_epoch_is_written_before_the_broker_is_unfenced",
    ),
    Mutant(
        "epoch-claimed-after-a-crash-without-syncs",
        "broker/metadata/previous_epoch.py",
        "    if config[LOG_SYNC] != ALWAYS:\n        forget_epoch(files, log_dirs)\n        return\n",
        "    if config[LOG_SYNC] != ALWAYS:\n        return\n",
        _LIFECYCLE + "::test_an_epoch_of_a_run_without_sync_is_never_claimed",
    ),
    Mutant(
        "epoch-claimed-with-another-directory",
        "broker/metadata/previous_epoch.py",
        "    return epochs.pop() if len(epochs) == 1 else NO_CLAIM",
        "    return max(epochs)",
        _LIFECYCLE + "::test_nothing_is_claimed_when_a_directory_is_not_the_one_that_it_was",
    ),
    Mutant(
        "stale-broker-epoch-kept",
        "broker/metadata/lifecycle.py",
        "            self.broker_epoch = NO_EPOCH\n            if self._stopped",
        "            if self._stopped",
        _LIFECYCLE + "::test_a_stale_epoch_registers_again",
    ),
    Mutant(
        "undecodable-answers-repeated",
        "broker/metadata/remote_channel.py",
        "RETRIED: Final = RETRIED_RESPONSES | {",
        "RETRIED: Final = RETRIED_RESPONSES | {ErrorCode.UNKNOWN_SERVER_ERROR, ",
        _CHANNEL + "::test_an_answer_that_cannot_be_decoded_is_not_repeated",
    ),
    Mutant(
        "not-controller-told-to-the-client",
        "broker/metadata/remote_channel.py",
        "LEADER_ERRORS: Final = frozenset({ErrorCode.NOT_CONTROLLER, ",
        "LEADER_ERRORS: Final = frozenset({",
        _FORWARDING + "::test_not_controller_is_tried_again_until_the_time_of_the_request_is_up",
    ),
    Mutant(
        "late-answers-taken-for-the-next-requests",
        "broker/net/client/network_client.py",
        "        if header.correlation_id != request.correlation_id:",
        "        if False:",
        _CLIENT + "::test_a_response_with_another_correlation_id_is_refused",
    ),
    Mutant(
        "two-requests-in-flight",
        "broker/net/client/network_client.py",
        "        if not self._waiting or self._in_flight is not None:",
        "        if not self._waiting:",
        _CLIENT + "::test_one_request_is_in_flight",
    ),
    Mutant(
        "old-address-of-a-node-used",
        "broker/net/client/network_client.py",
        "address is not None and address != self._connected_to:",
        "address is None:",
        _CLIENT + "::test_another_address_of_a_node_makes_a_new_connection",
    ),
]
