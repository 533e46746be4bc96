"""The TLS identity of a node: contexts, mapping of principals, and the check of a later replacement.

A listener keeps its `LiveIdentity`; its content is replaced as a whole, for new connections. The new content must be
compatible, so that clients that trusted the old certificate are not locked out: the same distinguished name, and at
least the same alternative names, unless `ssl.allow.dn.changes` and `ssl.allow.san.changes` say otherwise. On the
inter-broker listener old and new must be able to talk to each other. Source: Kafka 4.4 `SslFactory`.
"""

from __future__ import annotations

import ssl
from time import gmtime, strftime
from typing import TYPE_CHECKING, NamedTuple

from barnabas.broker.security.certificate import parse_certificate, subject_name
from barnabas.broker.security.principal_mapping import NoMatchingRuleError, PrincipalMapping
from barnabas.broker.security.stores import KeyStore, load_key_store, load_trust_store
from barnabas.broker.security.tls_contexts import client_context, server_context
from barnabas.wire.configdef import ConfigError
from barnabas.wire.principal import ANONYMOUS, USER_TYPE, KafkaPrincipal

if TYPE_CHECKING:
    from barnabas.broker.security.tls_settings import TlsSettings


class TlsIdentity(NamedTuple):
    """One state of a listener's settings and stores."""

    settings: TlsSettings
    keys: KeyStore | None
    trusted: tuple[bytes, ...] | None
    server: ssl.SSLContext | None
    client: ssl.SSLContext
    mapping: PrincipalMapping


def load_identity(settings: TlsSettings, listener: str, *, serves: bool) -> TlsIdentity:
    """Read the stores, and make the contexts; `serves`: also the listener's. ConfigError if that fails."""
    try:
        keys = load_key_store(settings.key_store)
        trusted = load_trust_store(settings.trust_store)
        if serves and keys is None:
            raise ConfigError("there is no key store: set ssl.keystore.location, or ssl.keystore.key and its chain")
        return TlsIdentity(
            settings,
            keys,
            trusted,
            server_context(settings, keys, trusted) if serves and keys is not None else None,
            client_context(settings, keys, trusted),
            PrincipalMapping(settings.mapping_rules),
        )
    except ConfigError as error:
        raise type(error)(f"TLS of the listener {listener}: {error}") from error


def check_replacement(old: TlsIdentity, new: TlsIdentity) -> None:
    """Raise ConfigError if clients that use the old certificate would be locked out by the new one."""
    if old.keys is None or new.keys is None:
        if old.keys is not new.keys:
            raise ConfigError(
                "Cannot add SSL keystore to an existing listener for which no keystore was configured."
                if old.keys is None
                else "Cannot remove the SSL keystore from an existing listener for which a keystore was configured."
            )
    else:
        _check_names(old.keys, new.keys, new.settings)
    if old.trusted is None and new.trusted is not None:
        raise ConfigError("Cannot add SSL truststore to an existing listener for which no truststore was configured.")


def _check_names(old: KeyStore, new: KeyStore, settings: TlsSettings) -> None:
    before, after = parse_certificate(old.chain[0]), parse_certificate(new.chain[0])
    names = subject_name(before), subject_name(after)
    if not settings.allows_dn_changes and names[0].lower() != names[1].lower():
        raise ConfigError(
            f"Keystore DistinguishedName does not match: existing={{DN={names[0]}}}, new={{DN={names[1]}}} "
            "(ssl.allow.dn.changes)"
        )
    if not settings.allows_san_changes and not before.alternative_names <= after.alternative_names:
        missing = len(before.alternative_names - after.alternative_names)
        raise ConfigError(
            f"Keystore SubjectAltNames do not match: {missing} of the existing ones are not in the new certificate "
            "(ssl.allow.san.changes)"
        )


def why_not_valid(keys: KeyStore, now_s: float) -> str | None:
    """Why clients will refuse a certificate at this time; None if it is valid."""
    first, last = parse_certificate(keys.chain[0]).validity
    now = strftime("%Y-%m-%dT%H:%M:%SZ", gmtime(now_s))
    if first <= now <= last:
        return None
    return f"it has ended at {last}" if now > last else f"it begins at {first}"


def check_handshake(server: TlsIdentity, client: TlsIdentity) -> None:
    """Raise ConfigError unless a node with `client` can connect to one with `server`; names are not checked."""
    assert server.server is not None
    settings = client.settings._replace(identification="")
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    client_side = client_context(settings, client.keys, client.trusted).wrap_bio(to_client, to_server)
    server_side = server.server.wrap_bio(to_server, to_client, server_side=True)
    try:
        waiting = [client_side, server_side]
        for _ in range(10):
            waiting = [side for side in waiting if not _handshake_step(side)]
        if client_side.version() is not None and server_side.version() is not None:
            return
        why = "the handshake does not end"
    except ssl.SSLCertVerificationError as error:
        why = error.verify_message
    except ssl.SSLError as error:
        why = (error.reason or str(error)).replace("_", " ").lower()
    raise ConfigError(
        "A client SSLEngine created with the provided settings can't connect to a server SSLEngine created with those "
        f"settings: {why}. The trust store must trust the node's own certificate, since brokers connect to each other"
    )


def _handshake_step(side: ssl.SSLObject) -> bool:
    try:
        side.do_handshake()
    except ssl.SSLWantReadError:
        return False
    return True


class LiveIdentity:
    """The current identity of a listener (`net.tls_channel.Identity`)."""

    def __init__(self, listener: str, identity: TlsIdentity) -> None:
        self.listener = listener
        self.current = identity

    @property
    def context(self) -> ssl.SSLContext:
        """The context of the listener."""
        assert self.current.server is not None
        return self.current.server

    @property
    def client_context(self) -> ssl.SSLContext:
        """The context of connections that this node opens to such a listener."""
        return self.current.client

    def principal(self, certificate: bytes | None) -> KafkaPrincipal:
        """The principal for a client's certificate (DER). PermissionError if no rule matches its name."""
        if certificate is None:
            return ANONYMOUS
        name = subject_name(parse_certificate(certificate))
        try:
            return KafkaPrincipal(USER_TYPE, self.current.mapping.name_of(name))
        except NoMatchingRuleError as error:
            raise PermissionError(str(error)) from error
