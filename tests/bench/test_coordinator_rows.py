"""The bench rows "kill -9 of the coordinator of …" measure what they state: each is run once, on Barnabas only."""

from __future__ import annotations

import pytest

from bench.cases.case import Case, Group, Scale
from bench.cases.cluster import SESSION_MS, SETTINGS
from bench.cases.coordinator_cases import cases
from bench.cases.groups import PAGE_CACHE

CASES = list(cases())


@pytest.mark.soak
@pytest.mark.timeout(400)
@pytest.mark.parametrize("case", CASES, ids=[case.name for case in CASES])
def test_the_answer_comes_from_another_broker(case: Case) -> None:
    """It cannot come before the session of the killed broker has ended, but for its last heartbeat."""
    group = Group("Test", "", (), barnabas={**PAGE_CACHE, **SETTINGS}, kafka={})
    figures = case.measure(group, "barnabas", Scale())
    assert figures.keys() == case.goals.keys()
    assert figures["pause ms"] > SESSION_MS - 2 * int(SETTINGS["broker.heartbeat.interval.ms"])
