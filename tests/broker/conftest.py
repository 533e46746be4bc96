"""Fixtures of the tests that run the broker's core in this process."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.broker.fake_controller import FEATURES, FakeController, FakeQuorum, JoinedBroker
from tests.broker.moving import Moving
from tests.broker.scripted_nodes import Wire
from tests.support.memory.broker import MemoryBroker
from tests.support.requests.fetch import append


@pytest.fixture
def memory(tmp_path: Path) -> Iterator[MemoryBroker]:
    """A broker without sockets, with the defaults of the dev profile."""
    broker = MemoryBroker(tmp_path / "data")
    yield broker
    broker.close()


@pytest.fixture
def wire() -> Iterator[Wire]:
    """A network in this process, with nodes that the test scripts."""
    wire = Wire()
    yield wire
    wire.close()


@pytest.fixture
def controller(wire: Wire) -> FakeController:
    """The controller 3000, whose metadata begins with the levels of the features."""
    quorum = FakeQuorum()
    quorum.write(*FEATURES)
    return FakeController(wire, quorum, 3000)


@pytest.fixture
def member(wire: Wire, tmp_path: Path, controller: FakeController) -> JoinedBroker:
    """A broker that has joined its cluster."""
    member = JoinedBroker(wire, [tmp_path / "data"], controller.address)
    member.start()
    wire.advance(1)
    assert member.joined.all == [None]
    return member


@pytest.fixture
def moving(tmp_path: Path) -> Iterator[Moving]:
    """A broker with two log directories, and a topic with two records."""
    moving_broker = Moving(tmp_path)
    moving_broker.memory.create_topic("t")
    for value in (b"a", b"b"):
        append(moving_broker.memory, "t", value)
    yield moving_broker
    moving_broker.memory.close()
