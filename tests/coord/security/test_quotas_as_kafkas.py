"""Random quota settings, and the times for which clients are throttled, as Kafka's own classes answer."""

from __future__ import annotations

import pytest

from compat.kafka.quota_worlds import differences

WORLDS = 300


@pytest.mark.java
def test_settings_and_throttle_times_are_kafkas() -> None:
    assert differences(WORLDS, seed=546) == []
