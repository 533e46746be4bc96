"""The embedded broker of spring-kafka-test, `EmbeddedKafkaKraftBroker`: Apache Kafka in the JVM of the tests.

Its users have it in their JVM. Here a JVM is started for it (`spring-embedded/Embedded.java`), so that the same client
measures it; the program also says how long the broker alone took.
"""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Mapping
from pathlib import Path

import psutil

from bench.testkits.apache_kafka import create_topic, missing_tools
from bench.testkits.product import KEYS, Place, Product, Setup, Test, UnsupportedError, family
from tests.support.jvm.jars import classpath, fetch
from tests.support.jvm.sources import compiled

FOLDER = Path(__file__).resolve().parent / "spring-embedded"
POM = FOLDER / "pom.xml"
ONE_BROKER = {
    "transaction.state.log.replication.factor": "1",
    "transaction.state.log.min.isr": "1",
    "share.coordinator.state.topic.replication.factor": "1",
    "share.coordinator.state.topic.min.isr": "1",
}
"""What its users set for a single broker."""


class EmbeddedKafka(Product):
    """A JVM with the broker."""

    name, title = "spring-kafka", "spring-kafka-test, embedded Kafka"
    isolation = "new names"

    def __init__(self) -> None:
        super().__init__()
        self._process: subprocess.Popen[str] | None = None
        self._place = Place("")
        self.broker_s = 0.0
        """How long the broker took in a JVM that runs, seconds."""

    @classmethod
    def missing(cls) -> str:
        return missing_tools("java", "javac", "mvn")

    @classmethod
    def version(cls) -> str:
        found = re.search(r"<artifactId>spring-kafka-test</artifactId>\s*<version>([^<]+)", POM.read_text())
        assert found is not None, "the pom does not name it"
        (server,) = fetch(POM).glob("kafka_2.13-*[0-9].jar")
        return f"{found[1]}, Kafka {server.stem.removeprefix('kafka_2.13-')}"

    @classmethod
    def prepare(cls) -> None:
        compiled(FOLDER, POM)

    def start(self, setup: Setup = Setup.USUAL, keys: Mapping[str, str] | None = None) -> Place:
        if setup in (Setup.LOG_IN, Setup.TLS):
            raise UnsupportedError("its listeners are of its test kit, without security")
        classes = compiled(FOLDER, POM)
        command = ["java", "-cp", f"{classes}:{classpath(POM)}", "Embedded"]
        command.append(json.dumps({**ONE_BROKER, **KEYS[setup], **(keys or {})}))
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
        )
        assert self._process.stdout is not None
        while not (line := self._process.stdout.readline()).startswith("READY "):
            if not line:
                raise RuntimeError(f"the embedded broker ended with {self._process.wait()}")
        _, address, took = line.split()
        self.broker_s = float(took) / 1000
        self._place = Place(address)
        return self._place

    def begin(self) -> Test:
        test = self.names(self._place)
        create_topic(test)
        return test

    def processes(self) -> list[psutil.Process]:
        assert self._process is not None, "not started"
        return family(self._process.pid)

    def stop(self) -> None:
        if self._process is not None:
            assert self._process.stdin is not None
            self._process.stdin.close()  # its end
            self._process.wait(30)
