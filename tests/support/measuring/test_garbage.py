"""The garbage collector is on while tests run, and does not look through what pytest has collected."""

from __future__ import annotations

import gc


def test_the_tests_are_frozen(request) -> None:
    assert gc.isenabled()
    assert gc.get_freeze_count() > 10_000
    seen = {id(tracked) for tracked in gc.get_objects()}
    assert id(request.node) not in seen


def test_new_garbage_is_collected() -> None:
    circle: list[object] = []
    circle.append(circle)
    del circle
    assert gc.collect() > 0
