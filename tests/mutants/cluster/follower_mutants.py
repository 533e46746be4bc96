"""Bugs of followers: what they take over, acknowledge and truncate, and what a crash leaves of it."""

from __future__ import annotations

from tests.mutants.mutant import Mutant

_APPEND = "tests/storage/append/test_follower_append.py::"
_FETCHER = "tests/broker/replicas/test_fetcher.py::"
_DURABLE = "tests/crash/test_what_is_durable.py::"
_CLUSTER = "tests/simulation/test_simulation.py::test_a_cluster_loses_nothing_and_becomes_whole_under_faults"
_TARGET = "    return min(own_end, end_offset, log.log_end_offset)\n"
_NOT_FLUSHED = "        return policy is not None and self.partition.log.unflushed >= policy.messages\n"
FOLLOWER = (
    Mutant(
        "truncation-to-the-high-watermark",
        "broker/replicas/fetchers/truncating.py",
        _TARGET,
        "    return log.high_watermark\n",
        _FETCHER + "test_only_what_differs_is_truncated",
    ),
    Mutant(
        "truncation-to-the-high-watermark-in-a-cluster",
        "broker/replicas/fetchers/truncating.py",
        _TARGET,
        "    return log.high_watermark\n",
        "tests/simulation/cluster/test_cluster_node.py::test_a_follower_keeps_what_was_committed_before_it_was_told",
    ),
    Mutant(
        "no-truncation",
        "broker/replicas/fetchers/receiving.py",
        "    if diverging.epoch >= 0 and diverging.end_offset >= 0:\n",
        "    if False:\n",
        _FETCHER + "test_a_follower_truncates_until_both_agree",
    ),
    Mutant(
        "follower-acknowledges-before-its-flush",
        "broker/replicas/fetchers/followed.py",
        _NOT_FLUSHED,
        "        return False\n",
        _FETCHER + "test_what_is_not_flushed_is_not_acknowledged",
    ),
    Mutant(
        "follower-acknowledges-before-its-flush-in-a-cluster",
        "broker/replicas/fetchers/followed.py",
        _NOT_FLUSHED,
        "        return False\n",
        _CLUSTER,
    ),
    Mutant(
        "follower-believes-damaged-bytes",
        "storage/append/follower_append.py",
        "    if crc32c(records[at + CRC_START : at + header.size]) != header.crc:\n",
        "    if False:\n",
        _APPEND + "test_what_the_network_damages_is_refused_and_changes_nothing",
    ),
    Mutant(
        "follower-appends-offsets-that-go-back",
        "storage/append/follower_append.py",
        "    if header.base_offset < expected or header.last_offset < header.base_offset:\n",
        "    if False:\n",
        _APPEND + "test_offsets_must_not_go_back",
    ),
    Mutant(
        "follower-appends-a-part-of-a-batch",
        "wire/batches/batch_header.py",
        "        if size < HEADER_SIZE or position + size > end:\n",
        "        if size < HEADER_SIZE:\n",
        _APPEND + "test_a_part_of_a_batch_is_left_out",
    ),
    Mutant(
        "follower-takes-over-no-leader-epochs",
        "storage/append/follower_append.py",
        "            epochs.assign(header.partition_leader_epoch, header.base_offset)\n",
        "            pass\n",
        _APPEND + "test_a_follower_is_byte_equal_with_its_leader",
    ),
    Mutant(
        "recovery-cuts-at-the-gap-of-a-compacted-leader",
        "storage/recover/recovery.py",
        "        has_gaps = state.may_have_gaps or state.is_replica or is_compacted\n",
        "        has_gaps = state.may_have_gaps or is_compacted\n",
        _APPEND + "test_a_gap_of_a_compacted_leader_is_kept_over_a_crash",
    ),
    Mutant(
        "truncation-not-announced",
        "storage/local_log.py",
        "        return point if self.recovery_limit is None else min(point, self.recovery_limit)\n",
        "        return point\n",
        _FETCHER + "test_the_recovery_point_is_lowered_before_the_log_is_truncated",
    ),
    Mutant(
        "truncation-not-synced",
        "storage/recover/truncation.py",
        "            files.sync(self._file)\n",
        "            pass\n",
        _DURABLE + "test_truncated_data_does_not_reappear",
    ),
    Mutant(
        "producers-of-truncated-batches-stay",
        "storage/recover/truncation.py",
        "        log.producers = self._producers\n",
        "        pass\n",
        _APPEND + "test_a_truncation_leaves_what_was_there_before",
    ),
    Mutant(
        "truncated-epochs-stay",
        "storage/recover/truncation.py",
        "            log.leader_epochs.truncate_from_end(offset)\n",
        "            pass\n",
        _APPEND + "test_a_truncation_leaves_what_was_there_before",
    ),
    Mutant(
        "epoch-without-records-not-forgotten",
        "broker/replicas/fetchers/fetcher.py",
        "            elif not log.leader_epochs.truncate_from_end(log.log_end_offset):",
        "            else:",
        _FETCHER + "test_an_epoch_in_which_nothing_was_appended_is_forgotten",
    ),
    Mutant(
        "session-goes-on-after-its-error",
        "broker/replicas/fetchers/session.py",
        "        self._epoch = 0\n        self._updates.clear()\n",
        "        self._updates.clear()\n",
        _FETCHER + "test_an_error_of_the_session_begins_a_new_one",
    ),
    Mutant(
        "follower-spins-after-an-error",
        "broker/replicas/fetchers/followed.py",
        "        self.ready_at = now + min(self._backoff_s, longest_s)\n",
        "        self.ready_at = now + 0.001\n",
        _FETCHER + "test_an_error_of_a_partition_delays_only_this_partition",
    ),
    Mutant(
        "follower-keeps-its-own-high-watermark",
        "broker/replicas/fetchers/receiving.py",
        "        partition.follow_high_watermark(high_watermark)\n",
        "        pass\n",
        _FETCHER + "test_a_follower_becomes_equal_and_follows_the_high_watermark",
    ),
    Mutant(
        "follower-below-the-leaders-start-waits-for-ever",
        "broker/replicas/fetchers/offsets.py",
        "            then(Truncate(start, True))\n",
        "            then(Wait())\n",
        _FETCHER + "test_a_follower_below_the_leaders_start_begins_there",
    ),
    Mutant(
        "truncation-goes-on-although-the-broker-leads",
        "broker/replicas/fetchers/followed.py",
        "        return not partition.is_closed and not partition.is_leader and partition",
        "        return True or partition",
        _FETCHER + "test_a_truncation_is_given_up_when_the_broker_begins_to_lead",
    ),
    Mutant(
        "throttled-replica-fetched-all-the-same",
        "broker/replicas/fetchers/throttle.py",
        "        return self._bytes > rate * (WINDOWS - 1) * WINDOW_S\n",
        "        return False\n",
        _FETCHER + "test_throttled_replicas_wait_for_their_quota",
    ),
)
