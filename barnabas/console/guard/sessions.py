"""The sessions of people who have logged in: in memory only, bounded in number, idle time and age.

A session holds the credentials of its user, because the console acts as this user and has no rights of its own. Its id
is new at each log-in, so an id that somebody else has planted is worth nothing (session fixation). The id is kept as
its hash: a copy of the memory does not give it.
"""

from __future__ import annotations

import hmac
import secrets
from collections import OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from hashlib import sha256
from threading import Lock
from time import monotonic
from typing import TYPE_CHECKING, Final

from barnabas.client.security.settings import Security, security_from

if TYPE_CHECKING:
    from starlette.requests import Request

MAX_SESSIONS: Final = 256
MAX_OF_USER: Final = 16
"""Sessions of one user; a further log-in ends the one that was idle for longest."""
IDLE_S: Final = 30 * 60.0
AGE_S: Final = 12 * 3600.0
ID_BYTES: Final = 32


@dataclass(eq=False, slots=True)
class Session:
    """One log-in, or the session that all share on a console without log-in."""

    user: str
    """The SASL user; `anonymous` for a console that is nobody itself."""
    properties: Mapping[str, str] = field(repr=False)
    """The configuration of the connections to brokers, with the user's password: Kafka's keys."""
    security: Security | None
    """The same, as the client uses it; None: without TLS and SASL."""
    key: str
    """What names the session in the console itself, for its connections; it cannot be used to log in."""
    csrf_token: str = field(repr=False, default_factory=lambda: secrets.token_urlsafe(ID_BYTES))
    began: float = 0.0
    used: float = 0.0
    is_login: bool = False
    """Whether somebody has logged in, and can log out."""

    def has_token(self, token: str) -> bool:
        """Whether a request has the session's CSRF token."""
        return hmac.compare_digest(token.encode(), self.csrf_token.encode())


class Sessions:
    """All sessions. Methods may be called from any thread."""

    def __init__(
        self,
        *,
        clock: Callable[[], float] = monotonic,
        most: int = MAX_SESSIONS,
        idle_s: float = IDLE_S,
        age_s: float = AGE_S,
    ) -> None:
        self.on_end: list[Callable[[Session], object]] = []
        """Called with each session that has ended: its connections to brokers are closed."""
        self._clock = clock
        self._most = most
        self._idle_s = idle_s
        self._age_s = age_s
        self._sessions: OrderedDict[str, Session] = OrderedDict()  # by key; the one used last is at the end
        self._lock = Lock()

    def __len__(self) -> int:
        return len(self._sessions)

    def begin(self, user: str, properties: Mapping[str, str]) -> tuple[str, Session]:
        """A new session and its id, which the user's browser keeps; the oldest end when there are too many."""
        session_id = secrets.token_urlsafe(ID_BYTES)
        now = self._clock()
        security = security_from(properties)
        session = Session(user, dict(properties), security, _key(session_id), began=now, used=now, is_login=True)
        with self._lock:
            ended = self._remove_old(now)
            of_user = [other for other in self._sessions.values() if other.user == user]
            surplus = of_user[: max(0, len(of_user) + 1 - MAX_OF_USER)]
            if not surplus and len(self._sessions) >= self._most:
                surplus = [next(iter(self._sessions.values()))]
            for other in surplus:
                del self._sessions[other.key]
            self._sessions[session.key] = session
        self._tell([*ended, *surplus])
        return session_id, session

    def find(self, session_id: str) -> Session | None:
        """The session of an id, which is used now; None if there is none or its time is over."""
        now = self._clock()
        with self._lock:
            ended = self._remove_old(now)
            session = self._sessions.get(_key(session_id))
            if session is not None:
                session.used = now
                self._sessions.move_to_end(session.key)
        self._tell(ended)
        return session

    @staticmethod
    def of(request: Request) -> Session:
        """The session of a request that the guard has let pass."""
        session = request.state.session
        assert isinstance(session, Session), "only the log-in is served without a session"
        return session

    def end(self, session: Session) -> None:
        """End a session: its user logs out, or its password is not accepted any more."""
        with self._lock:
            ended = self._sessions.pop(session.key, None)
        if ended is not None:
            self._tell([ended])

    def _remove_old(self, now: float) -> list[Session]:
        ended = [
            session
            for session in self._sessions.values()
            if now - session.used > self._idle_s or now - session.began > self._age_s
        ]
        for session in ended:
            del self._sessions[session.key]
        return ended

    def _tell(self, ended: list[Session]) -> None:
        for session in ended:
            for called in self.on_end:
                called(session)


def _key(session_id: str) -> str:
    return sha256(session_id.encode("utf-8", "replace")).hexdigest()


MAX_FAILURES: Final = {"user": 5, "address": 20, "all": 200}
"""Failed log-ins in `FAILURES_S`: of a user from one address, of all users from one address, and of everybody."""
FAILURES_S: Final = 60.0
MAX_KEPT: Final = 4096
"""Users and addresses whose failures are counted."""


class Attempts:
    """Limits the failed log-ins, so that passwords cannot be tried out quickly."""

    def __init__(self, clock: Callable[[], float] = monotonic) -> None:
        self._clock = clock
        self._failures: OrderedDict[tuple[str, ...], list[float]] = OrderedDict()

    def wait_s(self, user: str, address: str) -> float:
        """How long a log-in must wait, seconds; 0 if it may be tried now."""
        now = self._clock()
        return max(self._wait_s(key, now) for key in _failure_keys(user, address))

    def succeeded(self, user: str, address: str) -> None:
        """Forget the failures of a user from this address."""
        self._failures.pop(("user", user, address), None)
        for key in _failure_keys(user, address)[1:]:
            if times := self._failures.get(key):
                times.pop()

    def failed(self, user: str, address: str) -> None:
        """Count a log-in that was begun; `succeeded` takes it back."""
        now = self._clock()
        for key in _failure_keys(user, address):
            times = self._failures.setdefault(key, [])
            times[:] = [*times[1 - MAX_FAILURES[key[0]] :], now]
            self._failures.move_to_end(key)
        while len(self._failures) > MAX_KEPT:
            self._failures.popitem(last=False)

    def _wait_s(self, key: tuple[str, ...], now: float) -> float:
        times = self._failures.get(key, [])
        recent = [time for time in times if now - time < FAILURES_S]
        return recent[0] + FAILURES_S - now if len(recent) >= MAX_FAILURES[key[0]] else 0.0


def _failure_keys(user: str, address: str) -> tuple[tuple[str, ...], ...]:
    return ("user", user, address), ("address", address), ("all",)
