"""Random quota settings, changes and uses of them: what Kafka's own classes answer."""

from __future__ import annotations

import pytest

from compat.kafka import quota_changes, quota_worlds
from tests.support.volume import first_seed, how_many

WORLDS = how_many("BARNABAS_EXAMPLES", 80)


@pytest.mark.jvm
def test_settings_and_throttle_times_are_kafkas() -> None:
    assert quota_worlds.COMPARISON.differences(WORLDS, seed=first_seed()) == []


@pytest.mark.jvm
def test_changes_and_filters_are_kafkas() -> None:
    assert quota_changes.COMPARISON.differences(WORLDS, seed=first_seed()) == []
