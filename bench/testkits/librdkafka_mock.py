"""The mock cluster in librdkafka (`test.mock.num.brokers`), as confluent-kafka's users have it.

A client that is made with this setting runs the brokers in its own threads. It tells their address, and other clients
may connect to it. C, Go and Rust can do more with it than Python: create topics, push errors.
"""

from __future__ import annotations

from collections.abc import Mapping

from confluent_kafka import Producer, libversion
from confluent_kafka import version as confluent_version

from bench.testkits.clients import WAIT_S
from bench.testkits.product import Place, Product, Setup, Test, UnsupportedError


class LibrdkafkaMock(Product):
    """One mock cluster with one broker."""

    name, title = "librdkafka-mock", "librdkafka's mock cluster"
    isolation = "a new mock"
    tests = 5
    in_process = True

    def __init__(self) -> None:
        super().__init__()
        self._own: Producer | None = None
        self._of_test: Producer | None = None

    @classmethod
    def missing(cls) -> str:
        return ""

    @classmethod
    def version(cls) -> str:
        return f"librdkafka {libversion()[0]}, confluent-kafka {_text(confluent_version())}"

    @classmethod
    def prepare(cls) -> None:
        pass

    def start(self, setup: Setup = Setup.USUAL, keys: Mapping[str, str] | None = None) -> Place:  # noqa: ARG002 - it has no keys
        if setup is not Setup.USUAL:
            raise UnsupportedError("it cannot be configured from Python")
        self._own, place = _mock()
        return place

    def begin(self) -> Test:
        self._of_test, place = _mock()
        return Test(place, "orders", "group")

    def end(self, test: Test) -> None:  # noqa: ARG002 - there is one at a time
        self._of_test = None

    def stop(self) -> None:
        self._own = self._of_test = None


def _mock() -> tuple[Producer, Place]:
    """The client that the mock lives as long as, and its address."""
    owner = Producer({"bootstrap.servers": "replaced", "test.mock.num.brokers": 1, "log_level": 4})
    (broker,) = owner.list_topics(timeout=WAIT_S).brokers.values()
    return owner, Place(f"{broker.host}:{broker.port}", creates_topics=False)


def _text(version: object) -> str:
    return str(version[0]) if isinstance(version, tuple) else str(version)
