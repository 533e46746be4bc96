"""A call that is added to the hot path is found: it is planted in a copy of the broker, which is counted."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.costs.broker import ROOT
from tests.costs.count import Cost, count_all
from tests.costs.kinds.all import KINDS
from tests.costs.python import why_not
from tests.costs.table import other_versions, problems, read, row_of
from tests.mutants.broker.cost_mutants import COSTS
from tests.mutants.mutant import Mutant

pytestmark = [pytest.mark.skipif(bool(why_not()), reason=why_not()), pytest.mark.timeout(300)]
PACKAGES = ("barnabas", "broker", "coord", "storage", "wire")
FOUND = {
    "rolling-asked-twice": ("Produce 1 record: bytecodes ", "\n    write "),
    "access-checked-without-an-authorizer": ("Produce 1 record: bytecodes ", "\n    parse "),
    "peer-asked-for-each-response": ("getpeername 0 -> 1, more than the table allows", "\n    send "),
}
"""What the failure says of each bug: the row, and the layer."""


@pytest.mark.parametrize("mutant", COSTS, ids=lambda mutant: mutant.name)
def test_a_planted_call_is_found(mutant: Mutant, tmp_path: Path) -> None:
    for package in PACKAGES:
        left_out = shutil.ignore_patterns("__pycache__")
        shutil.copytree(ROOT / package, tmp_path / package, ignore=left_out, symlinks=True)
    mutant.apply(tmp_path)
    kinds = [kind for kind in KINDS if kind.name == "Produce 1 record"]
    counted = {kind.name: cost for kind, cost in count_all(kinds, tmp_path)}
    assert all(isinstance(cost, Cost) for cost in counted.values()), counted
    rows = {name: row_of(cost, tmp_path) for name, cost in counted.items() if isinstance(cost, Cost)}
    (problem,) = problems({name: read()[name] for name in rows}, rows, same_libraries=not other_versions())
    for text in FOUND[mutant.name]:
        assert text in problem
