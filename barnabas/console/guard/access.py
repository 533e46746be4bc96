"""Whether people log in at a console, and what is asked of every request: made from the settings.

Whether the cluster wants a log-in is asked of its listener (`login_way`) when the console starts, or, if no broker
answers then, with the first request that one answers. Until then requests have the session of everybody, whose
connections have no user: a listener with SASL refuses them.
"""

from __future__ import annotations

import logging
from threading import Lock
from time import monotonic
from typing import TYPE_CHECKING, Final

from barnabas.client.errors import ClientError
from barnabas.console.guard.addresses import AllowedHosts, check_exposure, is_loopback
from barnabas.console.guard.login import LogIn, LoginWay, has_user, login_way
from barnabas.console.guard.sessions import Session, Sessions

if TYPE_CHECKING:
    from collections.abc import Callable

    from barnabas.console.settings import Settings

RETRY_S: Final = 5.0
"""How often the listener is asked while no broker answers, seconds."""

logger = logging.getLogger("barnabas.console")


class Access:
    """Who may use one console."""

    def __init__(
        self,
        settings: Settings,
        sessions: Sessions,
        ask: Callable[..., LoginWay | None] = login_way,
    ) -> None:
        """`ask` finds how people log in at the listener."""
        self._ask = ask
        self.settings = settings
        self.sessions = sessions
        self.hosts = AllowedHosts([settings.host, *settings.allowed_hosts])
        self.has_tls = settings.certificate is not None
        self.login: LogIn | None = None
        """How people log in; None: they do not."""
        self._everyone = Session(_configured_user(settings), settings.properties, settings.security, "everyone")
        self._is_decided = False
        self._asked = 0.0
        self._lock = Lock()

    @property
    def cookie(self) -> str:
        """The name of the session's cookie: cookies know no ports, so it has the console's.

        Over TLS browsers accept `__Host-` from this host only, and only by HTTPS.
        """
        return f"{'__Host-' if self.has_tls else ''}barnabas-{self.settings.port}"

    @property
    def is_undecided(self) -> bool:
        """Whether the listener is to be asked again, by `decide` in a thread."""
        return not self._is_decided and (not self._asked or monotonic() - self._asked > RETRY_S)

    @property
    def everyone(self) -> Session | None:
        """The session of every request; None if people log in."""
        return self._everyone if self.login is None else None

    def decide(self) -> None:
        """Ask the listener whether people log in, if that is not known. ClientError, or ValueError with a sentence."""
        with self._lock:
            if self._is_decided:
                return
            self._asked = monotonic()
            settings = self.settings
            way = self._ask(settings.bootstrap, settings.properties, is_forced=settings.login)
            if way is not None:
                self.login = LogIn(way, settings.bootstrap, self.sessions)
            self._is_decided = True

    def check_start(self) -> None:
        """Refuse an address that others reach without TLS and log-in. ValueError with a sentence.

        On a loopback address a console may start before its broker.
        """
        settings = self.settings
        try:
            self.decide()
        except ClientError as error:
            if not is_loopback(settings.host):
                raise ValueError(f"whether people must log in is not known: {error}") from None
            logger.warning("No broker answers yet: %s", error)
        check_exposure(
            settings.host,
            has_tls=self.has_tls,
            has_login=self.login is not None,
            is_in_container=settings.is_in_container,
        )


def _configured_user(settings: Settings) -> str:
    """Who the console itself is: the user of its configuration, or nobody."""
    if not has_user(settings.properties):
        return "anonymous"
    return settings.properties.get("sasl.username") or "the console's user"
