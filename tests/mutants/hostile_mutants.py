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
)
