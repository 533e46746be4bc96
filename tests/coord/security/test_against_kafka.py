"""Decisions about random ACLs, compared with those of Kafka's class. `python -m compat.kafka.acls 10000` does more."""

from __future__ import annotations

import pytest

from compat.kafka.acls import differences, ours, sets

SETS = 300


@pytest.mark.jvm
def test_decisions_are_kafkas() -> None:
    assert differences(SETS, seed=1) == []


def test_the_questions_have_both_answers() -> None:
    answers = "".join(ours(one) for one in sets(SETS, seed=1))
    assert min(answers.count("0"), answers.count("1")) > len(answers) / 10
