"""Config keys of one listener: `listener.name.<listener>.` before the name of a broker key (KIP-103, KIP-612).

Kafka's names of listeners are in lower case there. A key that is not set has the value of the broker key. Keys of SASL
may also name a mechanism: `listener.name.<listener>.<mechanism>.` (KIP-85). These keys cannot be changed while the
broker runs.
"""

from __future__ import annotations

from typing import Any, Final

from barnabas.broker.config.keys import security
from barnabas.broker.config.keys.network import (
    CONNECTIONS_MAX_REAUTH_MS,
    MAX_CONNECTION_CREATION_RATE,
    MAX_CONNECTIONS,
)
from barnabas.broker.config.keys.security import (
    SASL_ENABLED_MECHANISMS,
    SASL_JAAS_CONFIG,
    SASL_SERVER_CALLBACK_HANDLER_CLASS,
    SASL_SERVER_MAX_RECEIVE_SIZE,
)
from barnabas.wire.configdef import READ_ONLY, ConfigKey

PREFIX: Final = "listener.name."


def _used(prefix: str) -> list[ConfigKey[Any]]:
    """The keys about security that Barnabas uses and whose names begin with `prefix`."""
    declared = [key for key in vars(security).values() if isinstance(key, ConfigKey)]
    return [key for key in declared if key.used and key.name.startswith(prefix)]


PER_LISTENER: Final = {key.name: key for key in (MAX_CONNECTIONS, MAX_CONNECTION_CREATION_RATE, *_used("ssl."))}
"""The keys that Barnabas uses for each listener, and that can be changed."""
MECHANISMS: Final = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER")
"""The SASL mechanisms that Barnabas has."""
SASL_KEYS: Final = {
    key.name: key
    for key in (
        CONNECTIONS_MAX_REAUTH_MS,
        SASL_ENABLED_MECHANISMS,
        SASL_JAAS_CONFIG,
        *_used("sasl.oauthbearer."),
        SASL_SERVER_CALLBACK_HANDLER_CLASS,
        SASL_SERVER_MAX_RECEIVE_SIZE,
    )
}
"""The keys of SASL that may be set for a listener, or for a mechanism of a listener."""


def listener_key(key: ConfigKey[Any], listener: str) -> ConfigKey[Any]:
    """The declaration of a broker key for one listener."""
    name = f"{PREFIX}{listener.lower()}.{key.name}"
    doc = f"{key.name} of the listener {listener.upper()}."
    return ConfigKey(key.type, name, None, key.valid, key.importance, key.dynamic, doc, key.used)


def sasl_key(key: ConfigKey[Any], listener: str, mechanism: str | None = None) -> ConfigKey[Any]:
    """The declaration of a key of SASL for one listener, or for one of its mechanisms."""
    of_mechanism = "" if mechanism is None else f"{mechanism.lower()}."
    name = f"{PREFIX}{listener.lower()}.{of_mechanism}{key.name}"
    where = (
        f"the listener {listener.upper()}" if mechanism is None else f"{mechanism} on the listener {listener.upper()}"
    )
    return ConfigKey(key.type, name, None, key.valid, key.importance, READ_ONLY, f"{key.name} of {where}.", key.used)


def declared(name: str) -> ConfigKey[Any] | None:
    """The declaration of a key with a listener's prefix that Barnabas uses; None for any other name."""
    parts = split(name)
    if parts is None or parts[0] != parts[0].lower():
        return None
    listener, base = parts
    if base in PER_LISTENER:
        return listener_key(PER_LISTENER[base], listener)
    if base in SASL_KEYS:
        return sasl_key(SASL_KEYS[base], listener)
    mechanism, _, rest = base.partition(".")
    if mechanism.upper() in MECHANISMS and mechanism == mechanism.lower() and rest in SASL_KEYS:
        return sasl_key(SASL_KEYS[rest], listener, mechanism.upper())
    return None


def split(name: str) -> tuple[str, str] | None:
    """The listener and the broker key that a name consists of; None if it has no prefix."""
    if not name.startswith(PREFIX):
        return None
    listener, dot, key = name.removeprefix(PREFIX).partition(".")
    return (listener, key) if listener and dot else None
