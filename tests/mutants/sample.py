"""The planted bugs of one run: a few that are caught in seconds, other ones each day."""

from __future__ import annotations

import datetime as dt
import os
import random
from collections.abc import Sequence

from tests.mutants.mutant import Mutant

SAMPLE_SIZE = 12
VARIABLE = "BARNABAS_MUTANTS_DAY"
"""The number of the day whose sample is run: replays the sample of another day."""
_LONG = ("tests/simulation/", "tests/crash/test_crash_states.py", "tests/crash/test_broker_crashes.py")


def sample_day() -> int:
    """The number of the day whose sample is run: today's, or that of the environment."""
    return int(os.environ.get(VARIABLE) or dt.datetime.now(dt.UTC).date().toordinal())


def sample_of_day(mutants: Sequence[Mutant], day: int, size: int = SAMPLE_SIZE) -> list[Mutant]:
    """The next `size` mutants that need no search through crash states or simulated runs.

    The order is fixed and mixes the files, so all are planted once in as many days as there are samples.
    """
    quick = [mutant for mutant in mutants if not mutant.env and not mutant.test.startswith(_LONG)]
    random.Random(0).shuffle(quick)
    first = day * size
    return [quick[(first + number) % len(quick)] for number in range(min(size, len(quick)))]
