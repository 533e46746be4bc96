"""The seeds of tests in which one seed is one run: how many, and from which one on, is set in the environment."""

from __future__ import annotations

import os


def seeds(default: int, variable: str = "BARNABAS_EXAMPLES") -> range:
    """As many seeds as `variable` says, from BARNABAS_SEED on (0)."""
    first = int(os.environ.get("BARNABAS_SEED", "0"))
    return range(first, first + int(os.environ.get(variable, str(default))))
