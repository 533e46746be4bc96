"""Planted bugs of produce, consume, cat and perf."""

from __future__ import annotations

from tests.mutants.mutant import Mutant

_CONSUME = "tests/cli/test_consume.py::"
_GROUP = "tests/cli/test_consume_group.py::"
_PRODUCE = "tests/cli/test_produce.py::"

DATA_COMMANDS = (
    Mutant(
        "aborted-records-are-read",
        "barnabas/client/reader.py",
        "        elif batch.is_transactional and batch.producer_id in aborting:\n            continue\n",
        "",
        _CONSUME + "test_isolation",
    ),
    Mutant(
        "offsets-beyond-the-end-moved-silently",
        "barnabas/cli/offset_spec.py",
        '        if spec.kind == "offset" and found[partition] != offset:\n',
        "        if False:\n",
        _CONSUME + "test_offset_outside_is_moved_and_said",
    ),
    Mutant(
        "text-of-records-as-format-string",
        "barnabas/cli/record_filter.py",
        "    if isinstance(left, str):\n",
        "    if False:\n",
        _CONSUME + "test_expressions",
    ),
    Mutant(
        "member-does-not-leave",
        "barnabas/client/group_consumer.py",
        "            self.member.leave()\n",
        "            pass\n",
        _GROUP + "test_only_what_was_printed_is_committed",
    ),
    Mutant(
        "no-commit-before-a-rebalance",
        "barnabas/client/group_consumer.py",
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
        "barnabas/cli/produce_run.py",
        "        if self._to_skip:\n            self._to_skip -= 1\n            return\n",
        "        if self._to_skip:\n            self._to_skip -= 1\n",
        _PRODUCE + "test_interrupted_says_what_is_stored",
    ),
)
