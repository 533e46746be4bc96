"""What replaces certificates while a suite runs: it counts what new connections are shown, and reports the rest."""

from __future__ import annotations

import threading
from collections.abc import Callable

import pytest

from barnabas.client.errors import Unreachable
from barnabas.wire.errors import ErrorCode, KafkaError
from tests.support.processes import rotator as rotator_module
from tests.support.processes.rotator import Rotator

WAIT_S = 60.0


class Broker:
    """A broker of the test: `replace` does what the test says."""

    ways = ("config", "file")

    def __init__(self, replace: Callable[[Broker, str], bytes]) -> None:
        self.is_running = True
        self.current = b"old"
        self.asked: list[str] = []
        self.is_enough = threading.Event()
        self._replace = replace

    def replace(self, way: str) -> bytes:
        self.asked.append(way)
        if len(self.asked) >= 4:
            self.is_enough.set()
        return self._replace(self, way)

    def shown(self) -> bytes:
        return self.current


def rotated(broker: Broker) -> Rotator:
    """A rotator that has asked the broker often enough and has ended."""
    with Rotator(0.001, lambda text: None) as rotator:
        rotator.take(broker)
        assert broker.is_enough.wait(WAIT_S)
        rotator.leave(broker)
    return rotator


def put(broker: Broker, way: str) -> bytes:
    broker.current = f"{way} {len(broker.asked)}".encode()
    return broker.current


def test_the_ways_take_turns_and_are_counted() -> None:
    broker = Broker(put)
    done = rotated(broker)
    assert broker.asked[:4] == ["config", "file", "config", "file"]
    assert done.rotations.total() == len(broker.asked)
    assert done.findings == []
    counts = f"({done.rotations['config']} by config, {done.rotations['file']} by file)"
    assert done.summary == f"certificate rotated {len(broker.asked)} times {counts}"


def test_a_refused_certificate_is_a_finding() -> None:
    def refuse(broker: Broker, way: str) -> bytes:
        raise KafkaError(ErrorCode.INVALID_REQUEST, "DistinguishedName does not match")

    done = rotated(Broker(refuse))
    assert "rotation by config: KafkaError: " in done.findings[0]
    assert done.rotations.total() == 0
    assert done.summary == "no certificate rotated"


def test_a_certificate_that_is_not_shown_is_a_finding(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rotator_module, "PATIENCE_S", 0.0)
    done = rotated(Broker(lambda broker, way: b"new"))
    assert done.findings[:2] == [f"a rotation by {way} took no effect in 0 s" for way in ("config", "file")]
    assert done.rotations.total() == 0


def test_a_broker_that_the_test_starts_again_is_asked_again() -> None:
    def restart(broker: Broker, way: str) -> bytes:
        if len(broker.asked) % 2:
            raise Unreachable("connection refused")
        return put(broker, way)

    done = rotated(Broker(restart))
    assert done.findings == []
    assert done.rotations.total() >= 2


def test_a_stopped_broker_is_left_alone() -> None:
    def stop(broker: Broker, way: str) -> bytes:
        broker.is_running = False
        broker.is_enough.set()
        return b"never shown"

    broker = Broker(stop)
    done = rotated(broker)
    assert done.rotations.total() == 0
    assert done.findings == []
    assert broker.asked == ["config"]
