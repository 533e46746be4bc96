"""Hypothesis settings: 100 examples for each property, always the same; BARNABAS_EXAMPLES=100000 for a long run."""

from __future__ import annotations

import os

from hypothesis import HealthCheck, settings

EXAMPLES = os.environ.get("BARNABAS_EXAMPLES")
settings.register_profile(
    "barnabas",
    max_examples=int(EXAMPLES or 100),
    derandomize=EXAMPLES is None,
    database=None,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
settings.load_profile("barnabas")
