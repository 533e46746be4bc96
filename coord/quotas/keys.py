"""The settings of client quotas: their entities, keys and values. Source: Kafka 4.4 `QuotaConfig`.

KIP-13, KIP-55, KIP-124, KIP-599, KIP-612.
"""

from __future__ import annotations

from enum import Enum
from typing import Final

Entity = tuple[tuple[str, str | None], ...]
"""The entity of a setting: pairs of type and name, ordered by type; the name None is the default of its type."""

USER: Final = "user"
CLIENT_ID: Final = "client-id"
IP: Final = "ip"
ENTITY_TYPES: Final = frozenset({USER, CLIENT_ID, IP})

CONNECTION_CREATION_RATE: Final = "connection_creation_rate"
"""Connections a second from an address."""


class QuotaType(Enum):
    """What a client's quota limits; the value is the key of its settings."""

    PRODUCE = "producer_byte_rate"
    """Bytes of Produce requests a second."""
    FETCH = "consumer_byte_rate"
    """Bytes of Fetch responses a second."""
    REQUEST = "request_percentage"
    """Percent of the time of a thread."""
    CONTROLLER_MUTATION = "controller_mutation_rate"
    """Partitions created or deleted a second."""


MAX_INT: Final = 2**31 - 1
MAX_LONG: Final = 2**63 - 1
CLIENT_KEYS: Final[dict[str, int | None]] = {
    QuotaType.PRODUCE.value: MAX_LONG,
    QuotaType.FETCH.value: MAX_LONG,
    QuotaType.REQUEST.value: None,
    QuotaType.CONTROLLER_MUTATION.value: None,
}
"""The keys for users and client ids, each with the largest whole number that it may be; None: any number."""
IP_KEYS: Final[dict[str, int | None]] = {CONNECTION_CREATION_RATE: MAX_INT}
"""The keys for addresses."""
