"""Apache Kafka 4.4.0 as it is started by hand: a directory is formatted, then a JVM runs broker and controller.

It has the settings of a single node (`tests/support/processes/kafka.py`), and a heap of 1 GB, as Kafka's own
script sets it.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path

import psutil
from confluent_kafka.admin import AdminClient, NewTopic

from bench.testkits import listeners
from bench.testkits.clients import WAIT_S
from bench.testkits.product import KEYS, Place, Product, Setup, Test, family
from tests.support.jvm.jars import fetch
from tests.support.processes.kafka import VERSION, KafkaServer
from tests.support.processes.server import ROOT

POM = ROOT / "compat" / "kafka" / "pom.xml"


def missing_tools(*tools: str) -> str:
    """Which of these programs are not installed, as a sentence; "" if all are."""
    missing = [tool for tool in tools if shutil.which(tool) is None]
    return f"{' and '.join(missing)} is not installed" if missing else ""


class ApacheKafka(Product):
    """One node in KRaft mode."""

    name, title = "kafka", "Apache Kafka, KRaft, by hand"
    isolation = "new names"

    def __init__(self) -> None:
        super().__init__()
        self._stack = ExitStack()
        self._server: KafkaServer | None = None
        self._place = Place("")

    @classmethod
    def missing(cls) -> str:
        return missing_tools("java", "mvn")

    @classmethod
    def version(cls) -> str:
        return VERSION

    @classmethod
    def prepare(cls) -> None:
        fetch(POM)

    def start(self, setup: Setup = Setup.USUAL, keys: Mapping[str, str] | None = None) -> Place:
        if setup in (Setup.LOG_IN, Setup.TLS):
            return listeners.start_kafka(self._stack, setup, keys)
        folder = self._stack.enter_context(tempfile.TemporaryDirectory(prefix="testkits-"))
        self._server = KafkaServer(Path(folder) / "data", config={**KEYS[setup], **(keys or {})})
        self._stack.enter_context(self._server)
        self._place = Place(self._server.bootstrap)
        return self._place

    def begin(self) -> Test:
        test = self.names(self._place)
        create_topic(test)
        return test

    def processes(self) -> list[psutil.Process]:
        assert self._server is not None, "not started"
        return family(self._server.pid)

    def stop(self) -> None:
        self._stack.close()


def create_topic(test: Test) -> None:
    """Create the topic of a test that shares its broker."""
    admin = AdminClient({"bootstrap.servers": test.place.bootstrap})
    admin.create_topics([NewTopic(test.topic, 1)])[test.topic].result(WAIT_S)
