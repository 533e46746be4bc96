"""No request costs more than the committed table says, and what was gained is in it."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from tests.costs.broker import ROOT
from tests.costs.count import Cost, count_all
from tests.costs.kinds.all import KINDS
from tests.costs.python import why_not
from tests.costs.table import failure, other_versions, problems, read, row_of

pytestmark = [pytest.mark.skipif(bool(why_not()), reason=why_not()), pytest.mark.timeout(900)]
ALONE = ("Produce 1 record", "Heartbeat", "Fetch that waits in vain")


@pytest.fixture(scope="module")
def counted() -> Mapping[str, Cost]:
    """The cost of each kind."""
    costs = {kind.name: cost for kind, cost in count_all(KINDS) if isinstance(cost, Cost)}
    return {kind.name: costs[kind.name] for kind in KINDS}


def test_no_request_costs_more_than_the_table_says(counted: Mapping[str, Cost]) -> None:
    rows = {name: row_of(cost, ROOT) for name, cost in counted.items()}
    exceeded = problems(read(), rows, same_libraries=not other_versions())
    assert not exceeded, failure(exceeded)


def test_a_count_is_exactly_the_same_in_another_process_and_without_the_other_kinds(
    counted: Mapping[str, Cost],
) -> None:
    for kind, cost in count_all([kind for kind in KINDS if kind.name in ALONE]):
        assert isinstance(cost, Cost)
        assert _of_ours(cost) == _of_ours(counted[kind.name])


def _of_ours(cost: Cost) -> tuple[dict[tuple[str, str], float], dict[str, float]]:
    """Bytecodes by function and system calls, without trio's heap of deadlines.

    A scope that has ended stays in the heap until it comes to its top: that depends on timers of other kinds.
    """
    functions = {place: count for place, count in cost.functions.items() if place[1] != "Deadlines.next_deadline"}
    return functions, cost.calls


def test_the_table_has_the_kinds_that_are_counted() -> None:
    assert list(read()) == [kind.name for kind in KINDS]


def test_nearly_everything_that_is_executed_belongs_to_a_layer() -> None:
    for name, row in read().items():
        assert row.layers.get("other", 0) < 0.05 * row.bytecodes, name
        assert sum(row.layers.values()) == pytest.approx(row.bytecodes, abs=0.2), name
