"""Decisions about random ACLs, compared with Kafka's class. `python -m compat.kafka.acls 10000` does more."""

from __future__ import annotations

import pytest

from compat.kafka.acls import differences, ours, sets
from tests.support.volume import first_seed, how_many

SETS = how_many("BARNABAS_EXAMPLES", 80)


@pytest.mark.jvm
def test_decisions_are_kafkas() -> None:
    assert differences(SETS, seed=first_seed()) == []


def test_the_questions_have_both_answers() -> None:
    answers = "".join(ours(rules) for rules in sets(SETS, seed=first_seed()))
    assert min(answers.count("0"), answers.count("1")) > len(answers) / 10
