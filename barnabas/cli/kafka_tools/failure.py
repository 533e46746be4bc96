"""One sentence for an error of a tool."""

from __future__ import annotations

from barnabas.cli.failure import explain
from barnabas.cli.kafka_tools.errors import text_of
from barnabas.wire.errors import KafkaError


def sentence(error: Exception) -> str | None:
    """The broker's or Kafka's text for an error; None for a bug."""
    if isinstance(error, KafkaError):
        return text_of(error)
    if isinstance(error, ValueError):
        return str(error)
    known = explain(error)
    return None if known is None else known[0]
