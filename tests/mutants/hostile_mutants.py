"""Bugs in what keeps one client from stopping the others: budgets of requests, turns, waits, disks and descriptors."""

from __future__ import annotations

from tests.mutants.mutant import Mutant

HOSTILE = (
    Mutant(
        "elements-of-nested-arrays-not-counted",
        "wire/emit.py",
        '            self.line(f"budget -= {count}")\n',
        "            pass\n",
        "tests/wire/test_element_budget.py::"
        "test_every_message_is_read_within_its_number_of_elements_and_not_within_one_less",
    ),
    Mutant(
        "unknown-tagged-fields-not-counted",
        "wire/structs.py",
        '                    reader.line(f"budget -= len({owner}.unknown_tagged_fields)")\n',
        "                    pass\n",
        "tests/wire/test_element_budget.py::test_unknown_tagged_fields_are_counted",
    ),
    Mutant(
        "budget-of-a-section-of-tagged-fields-not-returned",
        "wire/structs.py",
        '            reader.line(f"return pos{budget}")\n',
        '            reader.line("return pos, budget + count" if budget else "return pos")\n',
        "tests/wire/test_element_budget.py::"
        "test_every_message_is_read_within_its_number_of_elements_and_not_within_one_less",
    ),
    Mutant(
        "tagged-fields-of-a-header-not-counted",
        "broker/apis/dispatcher.py",
        "            budget -= len(tags)\n",
        "            pass\n",
        "tests/broker/test_request_limits.py::test_tagged_fields_of_header_and_body_count",
    ),
    Mutant(
        "budget-kept-from-request-to-request",
        "broker/apis/dispatcher.py",
        "                request = _parse_within(route, frame, position, self._max_elements, client_id)\n",
        "                request = _parse_within(route, frame, position, self._max_elements, client_id)\n"
        "                self._max_elements -= 80\n",
        "tests/broker/test_request_limits.py::test_each_request_has_its_own_budget",
    ),
    Mutant(
        "more-records-than-the-bytes-can-hold",
        "storage/batch_content.py",
        "    if count * SMALLEST_RECORD > size * MAX_EXPANSION[codec]:\n",
        "    if False:\n",
        "tests/broker/test_produce_validation.py::test_what_the_header_tells_opens_no_batch",
    ),
    Mutant(
        "bytes-after-the-last-record-accepted",
        "wire/record_check.py",
        "        if reader.pos < len(reader.data):\n",
        "        if False:\n",
        "tests/broker/test_produce_validation.py::test_nonsense_is_refused_and_leaves_no_trace",
    ),
    Mutant(
        "offset-deltas-of-a-run-not-compared",
        "wire/record_runs.py",
        "    if data[at + 1 : end + 1 : size] != second[phase : phase + count]:\n",
        "    if False:\n",
        "tests/wire/test_record_check.py::test_a_change_in_a_long_run_is_noticed",
    ),
    Mutant(
        "limit-of-a-decompressed-record-not-applied",
        "storage/batch_content.py",
        "        max_record_size=limits.max_decompressed_message_bytes if codec else UNLIMITED,\n",
        "",
        "tests/broker/test_produce_validation.py::test_the_size_of_a_decompressed_record_is_limited",
    ),
    Mutant(
        "validation-in-one-step",
        "storage/batch_content.py",
        "        if budget is not None and check.units > budget.left:\n",
        "        if False:\n",
        "tests/broker/test_produce_validation.py::test_a_large_batch_is_validated_between_the_turns",
    ),
    Mutant(
        "budget-of-each-batch-instead-of-the-request",
        "storage/batch_content.py",
        "        budget.left -= check.units\n",
        "        pass\n",
        "tests/broker/test_produce_validation.py::test_the_budget_is_that_of_a_request",
    ),
    Mutant(
        "large-record-held-in-memory",
        "wire/record_check.py",
        "(size is not None and size > STEP_BYTES and not is_whole)",
        "False",
        "tests/wire/test_record_check.py::test_steps_and_memory_are_bounded",
    ),
    Mutant(
        "acks-0-behind-a-large-batch-not-in-order",
        "broker/apis/produce_late.py",
        "    return respond_in_steps(ctx, _steps(ctx, request, response, appends, verify))\n",
        "    outcome = respond_in_steps(ctx, _steps(ctx, request, response, appends, verify))\n"
        "    return outcome if request.acks else None\n",
        "tests/broker/test_produce_validation.py::test_acks_0_stays_in_order_too",
    ),
    Mutant(
        "parked-fetch-without-guard",
        "broker/apis/delayed_fetch.py",
        "        woken = self.delayed.guard(self.partition_changed)\n",
        "        woken = self.partition_changed\n",
        "tests/broker/test_waiting_requests.py::TestDelayedResponse::test_each_exception_has_its_error",
    ),
    Mutant(
        "one-failed-reader-stops-the-others",
        "broker/replicas/partition.py",
        '                log_failure(f"Waking a reader of {self!r}", failure)\n',
        "                raise failure\n",
        "tests/broker/test_waiting_requests.py::TestReaders::test_a_reader_that_fails_leaves_the_others",
    ),
    Mutant(
        "failed-tick-leaves-no-timer",
        "broker/coordinators/runtime.py",
        "            deadline = at.now + TICK_RETRY_S\n",
        "            return\n",
        "tests/broker/test_coordinator_failures.py::TestTick::test_the_failed_event_is_handled_again",
    ),
    Mutant(
        "failed-timer-is-lost",
        "coord/groups/coordinator.py",
        "                self._timers.retry(key, at.now)\n                raise\n",
        "                raise\n",
        "tests/broker/test_coordinator_failures.py::TestTick::test_the_failed_event_is_handled_again",
    ),
    Mutant(
        "coordinator-serves-on-after-a-failed-replay",
        "broker/coordinators/runtime.py",
        "        if self._is_current(shard):\n            del self._shards",
        "        if False:\n            del self._shards",
        "tests/broker/test_coordinator_failures.py::TestReplay::test_a_group_coordinator_is_loaded_again",
    ),
    Mutant(
        "failed-loads-follow-each-other-closely",
        "broker/coordinators/loading.py",
        "RETRY_S * 2.0 ** min(count - 1, 10)",
        "RETRY_S",
        "tests/broker/test_coordinator_failures.py::TestReplay::"
        "test_a_coordinator_that_cannot_be_loaded_is_tried_again_with_growing_delays",
    ),
    Mutant(
        "marker-lost-when-its-replay-fails",
        "broker/coordinators/groups.py",
        '                self._fail(shard, f"The end of a transaction of producer {producer_id}", error)\n',
        '                logger.debug("%s", error)\n',
        "tests/broker/test_coordinator_failures.py::TestReplay::test_a_marker_whose_replay_fails_takes_effect",
    ),
    Mutant(
        "read-committed-waits-for-bytes-of-open-transactions",
        "broker/apis/delayed_fetch.py",
        " or plan.is_committed or partition.is_closed:\n",
        " or partition.is_closed:\n",
        "tests/broker/test_fetch_wakes.py::test_a_commit_of_records_that_were_there_before_the_fetch_ends_the_wait",
    ),
    Mutant(
        "read-committed-woken-at-the-high-watermark",
        "broker/apis/fetch_plan.py",
        "        return log.last_stable_offset if self.is_committed else log.high_watermark\n",
        "        return log.high_watermark\n",
        "tests/broker/test_fetch_wakes.py::test_a_commit_reads_only_the_partition_that_changed",
    ),
    Mutant(
        "wake-reads-every-partition",
        "broker/apis/delayed_fetch.py",
        "        plan.read_again(attempt, changed)\n",
        "        attempt = plan.read()\n",
        "tests/broker/test_fetch_wakes.py::test_a_wake_reads_only_the_partition_that_changed",
    ),
    Mutant(
        "parked-share-heartbeat-without-its-error",
        "coord/groups/share/groups.py",
        "            result.parked = (parked,)\n",
        "",
        "tests/coord/groups/share/test_share_groups.py::"
        "test_a_heartbeat_that_waits_and_cannot_be_written_waits_no_longer",
    ),
    Mutant(
        "repeated-groups-described-each-time",
        "broker/apis/group_admin.py",
        'parts=Parts("groups", distinct=distinct_names))',
        'parts=Parts("groups"))',
        "tests/broker/test_parts.py::test_a_name_that_is_repeated_is_answered_once",
    ),
    Mutant(
        "repeated-topics-described-each-time",
        "broker/apis/metadata.py",
        "    if request.topics:  # a topic",
        "    if False:  # a topic",
        "tests/broker/test_parts.py::test_a_topic_that_is_repeated_is_described_once",
    ),
    Mutant(
        "long-request-handled-in-one-turn",
        "broker/apis/parts.py",
        "        if index:\n            yield\n",
        "        if index < 0:\n            yield\n",
        "tests/broker/test_parts.py::test_a_part_takes_a_bounded_number_of_items_and_has_its_own_error",
    ),
    Mutant(
        "parts-of-one-topic-answered-as-two-topics",
        "broker/apis/parts.py",
        "1 + joined if number else 0",
        "joined if number else 0",
        "tests/broker/test_parts.py::test_a_long_commit_is_handled_in_parts_and_answered_in_its_order",
    ),
    Mutant(
        "existing-names-looked-at-for-each-new-topic",
        "coord/cluster/topic_changes.py",
        "        if self._metric_names is None:",
        "        if True:",
        "tests/coord/cluster/test_topics.py::test_the_existing_names_are_looked_at_once_for_all_new_topics",
    ),
    Mutant(
        "number-of-new-partitions-not-checked-first",
        "coord/cluster/local_controller.py",
        "        changes.check_number_of_partitions(request.topics)\n",
        "",
        "tests/coord/cluster/test_topics.py::"
        "test_too_many_partitions_in_all_are_refused_before_a_single_topic_is_checked",
    ),
)
