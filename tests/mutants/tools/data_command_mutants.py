"""Planted bugs of produce, consume, cat and perf."""

from __future__ import annotations

from tests.mutants.mutant import Mutant

_CONSUME = "tests/cli/records/test_consume.py::"
_GROUP = "tests/cli/records/test_consume_group.py::"
_CAT = "tests/cli/records/test_cat.py::"
_PRODUCE = "tests/cli/records/test_produce.py::"

DATA_COMMANDS = (
    Mutant(
        "aborted-records-are-read",
        "barnabas/client/reader.py",
        "            yield batch, True\n",
        "            yield batch, False\n",
        _CONSUME + "test_isolation",
    ),
    Mutant(
        "offsets-beyond-the-end-moved-silently",
        "barnabas/client/positions.py",
        '        if spec.kind == "offset" and offsets[partition] != offset:\n',
        "        if False:\n",
        _CONSUME + "test_offset_outside_is_moved_and_said",
    ),
    Mutant(
        "text-of-records-as-format-string",
        "barnabas/client/records/expression.py",
        "    if isinstance(dividend, str):\n",
        "    if False:\n",
        _CONSUME + "test_expressions",
    ),
    Mutant(
        "member-does-not-leave",
        "barnabas/client/groups/consumer.py",
        "            self.member.leave()\n",
        "            pass\n",
        _GROUP + "test_only_what_was_printed_is_committed",
    ),
    Mutant(
        "undelivered-records-are-committed",
        "barnabas/cli/records/consume_run.py",
        "commit=not isinstance(error, BrokenPipeError)",
        "commit=True",
        _GROUP + "test_it_leaves_when_the_reader_of_its_output_is_gone",
    ),
    Mutant(
        "no-commit-before-a-rebalance",
        "barnabas/client/groups/consumer.py",
        "        if self.reader.positions:\n            self._commit()\n",
        "        if self.reader.positions:\n",
        _GROUP + "test_it_shares_with_librdkafka_and_takes_over",
    ),
    Mutant(
        "records-in-doubt-counted-as-complete",
        "barnabas/client/producer.py",
        "                    complete = min(complete, batch.order)\n",
        "",
        _PRODUCE + "test_outcome_of_records_without_an_answer",
    ),
    Mutant(
        "failed-input-commits-its-transaction",
        "barnabas/client/transaction.py",
        "            committed=commit,\n",
        "            committed=True,\n",
        _PRODUCE + "test_transaction_is_all_or_nothing",
    ),
    Mutant(
        "skipped-records-are-sent",
        "barnabas/cli/records/produce_run.py",
        "        if self._to_skip:\n            self._to_skip -= 1\n            return\n",
        "        if self._to_skip:\n            self._to_skip -= 1\n",
        _PRODUCE + "test_interrupted_says_what_is_stored",
    ),
    Mutant(
        "empty-messages-of-kcat-are-sent",
        "barnabas/cli/cat/produce.py",
        "        if not message:\n            return None\n",
        "",
        _CAT + "test_same_messages_as_kcat",
    ),
    Mutant(
        "committed-offsets-before-those-of-the-option",
        "barnabas/cli/cat/consume.py",
        "            uses_committed=not options.offsets,\n",
        "",
        _CAT + "test_an_offset_of_a_group_is_stronger_than_what_is_committed",
    ),
    Mutant(
        "warm-up-is-measured",
        "barnabas/cli/perf/produce.py",
        "            self._started = self._recent_since = self._ended = now\n            return\n",
        "            self._started = self._recent_since = self._ended = now\n",
        "tests/cli/records/test_perf.py::test_produce_and_consume",
    ),
)
