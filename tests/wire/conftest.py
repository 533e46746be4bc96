"""The examples of Hypothesis in these tests: `tests/support/volume.py` loads their settings."""

from __future__ import annotations

from tests.support import volume as volume
