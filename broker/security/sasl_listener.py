"""SASL on one listener: gives each connection its authenticator, and has the credentials for the exchanges.

The credentials of SCRAM are read from the metadata at each log-in.
"""

from __future__ import annotations

import hmac
import logging
import os
from collections.abc import Callable
from functools import lru_cache
from typing import TYPE_CHECKING

from barnabas.broker.config.keys.general import DELEGATION_TOKEN_SECRET_KEY
from barnabas.broker.config.keys.network import CONNECTION_FAILED_AUTHENTICATION_DELAY_MS, SOCKET_REQUEST_MAX_BYTES
from barnabas.broker.config.sasl_settings import sasl_settings
from barnabas.broker.event_loop.limited_log import LimitedLog
from barnabas.broker.net.encoded_response import EncodedResponse
from barnabas.broker.net.log_ins import LogIns
from barnabas.broker.security.sasl_authenticator import SaslAuthenticator
from barnabas.coord.security.claims import identity_of
from barnabas.coord.security.oauthbearer import OAUTHBEARER, OAuthBearerExchange, unsecured_claims
from barnabas.coord.security.plain import PLAIN, PlainExchange
from barnabas.coord.security.scram import SCRAM_MECHANISMS, ScramMechanism
from barnabas.coord.security.scram_server import Credential, FakeCredentials, ScramExchange, TokenCredential
from barnabas.coord.security.tokens import principal_of, token_password
from barnabas.wire.messages.security.sasl import SaslHandshakeResponse

if TYPE_CHECKING:
    from barnabas.broker.config.server_config import ServerConfig
    from barnabas.broker.event_loop.disk_threads import DiskExecutor
    from barnabas.broker.event_loop.loop import Loop
    from barnabas.broker.net.connection import Connection
    from barnabas.coord.cluster.image import ClusterImage
    from barnabas.coord.security.exchange import Exchange, Identity
    from barnabas.wire.messages.records.metadata_records import UserScramCredentialRecord

logger = logging.getLogger("kafka.network.Selector")


class SaslListener:
    """The shared part of a listener's connections."""

    def __init__(
        self,
        loop: Loop,
        config: ServerConfig,
        name: str,
        image: Callable[[], ClusterImage],
        *,
        executor: DiskExecutor,
        is_controller: bool = False,
        random_bytes: Callable[[int], bytes] = os.urandom,
        log_ins: LogIns | None = None,
    ) -> None:
        """`image` has the credentials of SCRAM; `executor` waits for the keys of OAUTHBEARER.

        ConfigError for settings that cannot work.
        """
        self.loop = loop
        self.settings = sasl_settings(config, name)
        self.log_context = (
            f"[SocketServer listenerType={'CONTROLLER' if is_controller else 'BROKER'}, nodeId={config.node_id}]"
        )
        self.log = LimitedLog(loop, logger, logging.INFO, f"failed authentications on the listener {name}")
        self.failure_delay_s = config[CONNECTION_FAILED_AUTHENTICATION_DELAY_MS] / 1000
        self.max_frame_bytes = config[SOCKET_REQUEST_MAX_BYTES]
        self._token_secret = config[DELEGATION_TOKEN_SECRET_KEY] or None
        self._image = image
        self._random_bytes = random_bytes
        self._fakes = FakeCredentials(random_bytes(32))
        self._model: UserScramCredentialRecord | None = None
        self._tokens = self._token_check(executor)
        self._handshake_answers: dict[int, EncodedResponse] = {}
        self.log_ins = LogIns() if log_ins is None else log_ins

    def attach(self, connection: Connection) -> None:
        """Require a new connection to authenticate first."""
        connection.authenticator = SaslAuthenticator(self, connection)
        connection.limit_frames(self.settings.max_receive_bytes)

    def handshake_answer(self, version: int) -> EncodedResponse:
        """The answer to a handshake that has succeeded: the same for all clients, encoded once for each version."""
        encoded = self._handshake_answers.get(version)
        if encoded is None:
            encoded = self._handshake_answers[version] = EncodedResponse()
            response = SaslHandshakeResponse(mechanisms=list(self.settings.mechanisms))
            encoded.chunks = response.encode_chunks(version)
        return encoded

    def exchange(self, mechanism: str) -> Exchange:
        """The server's side of an enabled mechanism."""
        if mechanism == PLAIN:
            return PlainExchange(self.settings.plain_users)
        if self._tokens is not None and mechanism == OAUTHBEARER:
            return OAuthBearerExchange(self._tokens)
        scram = SCRAM_MECHANISMS[mechanism]
        return ScramExchange(
            scram,
            lambda name: self._credential(scram, name),
            lambda token_id: self._token(scram, token_id),
            self._random_bytes,
        )

    def _token_check(self, executor: DiskExecutor) -> Callable[[str, int], Identity] | None:
        """Return a function that returns the identity of a token's bearer; None without OAUTHBEARER."""
        oauth = self.settings.oauth
        if oauth is None:
            return None
        if oauth.jwks_url is None:
            rules = oauth.rules
            return lambda token, now_ms: identity_of(unsecured_claims(token), rules, now_ms)
        from barnabas.broker.security.jwks import Jwks
        from barnabas.broker.security.signed_tokens import SignedTokens  # with a library of 100 ms

        return SignedTokens(Jwks(self.loop, executor, oauth), oauth.rules).validate

    def _credential(self, mechanism: ScramMechanism, name: str) -> tuple[Credential, bool]:
        record = self._image().scram.get((name, mechanism.id))
        if record is not None:
            return _credential_of(record), True
        return self._fake(mechanism, name), False

    def _fake(self, mechanism: ScramMechanism, name: str) -> Credential:
        """A fake credential that looks like a real one; all brokers make the same one while one credential stays."""
        scram = self._image().scram
        model = self._model
        if model is None or scram.get((model.name, model.mechanism)) is not model:
            model = self._model = scram[min(scram)] if scram else None
            if model is not None:
                self._fakes = FakeCredentials(bytes(model.server_key))
        return self._fakes.credential(mechanism, name, None if model is None else _credential_of(model))

    def _token(self, mechanism: ScramMechanism, token_id: str) -> TokenCredential | None:
        """A delegation token of the metadata as a credential (KIP-48)."""
        record = self._image().tokens.get(token_id)
        if record is None or self._token_secret is None:
            return None
        expires_ms = min(record.expiration_timestamp, record.max_timestamp)
        return TokenCredential(
            _credential_of_token(mechanism, self._token_secret, token_id), principal_of(record.owner), expires_ms
        )


@lru_cache(maxsize=4096)
def _credential_of_token(mechanism: ScramMechanism, secret: str, token_id: str) -> Credential:
    """The credential of a token's password, with a salt that is always the same. It takes a millisecond or two."""
    salt = hmac.digest(secret.encode(), f"{mechanism.name} salt {token_id}".encode(), "sha256")
    salted = mechanism.salted_password(token_password(secret, token_id), salt, mechanism.min_iterations)
    return Credential(salt, mechanism.stored_key(salted), mechanism.server_key(salted), mechanism.min_iterations)


def _credential_of(record: UserScramCredentialRecord) -> Credential:
    return Credential(bytes(record.salt), bytes(record.stored_key), bytes(record.server_key), record.iterations)
