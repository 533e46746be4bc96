"""Caches of keys hold no long keys: a group id may have 32 KB."""

from __future__ import annotations

from barnabas.coord.groups.records import offset_key
from barnabas.coord.short_key_cache import LONGEST_KEPT, cached_if_short


def test_long_keys_are_computed_and_not_kept() -> None:
    calls = []

    @cached_if_short(10)
    def length(key: str, more: int) -> int:
        calls.append(key)
        return len(key) + more

    short, long = "k" * LONGEST_KEPT, "k" * (LONGEST_KEPT + 1)
    for key in (short, long, short, long):
        assert length(key, 1) == len(key) + 1
    assert calls == [short, long, long]


def test_offset_keys_of_long_group_ids_are_not_kept() -> None:
    before = offset_key.cache_info().currsize
    assert len(offset_key("g" * 30_000, "t", 0)) > 30_000
    assert offset_key.cache_info().currsize == before
