"""The resources that have configs (Kafka's `ConfigResource.Type`)."""

from __future__ import annotations

from typing import Final

ConfigResource = tuple[int, str]
"""Resource type and name."""

TOPIC: Final = 2
BROKER: Final = 4
BROKER_LOGGER: Final = 8
CLIENT_METRICS: Final = 16
GROUP: Final = 32
