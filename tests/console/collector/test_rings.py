"""Series: slots by time, gaps, the two steps, and rates of counters."""

from __future__ import annotations

from barnabas.console.collector.rings import COARSE_SLOTS, COARSE_STEP_S, FINE_SLOTS, FINE_STEP_S, History, Ring, rate

START_S = 1_800_000_000.0


def test_a_slot_has_its_last_value_and_a_slot_without_a_sample_is_none() -> None:
    ring = Ring(2, 5)
    for after_s, value in ((0.0, 1), (1.9, 2), (2.0, 3), (7.0, 4), (3.0, 99)):  # the last one is too late
        ring.put(START_S + after_s, value)
    assert list(ring.points()) == [(START_S, 2), (START_S + 2, 3), (START_S + 4, None), (START_S + 6, 4)]
    assert list(ring.points(START_S + 4)) == [(START_S + 4, None), (START_S + 6, 4)]


def test_a_ring_keeps_its_last_slots_also_over_a_long_gap() -> None:
    ring = Ring(2, 5)
    for step in range(13):
        ring.put(START_S + 2 * step, step)
    assert [value for _, value in ring.points()] == [8, 9, 10, 11, 12]
    ring.put(START_S + 1_000_000, 7)
    assert list(ring.points())[-2:] == [(START_S + 999_998, None), (START_S + 1_000_000, 7)]
    assert [value for _, value in ring.points()] == [None] * 4 + [7]


def test_a_history_has_five_minutes_of_samples_and_an_hour_of_means() -> None:
    history = History()
    samples = int(2 * COARSE_SLOTS * COARSE_STEP_S / FINE_STEP_S)
    for step in range(samples):
        history.put(START_S + FINE_STEP_S * step, step % 15)  # 15 samples fill a slot of 30 s: mean 7
    now_s = START_S + FINE_STEP_S * (samples - 1)
    assert len(history.points(now_s, 10_000)) == COARSE_SLOTS
    assert {value for _, value in history.points(now_s, 3_600)} == {7}
    fine = history.points(now_s, FINE_STEP_S * FINE_SLOTS)
    assert len(fine) == FINE_SLOTS
    assert [value for _, value in fine[-15:]] == list(range(15))
    assert history.growth(now_s, 20) == 10
    assert History().growth(now_s, 20) is None


def test_a_rate_is_not_known_when_a_counter_went_back_or_no_time_passed() -> None:
    assert rate(10, 1.0, 30, 3.0) == 10
    assert rate(30, 1.0, 10, 3.0) is None
    assert rate(10, 1.0, 30, 1.0) is None
