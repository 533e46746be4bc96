"""A cache of a function's results by key, bounded in entries and in bytes: results of long keys are not kept.

A group id may have 32 KB, so 4,096 entries of a cache bounded in entries only could take more than 100 MB.
"""

from __future__ import annotations

from collections.abc import Callable, Sized
from functools import lru_cache, wraps
from typing import Final, TypeVar, TypeVarTuple

K = TypeVar("K", bound=Sized)
Ts = TypeVarTuple("Ts")
R = TypeVar("R")

LONGEST_KEPT: Final = 600
"""The length of the longest first argument whose result is kept: a group id and a topic name of usual lengths."""


def cached_if_short(size: int) -> Callable[[Callable[[K, *Ts], R]], Callable[[K, *Ts], R]]:
    """As `lru_cache(size)`, for functions whose first argument is a text or bytes."""

    def decorate(function: Callable[[K, *Ts], R]) -> Callable[[K, *Ts], R]:
        cached: Callable[..., R] = lru_cache(size)(function)

        @wraps(function)
        def choose(key: K, *args: *Ts) -> R:
            return cached(key, *args) if len(key) <= LONGEST_KEPT else function(key, *args)

        choose.cache_info = cached.cache_info  # type: ignore[attr-defined]
        return choose

    return decorate
