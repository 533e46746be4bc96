"""The day's sample of planted bugs: each one's test passes in a copy of the tree, and fails when the bug is planted.

`python -m tests.mutants` runs all of them. BARNABAS_MUTANTS_DAY=NUMBER replays the sample of another day.
"""

from __future__ import annotations

import pytest

from tests.mutants.all import MUTANTS
from tests.mutants.mutant import Mutant
from tests.mutants.sample import SAMPLE_SIZE, VARIABLE, sample_day, sample_of_day
from tests.mutants.tree import MutantTree


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> MutantTree:
    return MutantTree(tmp_path_factory.mktemp("mutants") / "tree")


@pytest.mark.soak
@pytest.mark.timeout(600)
@pytest.mark.parametrize("mutant", sample_of_day(MUTANTS, sample_day()), ids=lambda mutant: mutant.name)
def test_planted_bug_is_caught(mutant: Mutant, tree: MutantTree) -> None:
    print(f"replay: {VARIABLE}={sample_day()}, or python -m tests.mutants {mutant.name}")
    assert tree.passes(mutant), f"{mutant.test} fails without any bug"
    assert tree.outcome(mutant) == "caught"


def test_every_quick_mutant_is_in_the_sample_of_some_day() -> None:
    days = len(MUTANTS) // SAMPLE_SIZE + 1
    quick = {mutant.name for mutant in sample_of_day(MUTANTS, 0, len(MUTANTS))}
    assert {mutant.name for day in range(days) for mutant in sample_of_day(MUTANTS, day)} == quick
