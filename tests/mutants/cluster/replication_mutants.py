"""Bugs on the leader's side of replication: high watermark, ISR, acknowledgements, fetches of followers."""

from __future__ import annotations

from tests.mutants.mutant import Mutant

_LEADING = "broker/replicas/leader/leading.py"
_STATE = "broker/replicas/leader/leader_state.py"
_PARTITION = "broker/replicas/partition.py"
_FETCH = "broker/apis/fetch/follower.py"
_L = "tests/broker/replicas/test_leading.py::"
_R = "tests/broker/replicas/test_replicated_requests.py::"
_LOCAL = "tests/broker/replicas/test_local_failures.py::"
_S = "tests/broker/replicas/test_leader_state.py::"
_CLUSTER = "tests/simulation/test_simulation.py::test_a_cluster_loses_nothing_and_becomes_whole_under_faults"
_MIN_ISR = "        if len(state.isr) < partition.min_in_sync:\n            return\n"
REPLICATION = (
    Mutant(
        "high-watermark-without-min-isr",
        _LEADING,
        _MIN_ISR,
        "",
        _L + "TestHighWatermark::test_it_does_not_move_while_the_isr_is_too_small",
    ),
    Mutant("high-watermark-without-min-isr-in-a-cluster", _LEADING, _MIN_ISR, "", _CLUSTER),
    Mutant(
        "high-watermark-of-the-leader-alone",
        _LEADING,
        "                least = follower.log_end_offset\n",
        "                pass\n",
        _L + "TestHighWatermark::test_it_is_the_least_end_of_the_isr",
    ),
    Mutant(
        "high-watermark-ignores-a-proposed-replica",
        _STATE,
        "        return broker_id in self.isr or (self.proposal is not None and broker_id in self.proposal.isr)\n",
        "        return broker_id in self.isr\n",
        _S + "TestIsr::test_proposed_replicas_count_at_once_and_those_to_be_removed_still_do",
    ),
    Mutant(
        "high-watermark-does-not-wait-for-who-is-about-to-join",
        _LEADING,
        "                state.is_in_maximal_isr(follower.broker_id) or self._is_about_to_join(follower, log_end)\n",
        "                state.is_in_maximal_isr(follower.broker_id)\n",
        _L + "TestHighWatermark::test_it_waits_for_a_replica_that_is_about_to_join",
    ),
    Mutant(
        "shrink-effective-before-the-controller-confirms",
        _LEADING,
        "            self._propose(tuple(broker_id for broker_id in state.isr if broker_id not in lagging))\n",
        "            self._propose(tuple(broker_id for broker_id in state.isr if broker_id not in lagging))\n"
        "            state.isr = state.proposal.isr\n            self.advance()\n",
        _L + "TestIsr::test_a_replica_that_stays_away_leaves_it",
    ),
    Mutant(
        "expand-without-the-epoch-check",
        _STATE,
        "        return self.broker_epoch is not None and self.broker_epoch in {-1, broker.epoch}\n",
        "        return self.broker_epoch is not None\n",
        _S + "TestIsr::test_who_may_join",
    ),
    Mutant(
        "repeated-expand-with-the-epoch-of-the-next-incarnation",
        "broker/replicas/leader/isr_changes.py",
        "broker_epoch=own_epoch if broker_id == self._node_id else epoch\n",
        "broker_epoch=own_epoch if broker_id == self._node_id else partition._broker_epoch_of(broker_id)\n",
        _L + "TestIsr::test_a_repeated_proposal_names_the_incarnations_that_it_was_made_for",
    ),
    Mutant(
        "expand-of-a-fenced-replica",
        _STATE,
        "        if broker is None or broker.fenced or broker.in_controlled_shutdown:\n",
        "        if broker is None or broker.in_controlled_shutdown:\n",
        _S + "TestIsr::test_who_may_join",
    ),
    Mutant(
        "expand-below-the-start-of-the-epoch",
        _STATE,
        "        return end >= high_watermark and end >= self.epoch_start_offset and follower",
        "        return end >= high_watermark and follower",
        _L + "TestIsr::test_a_replica_behind_the_start_of_the_epoch_is_not_proposed",
    ),
    Mutant(
        "expand-below-the-high-watermark",
        _STATE,
        "        return end >= high_watermark and end >= self.epoch_start_offset and follower",
        "        return end >= self.epoch_start_offset and follower",
        _L + "TestIsr::test_a_replica_behind_the_high_watermark_is_not_proposed",
    ),
    Mutant(
        "caught-up-only-at-the-end-of-now",
        _STATE,
        "            self.caught_up_at = max(self.caught_up_at, self._fetched_at)\n",
        "            pass\n",
        _L + "TestIsr::test_a_slow_follower_that_reads_on_stays",
    ),
    Mutant(
        "late-answer-of-the-controller-believed",
        _LEADING,
        "        if state.proposal is not proposal:\n            return Outcome.SETTLED  # the metadata was faster\n",
        "",
        _L + "TestIsr::test_an_answer_that_the_metadata_has_overtaken_changes_nothing",
    ),
    Mutant(
        "proposal-waits-for-metadata-for-ever",
        "broker/replicas/leader/isr_changes.py",
        "        self._late[key] = late\n        self._look_later(late.due)\n",
        "        self._late[key] = late\n",
        _L + "TestIsr::test_it_asks_again_when_the_metadata_does_not_come",
    ),
    Mutant(
        "older-metadata-believed",
        _PARTITION,
        "        if assigned.partition_epoch <= self.partition_epoch:\n",
        "        if assigned.partition_epoch < 0:\n",
        _L + "TestIsr::test_metadata_older_than_an_answer_changes_nothing",
    ),
    Mutant(
        "isr-request-not-repeated",
        "broker/replicas/leader/isr_changes.py",
        "            self._reported = code\n            self._retry()\n",
        "            self._reported = code\n",
        _L + "TestIsr::test_a_request_that_fails_is_repeated",
    ),
    Mutant(
        "leader-counts-what-it-has-not-flushed",
        _LEADING,
        "        if policy is not None:\n            policy.appended(size)\n        else:\n"
        "            self.own_end_advanced(partition.log.log_end_offset)\n",
        "        if policy is not None:\n            policy.appended(size)\n"
        "        self.own_end_advanced(partition.log.log_end_offset)\n",
        _R + "TestProduce::test_with_always_the_leader_counts_what_it_has_flushed",
    ),
    Mutant(
        "stale-leader-goes-on-waiting",
        _PARTITION,
        "        self._awaiting.fail(ErrorCode.NOT_LEADER_OR_FOLLOWER)\n",
        "",
        _R + "TestProduce::test_losing_the_leadership_fails_what_waits",
    ),
    Mutant(
        "committed-and-told-the-error-of-the-next-leader",
        "broker/replicas/leader/offset_waits.py",
        "ErrorCode.NONE if error is None or offset < self._reached else error",
        "ErrorCode.NONE if error is None else error",
        "tests/broker/waiting/test_waking.py::test_what_was_committed_is_not_told_the_error_of_what_was_not",
    ),
    Mutant(
        "clients-of-a-broker-that-is-unregistered-are-closed",
        "broker/net/client/inter_broker.py",
        "                client.disconnect_unless(address)\n",
        "                client.close() if address is None else client.disconnect_unless(address)\n",
        "tests/broker/net/test_network_client.py::test_a_client_is_good_for_a_node_that_is_registered_again",
    ),
    Mutant(
        "closed-fetch-session-stays-at-its-partitions",
        "broker/replicas/leader/fetch_sessions.py",
        "                session.watch.close()\n",
        "                pass\n",
        _L + "TestSessions::test_a_session_that_is_closed_leaves_its_partitions",
    ),
    Mutant(
        "who-waits-on-does-not-see-a-change-during-a-pass",
        "broker/event_loop/waking.py",
        "            self._is_again = True\n",
        "            pass\n",
        "tests/broker/waiting/test_waking.py::test_a_change_meanwhile_is_told_to_all_who_wait_then",
    ),
    Mutant(
        "stale-leader-serves-reads",
        _PARTITION,
        "        raise KafkaError(ErrorCode.UNKNOWN_LEADER_EPOCH)\n\n    def check_leader",
        "\n    def check_leader",
        _CLUSTER,
        {"BARNABAS_SEEDS": "200"},
    ),
    Mutant(
        "reads-above-the-high-watermark",
        "broker/apis/fetch/plan.py",
        "        return log.last_stable_offset if self.is_committed else log.high_watermark\n",
        "        return log.last_stable_offset if self.is_committed else log.log_end_offset\n",
        _CLUSTER,
    ),
    Mutant(
        "produce-waits-for-ever",
        "broker/apis/produce/response.py",
        "                code = await until(loop.timers, deadline, future, ErrorCode.REQUEST_TIMED_OUT)\n",
        "                code = await future\n",
        _R + "TestProduce::test_an_isr_that_shrinks_below_the_minimum_times_out",
    ),
    Mutant(
        "positions-kept-from-an-earlier-leadership",
        _PARTITION,
        "                self.leading = self._lead(self)\n                is_new_leader = True\n",
        "                self.leading = self._lead(self)\n                is_new_leader = True\n"
        "                for one in assigned.replicas: self.log.high_watermark = self.log.log_end_offset\n",
        _R + "TestRoles::test_a_new_leader_waits_for_fetches_of_its_own_time",
    ),
    Mutant(
        "epoch-not-known-before-its-first-record",
        _LEADING,
        "            log.leader_epochs.assign(assigned.leader_epoch, log.log_end_offset)\n",
        "",
        _L + "TestFollowers::test_a_new_epoch_without_records_is_known_to_followers_of_later_ones",
    ),
    Mutant(
        "diverging-fetch-acknowledges",
        _FETCH,
        "        if self._records_positions and data.diverging_epoch.epoch == -1:\n",
        "        if self._records_positions:\n",
        _L + "TestFollowers::test_a_log_that_diverges_is_told_where",
    ),
    Mutant(
        "fetch-of-an-older-incarnation-acknowledges",
        _LEADING,
        "broker.epoch > broker_epoch:\n",
        "broker.epoch > broker_epoch + 10:\n",
        _L + "TestFollowers::test_an_older_incarnation_is_refused",
    ),
    Mutant(
        "idle-partitions-forget-their-fetches",
        "broker/replicas/leader/follower_watch.py",
        "                follower.was_at_end(self.fetched_at)\n",
        "                pass\n",
        _L + "TestSessions::test_fetches_of_an_idle_partition_are_fetches_of_the_follower",
    ),
    Mutant(
        "idle-although-the-high-watermark-has-moved",
        _PARTITION,
        "            if self.watches:\n                self.mark_followers()\n",
        "",
        _L + "TestSessions::test_an_idle_partition_is_told_its_new_high_watermark",
    ),
    Mutant(
        "idle-although-the-isr-has-changed",
        _LEADING,
        "        state.commit_isr(assigned.isr)\n        partition.mark_followers()\n",
        "        state.commit_isr(assigned.isr)\n",
        _L + "TestSessions::test_an_idle_replica_that_left_the_isr_joins_it_again",
    ),
    Mutant(
        "latest-offset-told-before-it-is-known",
        _PARTITION,
        "        return self.leading is not None and self.leading.state.epoch_start_offset > self.log.high_watermark\n",
        "        return False\n",
        _R + "TestRoles::test_a_new_leader_tells_no_latest_offset_before_its_epoch_is_committed",
    ),
    Mutant(
        "delete-records-does-not-wait-for-replicas",
        _LEADING,
        "        if self.low_watermark >= offset:\n",
        "        if self._partition.log.log_start_offset >= offset:\n",
        _R + "TestDeleteRecords::test_it_waits_for_the_log_starts_of_all_replicas",
    ),
    Mutant(
        "damaged-replica-of-the-isr-made-anew",
        "broker/replicas/log_dirs/local_failures.py",
        " or node_id in assigned.isr:\n",
        ":\n",
        _R + "TestDamage::test_a_damaged_replica_is_filled_again_once_nobody_counts_on_it",
    ),
    Mutant(
        "damaged-replica-of-the-elr-made-anew",
        "broker/replicas/log_dirs/local_failures.py",
        "node_id not in assigned.elr or ",
        "True or ",
        _LOCAL + "test_it_is_not_given_up_while_the_elr_counts_on_it",
    ),
    Mutant(
        "new-log-of-the-elr-told-to-be-there",
        "broker/metadata/directory_assignments.py",
        "            if is_lost and not is_counted_on and self._node_id in partition.elr and self._is_new(*replica):\n",
        "            if False:\n",
        _LOCAL + "test_a_replica_of_the_elr_is_given_up_only_when_lost_and_reported_only_when_in_sync",
    ),
    Mutant(
        "replica-lost-that-nobody-replaces",
        "broker/metadata/directory_assignments.py",
        "        elif self._another_can_lead(partition):\n",
        "        else:\n",
        _LOCAL + "test_a_damaged_replica_that_nobody_replaces_goes_on",
    ),
    Mutant(
        "fetched-to-a-full-disk",
        "broker/replicas/fetchers/manager.py",
        " or self._partitions.local_failures.is_exhausted(partition):\n",
        ":\n",
        _LOCAL + "test_a_full_disk_has_others_lead_until_there_is_space",
    ),
)
