"""A pytest plugin: Python looks for no garbage while pytest collects, and later not among what was collected.

Modules and tests stay until the end. To look through them costs a sixth of the time of collecting, and later 0.15 s of
every full collection of garbage.
"""

from __future__ import annotations

import gc
from collections.abc import Generator

import pytest


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Collect the tests without the garbage collector, and take what there is then out of its sight."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()
