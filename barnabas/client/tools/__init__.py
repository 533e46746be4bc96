"""Requests that only Kafka's tools (`barnabas.cli.kafka_tools`) make; requests of Barnabas' commands are in `client`.

Every function takes a `Cluster` and retries until its timeout. Errors come from `barnabas.client.errors`; their
`message` is the broker's message, or None.
"""

from __future__ import annotations
