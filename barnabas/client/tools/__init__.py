"""Requests that only Kafka's tools (`barnabas.cli.kafka_tools`) make; those of Barnabas' commands too are in `client`.

Every function takes a `Cluster` and retries until its timeout. Errors are those of `barnabas.client.errors`, whose
`message` is the one that the broker sent, or None.
"""

from __future__ import annotations
