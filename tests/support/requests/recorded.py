"""Recorded data: messages encoded by Kafka's classes, frames of real clients, Kafka's message declarations."""

from __future__ import annotations

import gzip
import json
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from barnabas.wire.frame import message_for
from barnabas.wire.registry import message_named
from barnabas.wire.schema import Message

DATA = Path(__file__).parents[2] / "data"


class Vector(NamedTuple):
    """One message encoded by Kafka's classes: its class, version, value and bytes."""

    line: str
    message_class: type[Message]
    version: int
    value: dict[str, Any]
    data: bytes


class Exchange(NamedTuple):
    """A request of a real client and Kafka's response: frames without their size."""

    client: str
    api_key: int
    version: int
    request: bytes
    response: bytes

    @property
    def name(self) -> str:
        """The name in assertion messages."""
        return f"{message_for(self.api_key)[0].__name__} v{self.version} of {self.client}"


def lines(name: str) -> list[str]:
    """The lines of a compressed file."""
    return gzip.decompress((DATA / name).read_bytes()).decode().splitlines()


@cache
def vectors() -> list[Vector]:
    """All 2,229 vectors."""
    vectors_of_file = []
    for line in lines("kafka-4.4.0-wire-vectors.jsonl.gz"):
        row = json.loads(line)
        data = bytes.fromhex(row["hex"])
        vectors_of_file.append(Vector(line, message_named(row["message"]), row["version"], row["value"], data))
    return vectors_of_file


@cache
def exchanges() -> list[Exchange]:
    """All 812 exchanges."""
    exchanges_of_file = []
    for line in lines("client-frames.jsonl.gz"):
        row = json.loads(line)
        request, response = bytes.fromhex(row["request"]), bytes.fromhex(row["response"])
        exchanges_of_file.append(Exchange(row["client"], row["api_key"], row["version"], request, response))
    return exchanges_of_file


@cache
def message_table() -> list[dict[str, Any]]:
    """Kafka's message declarations."""
    table: list[dict[str, Any]] = json.loads("\n".join(lines("kafka-4.4.0-messages.json.gz")))
    return table
