"""The `ssl.*` keys of one listener as values; a key with the listener's prefix comes before the broker's."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from barnabas.broker.config.keys.security import (
    SSL_ALLOW_DN_CHANGES,
    SSL_ALLOW_SAN_CHANGES,
    SSL_CIPHER_SUITES,
    SSL_CLIENT_AUTH,
    SSL_ENABLED_PROTOCOLS,
    SSL_ENDPOINT_IDENTIFICATION_ALGORITHM,
    SSL_KEY_PASSWORD,
    SSL_KEYSTORE_CERTIFICATE_CHAIN,
    SSL_KEYSTORE_KEY,
    SSL_KEYSTORE_LOCATION,
    SSL_KEYSTORE_PASSWORD,
    SSL_KEYSTORE_TYPE,
    SSL_PRINCIPAL_MAPPING_RULES,
    SSL_PROTOCOL,
    SSL_TRUSTSTORE_CERTIFICATES,
    SSL_TRUSTSTORE_LOCATION,
    SSL_TRUSTSTORE_PASSWORD,
    SSL_TRUSTSTORE_TYPE,
)
from barnabas.broker.config.listener_keys import listener_key
from barnabas.broker.security.stores import KeyStoreSettings, TrustStoreSettings

if TYPE_CHECKING:
    from barnabas.broker.config.server_config import ServerConfig
    from barnabas.wire.configdef import ConfigKey


class TlsSettings(NamedTuple):
    """The TLS settings of a listener."""

    key_store: KeyStoreSettings
    trust_store: TrustStoreSettings
    client_auth: str
    protocol: str
    enabled_protocols: tuple[str, ...]
    cipher_suites: tuple[str, ...]
    identification: str
    mapping_rules: str
    allows_dn_changes: bool
    allows_san_changes: bool

    @property
    def files(self) -> tuple[str, ...]:
        """The files that are checked for changes."""
        return tuple(path for path in (self.key_store.location, self.trust_store.location) if path is not None)


def tls_settings(config: ServerConfig, listener: str) -> TlsSettings:
    """The current settings of a listener."""

    def of(key: ConfigKey[Any]) -> Any:
        return config.of_listener(key, listener)

    return TlsSettings(
        key_store=KeyStoreSettings(
            of(SSL_KEYSTORE_TYPE),
            of(SSL_KEYSTORE_LOCATION) or None,
            of(SSL_KEYSTORE_PASSWORD) or None,
            of(SSL_KEYSTORE_CERTIFICATE_CHAIN) or None,
            of(SSL_KEYSTORE_KEY) or None,
            of(SSL_KEY_PASSWORD) or None,
        ),
        trust_store=TrustStoreSettings(
            of(SSL_TRUSTSTORE_TYPE),
            of(SSL_TRUSTSTORE_LOCATION) or None,
            of(SSL_TRUSTSTORE_PASSWORD) or None,
            of(SSL_TRUSTSTORE_CERTIFICATES) or None,
        ),
        client_auth=_client_auth(config, listener),
        protocol=of(SSL_PROTOCOL),
        enabled_protocols=of(SSL_ENABLED_PROTOCOLS),
        cipher_suites=of(SSL_CIPHER_SUITES),
        identification=of(SSL_ENDPOINT_IDENTIFICATION_ALGORITHM) or "",
        mapping_rules=of(SSL_PRINCIPAL_MAPPING_RULES),
        allows_dn_changes=of(SSL_ALLOW_DN_CHANGES),
        allows_san_changes=of(SSL_ALLOW_SAN_CHANGES),
    )


def _client_auth(config: ServerConfig, listener: str) -> str:
    """A listener with SASL asks for certificates only if that is set for it alone (KIP-684)."""
    if config.protocol_of(listener) == "SASL_SSL":
        return config[listener_key(SSL_CLIENT_AUTH, listener)] or "none"
    return config.of_listener(SSL_CLIENT_AUTH, listener)
