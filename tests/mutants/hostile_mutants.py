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
)
