"""OpenSSL contexts from settings and stores: of a listener, and of this node as a client.

As in Java, every certificate in a trust store is trusted, not only the roots.

`ssl.cipher.suites` has the names of Java and IANA, which are translated to OpenSSL's. The suites of TLS 1.3 cannot be
chosen one by one through Python's ssl module: all three are allowed, or TLS 1.3 is not. A list with only some of them
is refused, since it would allow suites that it does not name.
"""

from __future__ import annotations

import re
import ssl
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from barnabas.broker.security.stores import UnreadableError
from barnabas.wire.configdef import ConfigError
from barnabas.wire.key_stores import key_file

if TYPE_CHECKING:
    from barnabas.broker.security.stores import KeyStore
    from barnabas.broker.security.tls_settings import TlsSettings

_VERSIONS: Final = {"TLSv1.2": ssl.TLSVersion.TLSv1_2, "TLSv1.3": ssl.TLSVersion.TLSv1_3}
_CLIENT_AUTH: Final = {"none": ssl.CERT_NONE, "requested": ssl.CERT_OPTIONAL, "required": ssl.CERT_REQUIRED}
_TLS_1_3: Final = frozenset({"TLS_AES_256_GCM_SHA384", "TLS_AES_128_GCM_SHA256", "TLS_CHACHA20_POLY1305_SHA256"})
_SUITE: Final = re.compile(r"TLS_(?:(ECDHE|DHE|RSA)(?:_(RSA|ECDSA))?)_WITH_(\w+)")
_CIPHERS: Final = {
    "AES_128_GCM_SHA256": "AES128-GCM-SHA256",
    "AES_256_GCM_SHA384": "AES256-GCM-SHA384",
    "CHACHA20_POLY1305_SHA256": "CHACHA20-POLY1305",
    "AES_128_CBC_SHA256": "AES128-SHA256",
    "AES_256_CBC_SHA256": "AES256-SHA256",
    "AES_256_CBC_SHA384": "AES256-SHA384",
    "AES_128_CBC_SHA": "AES128-SHA",
    "AES_256_CBC_SHA": "AES256-SHA",
}


def server_context(settings: TlsSettings, keys: KeyStore, trusted: Sequence[bytes] | None) -> ssl.SSLContext:
    """The context of a listener. ConfigError if OpenSSL refuses the settings."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.options |= ssl.OP_NO_RENEGOTIATION
    context.verify_mode = _CLIENT_AUTH[settings.client_auth]
    _set_versions(context, settings)
    _load_keys(context, keys)
    if context.verify_mode != ssl.CERT_NONE:
        _trust(context, trusted)
    return context


def client_context(settings: TlsSettings, keys: KeyStore | None, trusted: Sequence[bytes] | None) -> ssl.SSLContext:
    """The context of connections that this node opens. ConfigError if OpenSSL refuses the settings."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = bool(settings.identification)
    _set_versions(context, settings)
    if settings.protocol == "TLSv1.2" and context.minimum_version == ssl.TLSVersion.TLSv1_2:
        context.maximum_version = ssl.TLSVersion.TLSv1_2  # as in Java; a server uses only the enabled ones
    if keys is not None:
        _load_keys(context, keys)
    _trust(context, trusted)
    return context


def check_settings(settings: TlsSettings) -> None:
    """Raise ConfigError for values that are known to Java only."""
    _versions(settings)
    if settings.protocol not in {*_VERSIONS, "TLS"}:
        raise ConfigError(f"ssl.protocol={settings.protocol} is not supported: use TLSv1.3 or TLSv1.2")
    if settings.identification.lower() not in {"", "https"}:
        raise ConfigError(
            f"ssl.endpoint.identification.algorithm={settings.identification} is not supported: use https, or an empty "
            "value to check no names"
        )


def _versions(settings: TlsSettings) -> list[ssl.TLSVersion]:
    unknown = [name for name in settings.enabled_protocols if name not in _VERSIONS]
    if unknown or not settings.enabled_protocols:
        raise ConfigError(
            f"ssl.enabled.protocols={','.join(settings.enabled_protocols)} is not supported: TLSv1.2 and TLSv1.3 are"
        )
    return sorted(_VERSIONS[name] for name in settings.enabled_protocols)


def _set_versions(context: ssl.SSLContext, settings: TlsSettings) -> None:
    check_settings(settings)
    versions = _versions(settings)
    if settings.cipher_suites:
        has_newer, older = _split_suites(settings.cipher_suites)
        if older:
            try:
                context.set_ciphers(older)
            except ssl.SSLError as error:
                raise ConfigError(
                    f"OpenSSL supports none of ssl.cipher.suites={','.join(settings.cipher_suites)}"
                ) from error
        usable = {ssl.TLSVersion.TLSv1_3: has_newer, ssl.TLSVersion.TLSv1_2: bool(older)}
        versions = [version for version in versions if usable[version]]
        if not versions:
            raise ConfigError("ssl.cipher.suites has no suite of a version in ssl.enabled.protocols")
    context.minimum_version, context.maximum_version = versions[0], versions[-1]


def _split_suites(names: Sequence[str]) -> tuple[bool, str]:
    """Whether the names allow TLS 1.3, and OpenSSL's list of the others. ConfigError for a name that is unknown."""
    newer = _TLS_1_3.intersection(names)
    if newer and newer != _TLS_1_3:
        missing = ", ".join(sorted(_TLS_1_3 - newer))
        raise ConfigError(
            f"ssl.cipher.suites has some suites of TLS 1.3, but not {missing}: all of them can be allowed here, or "
            "none. Name all three, or none of them to have TLS 1.2 only"
        )
    return bool(newer), ":".join(_openssl_name(name) for name in names if name not in _TLS_1_3)


def _openssl_name(name: str) -> str:
    match = _SUITE.fullmatch(name)
    cipher = _CIPHERS.get(match[3]) if match is not None else None
    if match is None or cipher is None:
        raise ConfigError(f"ssl.cipher.suites has {name}, which is unknown or too weak to be supported")
    exchange = [part for part in match.group(1, 2) if part is not None]
    return cipher if exchange == ["RSA"] else "-".join((*exchange, cipher))


def _load_keys(context: ssl.SSLContext, keys: KeyStore) -> None:
    try:
        with key_file(keys.pem) as path:
            context.load_cert_chain(path, password=lambda: keys.password)  # else OpenSSL asks on the terminal
    except ssl.SSLError as error:  # an OSError as well
        reason = (error.reason or str(error)).replace("_", " ").lower()
        hint = ""
        if "ENCRYPTED" in keys.pem:
            hint = "; is ssl.key.password right?" if keys.password else "; it needs ssl.key.password"
        raise ConfigError(f"The private key and certificate of the key store cannot be used: {reason}{hint}") from error
    except OSError as error:
        raise UnreadableError(f"The key store cannot be handed to OpenSSL: {error.strerror or error}") from error


def _trust(context: ssl.SSLContext, trusted: Sequence[bytes] | None) -> None:
    """Trust these certificates; without a trust store, the system's."""
    if trusted is None:
        context.load_default_certs()
        return
    context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
    try:
        context.load_verify_locations(cadata=b"".join(trusted))
    except ssl.SSLError as error:
        raise ConfigError(f"The certificates of the trust store cannot be used: {error.reason or error}") from error
