"""Config keys of one listener: `listener.name.<listener>.` before the name of a broker key (KIP-103, KIP-612).

Kafka's names of listeners are in lower case there. A key that is not set has the value of the broker key.
"""

from __future__ import annotations

from typing import Any, Final

from barnabas.broker.config.keys import security
from barnabas.broker.config.keys.network import MAX_CONNECTION_CREATION_RATE, MAX_CONNECTIONS
from barnabas.wire.configdef import ConfigKey

PREFIX: Final = "listener.name."
_OF_TLS: Final = [
    key for key in vars(security).values() if isinstance(key, ConfigKey) and key.used and key.name.startswith("ssl.")
]
PER_LISTENER: Final = {key.name: key for key in (MAX_CONNECTIONS, MAX_CONNECTION_CREATION_RATE, *_OF_TLS)}
"""The keys that Barnabas acts on for each listener."""


def listener_key(key: ConfigKey[Any], listener: str) -> ConfigKey[Any]:
    """The declaration of a broker key for one listener."""
    name = f"{PREFIX}{listener.lower()}.{key.name}"
    doc = f"{key.name} of the listener {listener.upper()}."
    return ConfigKey(key.type, name, None, key.valid, key.importance, key.dynamic, doc, key.used)


def split(name: str) -> tuple[str, str] | None:
    """The listener and the broker key that a name consists of; None if it has no prefix."""
    if not name.startswith(PREFIX):
        return None
    listener, dot, key = name.removeprefix(PREFIX).partition(".")
    return (listener, key) if listener and dot else None
