"""The keys of a client's configuration that secure its connections: which are understood, and which are secret."""

from __future__ import annotations

from typing import Final

PROTOCOLS: Final = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")
SECRETS: Final = frozenset(
    {
        "sasl.jaas.config",
        "sasl.password",
        "ssl.truststore.password",
        "ssl.keystore.password",
        "ssl.keystore.key",
        "ssl.key.password",
    }
)
"""Keys whose values are never shown."""
KEYS: Final = (
    "security.protocol",
    "sasl.mechanism",
    "sasl.jaas.config",
    "sasl.username",
    "sasl.password",
    "sasl.login.callback.handler.class",
    "sasl.oauthbearer.token.endpoint.url",
    "ssl.truststore.location",
    "ssl.truststore.type",
    "ssl.truststore.password",
    "ssl.truststore.certificates",
    "ssl.ca.location",
    "ssl.keystore.location",
    "ssl.keystore.type",
    "ssl.keystore.password",
    "ssl.keystore.key",
    "ssl.keystore.certificate.chain",
    "ssl.key.password",
    "ssl.endpoint.identification.algorithm",
    "ssl.enabled.protocols",
)
"""The keys that are understood. `sasl.username`, `sasl.password` and `ssl.ca.location` are librdkafka's."""
ALIASES: Final = {"user": "sasl.username", "pass": "sasl.password", "sasl.mechanisms": "sasl.mechanism"}
"""Names that rpk and librdkafka use."""
PREFIXES: Final = ("security.", "sasl.", "ssl.")


class SecurityError(ValueError):
    """The configuration is wrong; the text is one sentence without a secret."""


def security_key(word: str) -> str | None:
    """The key that a word names; None for a key that has nothing to do with security. `SecurityError` if unknown."""
    key = ALIASES.get(word, word)
    if key in KEYS:
        return key
    if key.startswith(PREFIXES):
        raise SecurityError(
            f"{key} is not among the keys that secure this client's connections, and is not ignored; "
            f"there are {', '.join(KEYS)}"
        )
    return None
