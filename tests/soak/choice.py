"""Which part is called next, with which turn and seed, and how long that is expected to take."""

from __future__ import annotations

import statistics
from collections.abc import Collection, Sequence
from hashlib import blake2b

from tests.soak.machine import SLOW
from tests.soak.part import Part
from tests.soak.records import Call

SEEDS = 1 << 27
"""Seeds are below this: some tools hand ten times a seed and a digit to Java, where it must be below 2**31."""
NEWEST = 3
"""Of so many calls the median time is expected of the next one."""


def seed_of(commit: str, part: str, number: int) -> int:
    """The seed of a part's call on a commit: new with each commit and each number."""
    return int.from_bytes(blake2b(f"{commit} {part} {number}".encode(), digest_size=8).digest()) % SEEDS


def next_seed(part: Part, commit: str, used: Collection[int]) -> int:
    """The seed of the next call: the first one on this commit that is not in `used`."""
    number = 1
    while (seed := seed_of(commit, part.name, number)) in used:
        number += 1
    return seed


def next_turn(part: Part, seed: int, calls: Sequence[Call], running: Collection[str] = ()) -> str:
    """The turn whose newest call is oldest; if some were never called, the seed (so the commit) chooses one of them."""
    newest = {call.turn: call.began for call in _in_order(calls) if call.part == part.name}
    free = [turn for turn in part.turns if turn not in running] or list(part.turns)
    never = [turn for turn in free if turn not in newest]
    return never[seed % len(never)] if never else min(free, key=lambda turn: newest[turn])


def expected_s(part: Part, turn: str, calls: Sequence[Call], calibration: float, load: float = 1.0) -> float:
    """How long a call is expected to take on a machine with this calibration and load.

    The median of the newest calls with this turn. A turn that was never called takes as long as the longest of the
    newest calls of the part. With two processes ready for each CPU a call takes twice as long as with one.
    """
    speed = calibration / SLOW * max(1.0, load)
    measured = [
        (call.turn, call.seconds * SLOW / call.machine.calibration / max(1.0, call.load or 1.0))
        for call in _in_order(calls)
        if call.part == part.name and call.has_passed and call.seconds is not None and call.machine.calibration
    ]
    if own := [seconds for measured_turn, seconds in measured if measured_turn == turn]:
        return statistics.median_high(own[-NEWEST:]) * speed
    return max((seconds for _, seconds in measured[-NEWEST:]), default=part.seconds) * speed


def by_age(parts: Sequence[Part], calls: Sequence[Call]) -> list[Part]:
    """The parts that were never called, in their order, then the others, the one whose newest call is oldest first.

    A call that has failed counts too: the part would be called again and again, and its seed is run again anyway.
    """
    newest = {call.part: call.began for call in _in_order(calls)}
    return sorted(parts, key=lambda part: newest.get(part.name, ""))


def _in_order(calls: Sequence[Call]) -> list[Call]:
    return sorted(calls, key=lambda call: call.began)
