"""Kafka's process: the conditions that are waited for before it is used."""

from __future__ import annotations

from pathlib import Path

from tests.support.processes.kafka import KafkaServer


def test_all_listeners_are_waited_for(tmp_path: Path) -> None:
    """Kafka opens one after the other; a protocol's name is no scheme of a URL, for its underscore."""
    server = KafkaServer(tmp_path / "kafka", config={"listeners": "PLAINTEXT://127.0.0.1:1,SASL_SSL://127.0.0.2:2"})
    server.write_properties()
    assert server._addresses_of_listeners() == [("127.0.0.1", 1), ("127.0.0.2", 2)]
