"""Requests of Kafka's tools (`barnabas.cli.kafka_tools`): many objects at once, errors with the broker's own messages.

Every function takes a `Cluster` and retries until its timeout. An error of an item is a `KafkaError` with the message
that the broker sent, or none.
"""

from __future__ import annotations
