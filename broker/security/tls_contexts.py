"""OpenSSL contexts from settings and stores: of a listener, and of this node as a client.

As in Java, every certificate in a trust store is trusted, not only the roots. A private key goes to OpenSSL through a
file in memory, since Python's ssl module reads keys from paths only.
"""

from __future__ import annotations

import os
import ssl
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

from barnabas.broker.security.cipher_suites import split_suites
from barnabas.broker.security.pem import to_pem
from barnabas.broker.security.stores import UnreadableError
from barnabas.wire.configdef import ConfigError

if TYPE_CHECKING:
    from barnabas.broker.security.stores import KeyStore
    from barnabas.broker.security.tls_settings import TlsSettings

_VERSIONS: Final = {"TLSv1.2": ssl.TLSVersion.TLSv1_2, "TLSv1.3": ssl.TLSVersion.TLSv1_3}
_CLIENT_AUTH: Final = {"none": ssl.CERT_NONE, "requested": ssl.CERT_OPTIONAL, "required": ssl.CERT_REQUIRED}


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
        has_newer, older = split_suites(settings.cipher_suites)
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


def _load_keys(context: ssl.SSLContext, keys: KeyStore) -> None:
    with _readable(keys.pem.encode()) as path:
        try:
            context.load_cert_chain(path, password=lambda: keys.password)  # else OpenSSL asks on the terminal
        except ssl.SSLError as error:
            reason = (error.reason or str(error)).replace("_", " ").lower()
            hint = ""
            if "ENCRYPTED" in keys.pem:
                hint = "; is ssl.key.password right?" if keys.password else "; it needs ssl.key.password"
            raise ConfigError(
                f"The private key and certificate of the key store cannot be used: {reason}{hint}"
            ) from error


def _trust(context: ssl.SSLContext, trusted: Sequence[bytes] | None) -> None:
    """Trust these certificates; without a trust store, the system's."""
    if trusted is None:
        context.load_default_certs()
        return
    context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
    try:
        context.load_verify_locations(cadata="".join(map(to_pem, trusted)))
    except ssl.SSLError as error:
        raise ConfigError(f"The certificates of the trust store cannot be used: {error.reason or error}") from error


@contextmanager
def _readable(content: bytes) -> Iterator[str]:
    """A path from which `content` is read, for this process only and as long as it is used. UnreadableError."""
    try:
        if not hasattr(os, "memfd_create"):
            with _temporary(content) as path:
                yield path
            return
        descriptor = os.memfd_create("key")
        try:
            os.write(descriptor, content)
            yield f"/proc/self/fd/{descriptor}"
        finally:
            os.close(descriptor)
    except OSError as error:
        raise UnreadableError(f"The key store cannot be handed to OpenSSL: {error.strerror or error}") from error


@contextmanager
def _temporary(content: bytes) -> Iterator[str]:
    from tempfile import NamedTemporaryFile  # the file has the mode 0600

    with NamedTemporaryFile() as file:
        file.write(content)
        file.flush()
        yield file.name
