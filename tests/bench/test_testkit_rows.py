"""The figures of the test kit are measured as they say; run small."""

from __future__ import annotations

import pytest

from bench import testkit


def test_starts_and_clusters_are_timed() -> None:
    assert testkit.start_s(1) > 0
    with testkit.running() as (broker, pid):
        waits = testkit.wait_ms(broker, 3), testkit.open_ms(broker, 3, use=False), testkit.open_ms(broker, 3, use=True)
        assert min(waits) > 0
        leftovers = testkit.Left.of(pid)
    assert min(leftovers.rss_mb, leftovers.descriptors, leftovers.threads, leftovers.directories) > 0


@pytest.mark.soak
@pytest.mark.timeout(600)
def test_a_run_of_pytest_is_compared_with_one_without_the_kit() -> None:
    *_, memory = testkit.of_pytest(4, rounds=1)
    assert memory > 10
