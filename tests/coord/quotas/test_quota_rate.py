"""The rate over windows, its throttle time, and the bucket of tokens, on a clock of milliseconds."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from barnabas.coord.quotas.rate import MAX_THROTTLE_MS, Rate
from barnabas.coord.quotas.token_bucket import TokenBucket

WINDOWS, WINDOW_MS = 11, 1000


def rate() -> Rate:
    return Rate(WINDOWS, WINDOW_MS)


def test_a_new_client_may_use_at_once_what_all_windows_but_one_allow() -> None:
    used = rate()
    used.record(1000, 5_000)
    assert used.measure(5_000) == 100.0
    assert used.throttle_ms(100.0, 5_000) == 0
    used.record(1, 5_000)
    assert used.throttle_ms(100.0, 5_000) == 10


def test_the_throttle_time_is_what_the_excess_takes_at_the_limit() -> None:
    """The case of Kafka's ClientQuotaManagerTest: 500 a second, 600 bytes in the first half second of the 11th one."""
    used = rate()
    for second in range(10):
        used.record(400, second * 1000)
    used.record(2300, 10_500)
    assert used.measure(10_500) == pytest.approx(600)
    assert used.throttle_ms(500.0, 10_500) == 2100


def test_what_was_taken_back_does_not_count() -> None:
    used = rate()
    used.record(5000, 0)
    used.record(-5000, 0)
    assert used.measure(0) == 0.0


def test_old_windows_do_not_count() -> None:
    used = rate()
    used.record(5000, 0)
    assert not used.is_as_new(1.0, WINDOWS * WINDOW_MS - 1)
    assert used.measure(WINDOWS * WINDOW_MS - 1) > 0
    assert used.is_as_new(1.0, WINDOWS * WINDOW_MS)
    assert used.measure(WINDOWS * WINDOW_MS) == 0.0


@given(st.lists(st.tuples(st.integers(0, 3000), st.integers(1, 10_000)), max_size=60), st.integers(1, 5000))
def test_whoever_waits_as_told_stays_near_the_limit(uses: list[tuple[int, int]], limit: int) -> None:
    """The total use is at most the limit times the time, plus the windows and the largest single use."""
    used, now, total = rate(), 0, 0
    for pause_ms, size in uses:
        now += pause_ms
        used.record(size, now)
        total += size
        now += used.throttle_ms(float(limit), now)
    largest = max((size for _, size in uses), default=0)
    assert total <= limit * (now / 1000 + 2 * WINDOWS) + largest


def test_the_time_to_wait_fits_into_a_response() -> None:
    used = rate()
    used.record(1e18, 0)
    assert used.throttle_ms(1.0, 0) == MAX_THROTTLE_MS
    assert used.throttle_ms(0.0, 0) == MAX_THROTTLE_MS


def test_a_bucket_takes_one_burst_and_refills_at_the_limit() -> None:
    bucket = TokenBucket(WINDOWS, WINDOW_MS)
    bucket.record(55, 5.0, 0)
    assert bucket.throttle_ms(5.0, 0) == 0
    bucket.record(10, 5.0, 0)
    assert bucket.throttle_ms(5.0, 0) == 2000
    assert bucket.throttle_ms(5.0, 1999) == 1
    assert bucket.throttle_ms(5.0, 2000) == 0
    assert not bucket.is_as_new(5.0, 2000)
    assert bucket.is_as_new(5.0, 13_000)


def test_a_lower_limit_lowers_what_a_bucket_holds() -> None:
    bucket = TokenBucket(WINDOWS, WINDOW_MS)
    bucket.record(0, 10.0, 0)
    bucket.record(12, 1.0, 0)
    assert bucket.throttle_ms(1.0, 0) == 1000
