"""Fixtures of the tests that run the broker's core in this process."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.broker.memory_broker import MemoryBroker


@pytest.fixture
def memory(tmp_path: Path) -> Iterator[MemoryBroker]:
    """A broker without sockets, with the defaults of the dev profile."""
    broker = MemoryBroker(tmp_path / "data")
    yield broker
    broker.close()
