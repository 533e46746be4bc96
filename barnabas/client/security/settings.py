"""The security settings of a client, from its configuration: Kafka's keys, and five short names of other clients.

Security keys that this client does not support are refused by name, never ignored. No error shows the value of a key
that is secret.
"""

from __future__ import annotations

import socket
import ssl
from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from barnabas.client.security.jaas import JaasError, parse_jaas
from barnabas.client.security.keys import PROTOCOLS, SecurityError, security_key
from barnabas.client.security.stores import Store, StoreError, identify, trust
from barnabas.coord.security.jaas import LOGIN_MODULES, LoginModule

if TYPE_CHECKING:
    from barnabas.client.security.sasl import Channel, Sasl
    from barnabas.client.security.tls import TlsSocket

TLS_VERSIONS: Final = {"TLSv1.2": ssl.TLSVersion.TLSv1_2, "TLSv1.3": ssl.TLSVersion.TLSv1_3}


class Security:
    """The security of a new connection: TLS, SASL, both or none."""

    def __init__(self, protocol: str, context: ssl.SSLContext | None, sasl: Sasl | None) -> None:
        self.protocol = protocol
        self._context = context
        self._sasl = sasl

    def __repr__(self) -> str:
        return f"<Security {self.protocol}>"

    @property
    def has_tls(self) -> bool:
        """Whether connections are encrypted."""
        return self._context is not None

    def wrap(self, plain: socket.socket, host: str, address: str, deadline: float) -> socket.socket | TlsSocket:
        """The socket to use: with TLS after its handshake, or `plain`. `TlsFailed`, `TimedOut`."""
        if self._context is None:
            return plain
        from barnabas.client.security.tls import TlsSocket

        secured = TlsSocket(plain, self._context, host, address)
        secured.handshake(deadline)
        return secured

    def authenticate(self, connection: Channel, deadline: float) -> float:
        """Log in; after how many seconds again, 0 for never. `AuthenticationFailed`, `TimedOut`, `Unreachable`."""
        if self._sasl is None:
            return 0.0
        from barnabas.client.security.sasl import authenticate

        return authenticate(connection, self._sasl, deadline)


def security_from(properties: Mapping[str, str]) -> Security | None:
    """The security of connections; None for plain ones. Keys without a meaning for security are left to the caller.

    `SecurityError` if a key is unknown, a value is wrong, a store cannot be read, or a key has no effect.
    """
    keys = {key: value.strip() for word, value in properties.items() if (key := security_key(word)) is not None}
    protocol = keys.get("security.protocol", "PLAINTEXT").upper()
    if protocol not in PROTOCOLS:
        raise SecurityError(f"security.protocol must be one of {', '.join(PROTOCOLS)}, not {protocol}")
    has_tls, has_sasl = protocol.endswith("SSL"), protocol.startswith("SASL")
    _refuse_unused(keys, protocol, has_tls=has_tls, has_sasl=has_sasl)
    if not has_tls and not has_sasl:
        return None
    try:
        return Security(protocol, _context(keys) if has_tls else None, _sasl(keys) if has_sasl else None)
    except (StoreError, JaasError) as error:
        raise SecurityError(str(error)) from None


def _refuse_unused(keys: Mapping[str, str], protocol: str, *, has_tls: bool, has_sasl: bool) -> None:
    """Passwords without SASL and CAs without TLS mean that security.protocol was forgotten."""
    for prefix, is_used, others in (("sasl.", has_sasl, "SASL_SSL"), ("ssl.", has_tls, "SSL or SASL_SSL")):
        unused = [key for key in keys if key.startswith(prefix)]
        if unused and not is_used and "security.protocol" not in keys:
            raise SecurityError(f"{unused[0]} has no effect with {protocol}: security.protocol must be {others}")


# --- TLS


def _context(keys: Mapping[str, str]) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    _versions(context, keys.get("ssl.enabled.protocols", ""))
    algorithm = keys.get("ssl.endpoint.identification.algorithm", "https")
    if algorithm.lower() not in ("https", ""):
        raise SecurityError(f"ssl.endpoint.identification.algorithm must be https or empty, not {algorithm!r}")
    context.check_hostname = bool(algorithm)
    context.verify_mode = ssl.CERT_REQUIRED
    trusted = _trust_store(keys)
    if trusted is None:
        context.load_default_certs(ssl.Purpose.SERVER_AUTH)
    else:
        trust(context, trusted)
    own = _key_store(keys)
    if own is not None:
        identify(context, own)
    return context


def _versions(context: ssl.SSLContext, text: str) -> None:
    words = [word.strip() for word in text.split(",") if word.strip()] or list(TLS_VERSIONS)
    unknown = [word for word in words if word not in TLS_VERSIONS]
    if unknown:
        raise SecurityError(f"ssl.enabled.protocols must be some of {', '.join(TLS_VERSIONS)}, not {unknown[0]!r}")
    versions = [TLS_VERSIONS[word] for word in words]
    context.minimum_version, context.maximum_version = min(versions), max(versions)


def _trust_store(keys: Mapping[str, str]) -> Store | None:
    pem = keys.get("ssl.truststore.certificates", "")
    location = keys.get("ssl.truststore.location") or keys.get("ssl.ca.location", "")
    if pem and location:
        raise SecurityError("ssl.truststore.certificates and a location of a trust store exclude each other")
    if not pem and not location:
        return None
    return Store("truststore", location, keys.get("ssl.truststore.type", ""), keys.get("ssl.truststore.password"), pem)


def _key_store(keys: Mapping[str, str]) -> Store | None:
    key, chain = keys.get("ssl.keystore.key", ""), keys.get("ssl.keystore.certificate.chain", "")
    location = keys.get("ssl.keystore.location", "")
    if bool(key) != bool(chain):
        raise SecurityError("ssl.keystore.key and ssl.keystore.certificate.chain are given together")
    if key and location:
        raise SecurityError("ssl.keystore.key and ssl.keystore.location exclude each other")
    if not key and not location:
        return None
    pem = f"{key}\n{chain}" if key else ""
    password, key_password = keys.get("ssl.keystore.password"), keys.get("ssl.key.password")
    return Store("keystore", location, keys.get("ssl.keystore.type", ""), password, pem, key_password)


# --- SASL


def _sasl(keys: Mapping[str, str]) -> Sasl:
    from barnabas.client.security.sasl import MECHANISMS, Sasl

    mechanism = keys.get("sasl.mechanism", "").upper()
    if mechanism not in MECHANISMS:
        described = f"not {mechanism}" if mechanism else "which has no default here"
        raise SecurityError(f"sasl.mechanism must be one of {', '.join(MECHANISMS)}, {described}")
    login = parse_jaas(keys["sasl.jaas.config"]) if "sasl.jaas.config" in keys else None
    class_name = LoginModule(LOGIN_MODULES[mechanism], {}).class_name
    if login is not None and login.class_name != class_name:
        raise SecurityError(f"sasl.jaas.config must have {class_name} for {mechanism}, not {login.class_name}")
    if mechanism == "OAUTHBEARER":
        from barnabas.client.security.oauth import token_source

        return Sasl(mechanism, token=token_source(keys, login), extensions=_extensions(login))
    options = {} if login is None else login.options
    user = options.get("username", keys.get("sasl.username"))
    password = options.get("password", keys.get("sasl.password"))
    if not user or password is None:
        raise SecurityError(
            f"{mechanism} needs a user and a password: sasl.username and sasl.password, or sasl.jaas.config with "
            'username="..." password="..."'
        )
    is_token = options.get("tokenauth", "false").lower() == "true"
    if is_token and mechanism == "PLAIN":
        raise SecurityError("tokenauth, a delegation token, is for SCRAM-SHA-256 and SCRAM-SHA-512 only")
    return Sasl(mechanism, user, password, is_token)


def _extensions(login: LoginModule | None) -> tuple[tuple[str, str], ...]:
    options = {} if login is None else login.options
    named = [name for name in options if name.startswith("extension_")]
    return tuple((name.removeprefix("extension_"), options[name]) for name in named)
