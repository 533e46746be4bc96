"""The states of a connection on a listener with SASL (KIP-43, KIP-152, KIP-368).

    INITIAL ── ApiVersions ──▸ VERSIONS_KNOWN ── SaslHandshake ──▸ TOKENS ── tokens ──▸ COMPLETE
       └───────────────────────── SaslHandshake ─────────────────────┘                   │
                                                  ▴── SaslHandshake, before the session ends ┘

Until a connection is complete it may send nothing else. A complete one has an authenticator only if its session ends:
then it may authenticate again, as the same principal, and once the session has ended it may send nothing else. After
SaslHandshake v0 tokens are frames without a header, after v1 they are in SaslAuthenticate. A failure is answered after
`connection.failed.authentication.delay.ms`, during which nothing is read, and closes the connection. Source: Kafka 4.4
`SaslServerAuthenticator`, `KafkaChannel.maybeBeginServerReauthentication`, `Selector`.
"""

from __future__ import annotations

from enum import Enum, auto
from typing import TYPE_CHECKING, Final, Protocol

from barnabas.coord.security.exchange import AuthenticationFailed, Identity, InvalidCredentials
from barnabas.wire.api_keys import ApiKey
from barnabas.wire.errors import ErrorCode, KafkaError, ProtocolError
from barnabas.wire.messages.security.sasl import SaslAuthenticateResponse, SaslHandshakeResponse

if TYPE_CHECKING:
    from barnabas.broker.config.sasl_settings import SaslSettings
    from barnabas.broker.event_loop.limited_log import LimitedLog
    from barnabas.broker.event_loop.loop import Loop
    from barnabas.broker.net.connection import Connection
    from barnabas.broker.net.encoded_response import EncodedResponse
    from barnabas.broker.net.log_ins import LogIns
    from barnabas.coord.security.exchange import Exchange
    from barnabas.wire.principal import KafkaPrincipal
    from barnabas.wire.schema import Message

MIN_REAUTHENTICATION_S: Final = 1.0
"""A connection may begin to authenticate again once in this time."""


class State(Enum):
    """What a connection may send next."""

    INITIAL = auto()
    VERSIONS_KNOWN = auto()
    TOKENS = auto()
    BAD_MECHANISM = auto()
    """The client authenticates again with another mechanism: its next token fails."""
    COMPLETE = auto()
    FAILED = auto()


# Tuples: they are compared by identity, sets by a hash that is a function of Python.
_AWAITS_TOKENS: Final = (State.TOKENS, State.BAD_MECHANISM)
_BEFORE_HANDSHAKE: Final = (State.INITIAL, State.VERSIONS_KNOWN)


class Admission(Enum):
    """How a request is handled."""

    SERVED = auto()
    ILLEGAL = auto()
    """The answer is ILLEGAL_SASL_STATE, and the connection is closed."""
    EXPIRED = auto()
    """The session has ended: the connection is closed."""


# A member of an enumeration is looked up by a function of Python; these are asked for in each request of a log-in.
_TOKENS: Final = State.TOKENS
_COMPLETE: Final = State.COMPLETE
_INITIAL: Final = State.INITIAL
_BAD_MECHANISM: Final = State.BAD_MECHANISM
_SERVED: Final = Admission.SERVED
_SASL_HANDSHAKE: Final = int(ApiKey.SASL_HANDSHAKE)
_SASL_AUTHENTICATE: Final = int(ApiKey.SASL_AUTHENTICATE)
_API_VERSIONS: Final = int(ApiKey.API_VERSIONS)


class AuthenticationRefused(Exception):  # noqa: N818 (an answer)
    """The authentication has failed; `response` is the answer, None for none."""

    def __init__(self, reason: str, response: Message | None) -> None:
        super().__init__(reason)
        self.response = response


class Listener(Protocol):
    """The shared part of a listener's connections (`sasl_listener`)."""

    loop: Loop
    settings: SaslSettings
    log_context: str
    log: LimitedLog
    failure_delay_s: float
    max_frame_bytes: int
    log_ins: LogIns

    def handshake_answer(self, version: int) -> EncodedResponse:
        """The answer to a handshake that has succeeded."""

    def exchange(self, mechanism: str) -> Exchange:
        """The server's side of an enabled mechanism."""


class SaslAuthenticator:
    """The authentication of one connection."""

    __slots__ = (
        "_connection",
        "_exchange",
        "_expires_at",
        "_has_headers",
        "_last_began",
        "_listener",
        "_mechanism",
        "_previous",
        "_state",
    )

    def __init__(self, listener: Listener, connection: Connection) -> None:
        self._listener = listener
        self._connection = connection
        self._state = State.INITIAL
        self._exchange: Exchange | None = None
        self._mechanism = ""
        self._has_headers = False
        self._previous: tuple[str, KafkaPrincipal] | None = None
        self._expires_at = 0.0
        self._last_began = 0.0

    @property
    def takes_tokens(self) -> bool:
        """Whether the next frame is a token without a header."""
        return not self._has_headers and self._state in _AWAITS_TOKENS

    @property
    def is_complete(self) -> bool:
        """Whether the connection is authenticated, and not in the middle of another authentication."""
        return self._state is _COMPLETE

    @property
    def failure_delay_s(self) -> float:
        """How long the answer to a failure is delayed, seconds."""
        return self._listener.failure_delay_s

    def admit(self, api_key: int, now: float) -> Admission:
        """Whether a request is served in this state. ProtocolError if the connection is closed because of it."""
        state = self._state
        if state is _COMPLETE:
            return self._admit_to_session(api_key, now)
        if state is _TOKENS:
            return _SERVED if api_key == _SASL_AUTHENTICATE else Admission.ILLEGAL
        if state is _BAD_MECHANISM:
            if api_key == _SASL_AUTHENTICATE:
                return _SERVED  # its token is refused
            raise ProtocolError("Unexpected Kafka request during SASL re-authentication with another mechanism")
        if api_key == _SASL_HANDSHAKE and state in _BEFORE_HANDSHAKE:
            return _SERVED
        if api_key == _API_VERSIONS:
            if state is _INITIAL and self._previous is None:
                return _SERVED
            raise ProtocolError("Unexpected ApiVersions request received during SASL authentication")
        name = ApiKey(api_key).name if api_key in set(ApiKey) else str(api_key)
        connection = self._connection
        raise ProtocolError(
            f"Unexpected Kafka request of type {name} during SASL handshake: the client does not log in. Set "
            f"security.protocol={connection.security_protocol} in it, as the listener {connection.listener} has it"
        )

    def _admit_to_session(self, api_key: int, now: float) -> Admission:
        if api_key == ApiKey.SASL_HANDSHAKE and (
            not self._last_began or now - self._last_began >= MIN_REAUTHENTICATION_S
        ):
            self._last_began = now
            self._previous = (self._mechanism, self._connection.principal)
            self._state = State.INITIAL
            self._has_headers = False
            return _SERVED
        if now >= self._expires_at:
            self._listener.log_ins.expired_connections_killed += 1
            return Admission.EXPIRED
        return _SERVED

    def versions_answered(self) -> None:
        """ApiVersions was answered: the next request must be SaslHandshake."""
        if self._state is _INITIAL:
            self._state = State.VERSIONS_KNOWN

    def handshake(self, mechanism: str, version: int) -> EncodedResponse:
        """Answer SaslHandshake. AuthenticationRefused for a mechanism that is not enabled."""
        enabled = self._listener.settings.mechanisms
        self._has_headers = self._has_headers or version >= 1
        if mechanism not in enabled:
            code = int(ErrorCode.UNSUPPORTED_SASL_MECHANISM)
            response = SaslHandshakeResponse(error_code=code, mechanisms=list(enabled))
            text = f"Unsupported SASL mechanism {mechanism[:64]}: the listener has {', '.join(enabled)}"
            raise self._refused(text, response)
        if self._previous is not None and self._previous[0] != mechanism:
            self._state = _BAD_MECHANISM
        else:
            self._state = _TOKENS
            self._exchange = self._listener.exchange(mechanism)
        self._mechanism = mechanism
        return self._listener.handshake_answer(version)

    def authenticate(self, token: bytes) -> SaslAuthenticateResponse:
        """Answer SaslAuthenticate. AuthenticationRefused when the authentication fails."""
        try:
            challenge, lifetime_ms = self._step(token)
        except AuthenticationRefused as error:
            if self._state is not State.BAD_MECHANISM:
                code = int(ErrorCode.SASL_AUTHENTICATION_FAILED)
                error.response = SaslAuthenticateResponse(error_code=code, error_message=str(error))
            self._state = State.FAILED
            raise
        return SaslAuthenticateResponse(error_message="", auth_bytes=challenge, session_lifetime_ms=lifetime_ms)

    def token(self, token: bytes) -> bytes:
        """Answer a token without a header. AuthenticationRefused, without an answer, when the authentication fails."""
        try:
            return self._step(token)[0]
        except AuthenticationRefused:
            self._state = State.FAILED
            raise

    def illegal(self, api_key: int) -> KafkaError:
        """The error of a request in place of SaslAuthenticate."""
        text = f"Unexpected Kafka request of type {ApiKey(api_key).name} during SASL authentication."
        self._refused(text, None)
        return KafkaError(ErrorCode.ILLEGAL_SASL_STATE, text)

    def _step(self, token: bytes) -> tuple[bytes, int]:
        """The exchange's answer to a token, and the lifetime of the session once it is complete."""
        if self._state is _BAD_MECHANISM:
            assert self._previous is not None
            raise self._refused(
                f"SASL mechanism '{self._mechanism}' requested by client is not supported for re-authentication of "
                f"mechanism '{self._previous[0]}'",
                None,
                State.BAD_MECHANISM,
            )
        exchange = self._exchange
        assert exchange is not None
        try:
            challenge = exchange.step(token, self._listener.loop.now_ms())
        except AuthenticationFailed as error:
            raise self._refused(str(error), None, why=error.why) from error
        except InvalidCredentials as error:
            again = "authentication" if self._previous is None else "re-authentication"
            self._listener.log.detail("%s: %s", self._mechanism, error)
            raise self._refused(
                f"Authentication failed during {again} due to invalid credentials with SASL mechanism "
                f"{self._mechanism}",
                None,
            ) from error
        if exchange.identity is None:
            return challenge, 0
        return challenge, self._complete(exchange.identity)

    def _complete(self, identity: Identity) -> int:
        """Complete the authentication; return the lifetime of the session in milliseconds, 0 for no end."""
        connection, listener = self._connection, self._listener
        if self._previous is not None:
            before, principal = self._previous[1], identity.principal
            if before[:2] != principal[:2]:
                raise self._refused(
                    f"Cannot change principals during re-authentication from {before.type}.{before.name}: "
                    f"{principal.type}.{principal.name}",
                    None,
                )
            listener.log_ins.successful_reauthentications += 1
        else:
            listener.log_ins.successful_authentications += 1
        self._exchange = None
        self._state = _COMPLETE
        connection.principal = identity.principal
        connection.limit_frames(listener.max_frame_bytes)
        connection.authenticated()
        lifetime_ms = self._lifetime_ms(identity)
        if lifetime_ms is None:
            connection.authenticator = None
            return 0
        self._expires_at = connection.clock() + lifetime_ms / 1000
        return lifetime_ms

    def _lifetime_ms(self, identity: Identity) -> int | None:
        """How long the session lasts: as long as the credential, and connections.max.reauth.ms at most."""
        maximum = self._listener.settings.max_reauth_ms[self._mechanism]
        if maximum <= 0 and identity.expires_ms is None:
            return None
        limits = [maximum] if maximum > 0 else []
        if identity.expires_ms is not None:
            limits.append(max(0, identity.expires_ms - self._listener.loop.now_ms()))
        return min(limits, default=None)

    def _refused(
        self, reason: str, response: Message | None, state: State = State.FAILED, *, why: str = ""
    ) -> AuthenticationRefused:
        """Count and log a failure, in Kafka's form; `why` is only for the log."""
        connection, listener = self._connection, self._listener
        self._state = state
        is_again = self._previous is not None
        if is_again:
            listener.log_ins.failed_reauthentications += 1
        else:
            listener.log_ins.failed_authentications += 1
        peer = f"{connection.peer_host}:{connection.peer_port}"
        listener.log.line(
            connection.peer_host,
            "%s Failed %sauthentication with /%s (channelId=%s:%d-%s-0-0) (%s)",
            *(listener.log_context, "re-" if is_again else "", connection.peer_host),
            *(connection.local_host, connection.local_port, peer, f"{reason}: {why}" if why else reason),
        )
        return AuthenticationRefused(reason, response)
