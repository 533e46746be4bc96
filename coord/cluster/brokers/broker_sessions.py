"""The sessions of the brokers: the last contact, how far a broker has read the metadata, whether it is shutting down.

This is volatile: a controller that starts gives every broker that is not fenced a new session, so that no broker is
fenced for the controller's own absence; so does a controller that was itself stopped for a while (SIGSTOP, a laptop's
lid), when the heartbeats of all brokers may wait in its sockets. A session belongs to one broker epoch. Source: Kafka
4.4 `BrokerHeartbeatManager`, `BrokerHeartbeatTracker`. Rule R16.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from barnabas.coord.timers import Timers

ABSENCE_S: Final = 2.0
"""A deadline that is handled so late says that the controller was away, not the broker; seconds."""


@dataclass(slots=True, eq=False)
class BrokerSession:
    """The controller's state of one incarnation of a broker."""

    broker_epoch: int
    registered_at: int
    """The offset of the registration; a broker that has read it is caught up."""
    last_contact: float = 0.0
    metadata_offset: int = -1
    shutdown_offset: int | None = None
    """The offset that the other brokers must have read before this one may stop; None: it is not stopping."""


class BrokerSessions:
    """The sessions by broker id, and the deadlines of the brokers that are not fenced."""

    def __init__(self, timeout_s: float) -> None:
        """`timeout_s`: broker.session.timeout.ms, in seconds."""
        self._timeout_s = timeout_s
        self._sessions: dict[int, BrokerSession] = {}
        self._expiry = Timers()

    def get(self, broker_id: int, broker_epoch: int) -> BrokerSession | None:
        """The session of this incarnation, or None."""
        session = self._sessions.get(broker_id)
        return session if session is not None and session.broker_epoch == broker_epoch else None

    def is_valid(self, broker_id: int, broker_epoch: int, now: float) -> bool:
        """Whether this incarnation has sent a heartbeat within the session timeout, and its session is not closed."""
        session = self.get(broker_id, broker_epoch)
        return session is not None and session.last_contact + self._timeout_s > now

    def open(self, broker_id: int, broker_epoch: int, registered_at: int, now: float, *, fenced: bool) -> BrokerSession:
        """Begin the session of a new incarnation."""
        session = BrokerSession(broker_epoch, registered_at)
        self._sessions[broker_id] = session
        self.touch(broker_id, session, now, fenced=fenced)
        return session

    def touch(self, broker_id: int, session: BrokerSession, now: float, *, fenced: bool) -> None:
        """A broker has sent a heartbeat. A fenced one cannot expire: there is nothing to take from it."""
        session.last_contact = now
        if fenced:
            session.shutdown_offset = None
            self._expiry.cancel(broker_id)
        else:
            self._expiry.set(broker_id, now + self._timeout_s)

    def has_read(self, broker_id: int, offset: int) -> None:
        """A broker has the metadata up to this offset; it says so in a heartbeat, or by fetching what comes after."""
        session = self._sessions.get(broker_id)
        if session is not None:
            session.metadata_offset = max(session.metadata_offset, offset)

    def close(self, broker_id: int) -> None:
        """End a session: the broker was fenced for missing heartbeats, may shut down, or was unregistered."""
        self._sessions.pop(broker_id, None)
        self._expiry.cancel(broker_id)

    def next_deadline(self) -> float | None:
        """When the next session ends."""
        return self._expiry.next_deadline()

    def extend_after_absence(self, now: float) -> bool:
        """Extend all sessions by the time that the controller was away, if it was; returns whether that was so.

        A broker that was silent before has at least `ABSENCE_S` to send a heartbeat.
        """
        first = self._expiry.next_deadline()
        if first is None or now - first < ABSENCE_S:
            return False
        for broker_id in self._sessions:
            deadline = self._expiry.deadline(broker_id)
            if deadline is not None:
                self._expiry.set(broker_id, max(deadline + now - first, now + ABSENCE_S))
        return True

    def expired(self, now: float) -> int | None:
        """A broker whose session has ended, one at a time; the caller fences it and closes the session."""
        deadline = self._expiry.next_deadline()
        if deadline is None or deadline > now:
            return None
        broker_id = self._expiry.pop_due(now)
        assert isinstance(broker_id, int)
        return broker_id

    def retry(self, broker_id: int, now: float) -> None:
        """Return the broker from `expired` again in a second: it could not be fenced."""
        self._expiry.retry(broker_id, now)

    def lowest_offset(self, active: Iterable[int]) -> int | None:
        """The least metadata offset that the active brokers have read; None if no active broker has a session."""
        return min(
            (
                session.metadata_offset
                for broker_id in active
                if (session := self._sessions.get(broker_id)) is not None and session.shutdown_offset is None
            ),
            default=None,
        )
