"""Combining state batches equals updating a map from offsets to states (rule G6)."""

from __future__ import annotations

import itertools

from hypothesis import given, settings
from hypothesis import strategies as st

from barnabas.coord.share_state.batches import StateBatch, combine
from tests.support.cases import for_each
from tests.support.volume import how_many

AVAILABLE, ACQUIRED, ACKNOWLEDGED, ARCHIVED = 0, 1, 2, 4
EXAMPLES = how_many("BARNABAS_EXAMPLES", 80)


@for_each(
    ("old", "new", "start", "combined"),
    [
        # the same range: the higher delivery count wins, then the higher state
        ([(100, 109, 0, 1)], [(100, 109, 2, 1)], -1, [(100, 109, 2, 1)]),
        ([(100, 109, 2, 1)], [(100, 109, 0, 1)], -1, [(100, 109, 2, 1)]),
        ([(100, 109, 2, 1)], [(100, 109, 0, 2)], -1, [(100, 109, 0, 2)]),
        # one within the other
        ([(100, 110, 0, 1)], [(104, 105, 0, 2)], -1, [(100, 103, 0, 1), (104, 105, 0, 2), (106, 110, 0, 1)]),
        ([(104, 105, 0, 2)], [(100, 110, 0, 1)], -1, [(100, 103, 0, 1), (104, 105, 0, 2), (106, 110, 0, 1)]),
        ([(104, 105, 0, 1)], [(100, 110, 0, 2)], -1, [(100, 110, 0, 2)]),
        # the beginnings or the ends are the same
        ([(100, 110, 0, 1)], [(100, 105, 0, 2)], -1, [(100, 105, 0, 2), (106, 110, 0, 1)]),
        ([(100, 110, 0, 1)], [(105, 110, 0, 2)], -1, [(100, 104, 0, 1), (105, 110, 0, 2)]),
        # they cross
        ([(100, 110, 0, 1)], [(105, 115, 0, 2)], -1, [(100, 104, 0, 1), (105, 115, 0, 2)]),
        ([(100, 110, 0, 2)], [(105, 115, 0, 1)], -1, [(100, 110, 0, 2), (111, 115, 0, 1)]),
        # contiguous ranges with equal state and count are merged
        ([(100, 110, 0, 1)], [(111, 120, 0, 1)], -1, [(100, 120, 0, 1)]),
        ([(100, 110, 0, 1)], [(111, 120, 0, 2)], -1, [(100, 110, 0, 1), (111, 120, 0, 2)]),
        ([(100, 104, 0, 1), (106, 110, 0, 1)], [(105, 105, 0, 1)], -1, [(100, 110, 0, 1)]),
        # one over many, with gaps
        (
            [(100, 102, 2, 1), (105, 106, 0, 3), (109, 109, 4, 5)],
            [(101, 110, 0, 2)],
            -1,
            [
                (100, 100, 2, 1),
                (101, 104, 0, 2),
                (105, 106, 0, 3),
                (107, 108, 0, 2),
                (109, 109, 4, 5),
                (110, 110, 0, 2),
            ],
        ),
        # offsets before the start are removed
        ([(100, 110, 0, 1), (111, 115, 0, 2)], [], 105, [(105, 110, 0, 1), (111, 115, 0, 2)]),
        ([(100, 110, 0, 1)], [(90, 95, 2, 1)], 111, []),
        ([], [(110, 119, 1, 2), (100, 109, 2, 1)], 105, [(105, 109, 2, 1), (110, 119, 1, 2)]),
    ],
)
def test_cases_of_kafkas_combiner(old, new, start, combined):
    combination = combine([StateBatch(*batch) for batch in old], [StateBatch(*batch) for batch in new], start)
    assert combination == [StateBatch(*batch) for batch in combined]


batches = st.builds(
    lambda first, length, state, count: StateBatch(first, first + length, state, count),
    st.integers(0, 40),
    st.integers(0, 12),
    st.sampled_from([AVAILABLE, ACKNOWLEDGED, ARCHIVED]),
    st.integers(1, 3),
)


@settings(max_examples=EXAMPLES)
@given(st.lists(st.tuples(st.lists(batches, max_size=4), st.integers(-1, 50)), max_size=8))
def test_combining_equals_a_map_of_offsets(steps):
    combination = []
    model = {}
    for new, start in steps:
        combination = combine(combination, new, start)
        for batch in new:
            for offset in range(batch.first_offset, batch.last_offset + 1):
                value = (batch.delivery_count, batch.delivery_state)
                model[offset] = max(value, model.get(offset, value))
        model = {offset: value for offset, value in model.items() if offset >= start}
        spread = {
            offset: (batch.delivery_count, batch.delivery_state)
            for batch in combination
            for offset in range(batch.first_offset, batch.last_offset + 1)
        }
        assert spread == model
        for earlier, later in itertools.pairwise(combination):
            assert earlier.last_offset < later.first_offset, "sorted and disjoint"
            touches = earlier.last_offset + 1 == later.first_offset
            assert not (touches and earlier[2:] == later[2:]), "adjacent equal batches are merged"
