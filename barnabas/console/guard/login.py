"""The log-in of people with their own SASL user: whether a cluster wants one, and the check of a password.

The broker checks the password, by SCRAM or PLAIN, on a connection of its own. The console keeps nothing but what the
session needs to open further connections as this user. What the user may do is decided by the broker, each time.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass
from time import monotonic
from typing import TYPE_CHECKING, Final

import anyio
import anyio.to_thread

from barnabas.client.cluster import Cluster, parse_addresses
from barnabas.client.connection import NodeConnection
from barnabas.client.errors import AuthenticationFailed, ClientError
from barnabas.client.security.jaas import login_line
from barnabas.client.security.settings import security_from
from barnabas.console.guard.bodies import RefusedError
from barnabas.console.guard.sessions import Attempts, Session, Sessions
from barnabas.wire.messages.security.sasl import SaslHandshakeRequest, SaslHandshakeResponse

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

PREFERRED: Final = ("SCRAM-SHA-512", "SCRAM-SHA-256", "PLAIN")
"""The mechanisms with a password; the first that the broker has and the user has a credential of."""
PATIENCE_S: Final = 10.0
MAX_NAME, MAX_PASSWORD = 255, 1024
MAX_CHECKS: Final = 4
"""Log-ins that are checked at the same time: each takes a thread and hashes the password some thousand times."""
WRONG: Final = "The broker does not accept this user and password."

logger = logging.getLogger("barnabas.console.audit")


@dataclass(frozen=True, slots=True)
class LoginWay:
    """How people log in at a listener: the mechanisms to try, and the properties that all connections have."""

    mechanisms: tuple[str, ...]
    properties: Mapping[str, str]

    def properties_of(self, mechanism: str, user: str, password: str) -> dict[str, str]:
        """The client configuration of a user."""
        own = {"sasl.mechanism": mechanism, "sasl.jaas.config": login_line(mechanism, user, password)}
        return dict(self.properties) | own


def login_way(bootstrap: str, properties: Mapping[str, str], *, is_forced: bool = False) -> LoginWay | None:
    """How people log in; None if they do not: the listener has no SASL, or the configuration has a user.

    `is_forced` (--login) has people log in even if the configuration has a user. ClientError if no broker answers, and
    ValueError, one sentence, if a log-in is wanted that the listener cannot have.
    """
    if has_user(properties) and not is_forced:
        return None
    shared = {key: value for key, value in properties.items() if key.startswith("ssl.")}
    protocol = properties.get("security.protocol", "PLAINTEXT").upper()
    has_tls = protocol.endswith("SSL")
    transport = shared | {"security.protocol": "SSL"} if has_tls else {}
    is_known = is_forced or protocol.startswith("SASL")  # brokers log a warning for a log-in that they do not have
    offered = _mechanisms(bootstrap, transport) if is_known or not _serves_anybody(bootstrap, transport) else []
    known = tuple(name for name in PREFERRED if name in offered)
    if offered and not known:
        raise ValueError(
            f"people cannot log in with a password: the listener's only mechanisms are {', '.join(offered)}; "
            "give the console a user in --command-config"
        )
    if not known:
        if is_forced:
            raise ValueError("--login is for a broker whose listener has SASL: 'barnabas serve --secure' starts one")
        return None
    if not has_tls and known != ("PLAIN",):
        known = tuple(name for name in known if name != "PLAIN")  # it would send the password as it is
    return LoginWay(known, shared | {"security.protocol": "SASL_SSL" if has_tls else "SASL_PLAINTEXT"})


def has_user(properties: Mapping[str, str]) -> bool:
    """Whether a client configuration says who the client is, by SASL or a certificate."""
    names = ("sasl.username", "sasl.jaas.config", "ssl.keystore.location", "ssl.keystore.key")
    is_oauth = properties.get("sasl.mechanism", "").upper() == "OAUTHBEARER"
    return is_oauth or any(properties.get(name) for name in names)


def _serves_anybody(bootstrap: str, properties: Mapping[str, str]) -> bool:
    """Whether a listener serves clients that have not logged in. ClientError if no broker answers."""
    security = security_from(properties)
    with Cluster(bootstrap, client_id="barnabas-console", timeout_s=PATIENCE_S, security=security) as cluster:
        try:
            cluster.metadata([], monotonic() + PATIENCE_S)
        except AuthenticationFailed:
            return False
    return True


def _mechanisms(bootstrap: str, properties: Mapping[str, str]) -> Sequence[str]:
    """The SASL mechanisms of the first listener that answers; none if it has no SASL."""
    last: ClientError | None = None
    for host, port in parse_addresses(bootstrap):
        deadline = monotonic() + PATIENCE_S
        connection = NodeConnection(host, port, "barnabas-console", "0", security_from(properties))
        connection.explains_closing = False
        try:
            connection.open(deadline)
            request = SaslHandshakeRequest(mechanism="?")
            return list(connection.call(request, SaslHandshakeResponse, deadline).mechanisms)
        except ClientError as error:
            last = error
        finally:
            connection.close()
    assert last is not None
    raise last


def check_password(bootstrap: str, properties: Mapping[str, str]) -> None:
    """Log in once. `AuthenticationFailed` if the broker refuses, another ClientError if none answers."""
    security = security_from(properties)
    with Cluster(bootstrap, client_id="barnabas-console", timeout_s=PATIENCE_S, security=security) as cluster:
        cluster.any_node(monotonic() + PATIENCE_S)


class LogIn:
    """Checks passwords and begins sessions."""

    def __init__(
        self,
        way: LoginWay,
        bootstrap: str,
        sessions: Sessions,
        *,
        attempts: Attempts | None = None,
        check: Callable[[str, Mapping[str, str]], None] = check_password,
    ) -> None:
        self._way = way
        self._bootstrap = bootstrap
        self._sessions = sessions
        self._attempts = attempts or Attempts()
        self._check = check
        self._checks: anyio.CapacityLimiter | None = None

    async def begin(self, user: str, password: str, address: str) -> tuple[str, Session]:
        """A new session's id and the session. `RefusedError` with a sentence; `address` is the client's."""
        is_name = user.isprintable() and 0 < len(user) <= MAX_NAME
        if not is_name or not 0 < len(password) <= MAX_PASSWORD or "\0" in password:
            raise RefusedError(400, "Type a user and a password.")
        wait_s = self._attempts.wait_s(user, address)
        if wait_s > 0:
            raise RefusedError(429, f"Too many log-ins have failed: try again in {wait_s:.0f} s.")
        if self._checks is None:
            self._checks = anyio.CapacityLimiter(MAX_CHECKS)
        self._attempts.failed(user, address)  # counted before the check: many at a time are no way around the limit
        try:
            properties = await anyio.to_thread.run_sync(self._checked, user, password, limiter=self._checks)
        except AuthenticationFailed:
            logger.warning("log-in of %r from %s: refused", user, address)
            raise RefusedError(401, WRONG) from None
        except ClientError as error:
            raise RefusedError(503, f"The password could not be checked: {error}") from None
        self._attempts.succeeded(user, address)
        logger.info("log-in of %r from %s: done", user, address)
        return self._sessions.begin(user, properties)

    def _checked(self, user: str, password: str) -> dict[str, str]:
        """The client configuration with which the broker accepts the user."""
        last: AuthenticationFailed | None = None
        for mechanism in self._way.mechanisms:
            properties = self._way.properties_of(mechanism, user, password)
            try:
                self._check(self._bootstrap, properties)
            except AuthenticationFailed as error:
                last = error
            else:
                return properties
        assert last is not None
        raise last
