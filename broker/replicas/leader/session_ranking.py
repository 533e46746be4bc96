"""Which fetch session is evicted first, of those that may be: one of a consumer, with few partitions (R20).

A session may be evicted once it is older than two minutes. Sessions wait in the order in which they were made, then
they are in a heap. Their sizes change and they are closed without a call: the entry at the top of the heap is compared
with the session, and corrected. A smaller size is corrected only when `least` finds the session, so that a request that
is resumed costs nothing; Kafka keeps a sorted map up to date instead.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sized
from heapq import heapify, heappop, heappush, heapreplace
from typing import Final, Generic, Protocol, TypeVar

MOVES: Final = 100
"""How many sessions become old, and how many heap entries are corrected, in one call."""

MOST_CLOSED: Final = 64
"""How many closed sessions are kept in any case."""


class RankedSession(Protocol):
    """The part of a session that the ranking uses."""

    session_id: int
    created: float

    @property
    def is_follower(self) -> bool:
        """Whether a follower reads."""

    @property
    def partitions(self) -> Sized:
        """Its partitions."""


S = TypeVar("S", bound=RankedSession)


class SessionRanking(Generic[S]):
    """The open sessions by priority."""

    __slots__ = ("_ranked", "_sessions", "_young")

    def __init__(self, sessions: Mapping[int, S]) -> None:
        """`sessions` are the open sessions by id."""
        self._sessions = sessions
        self._young: deque[tuple[float, int]] = deque()  # when it was made, and its id
        self._ranked: list[tuple[bool, int, int]] = []  # whether a follower reads, how many partitions, and the id

    def add(self, session: S) -> None:
        """A session was made."""
        self._young.append((session.created, session.session_id))
        if len(self._young) + len(self._ranked) > 2 * len(self._sessions) + MOST_CLOSED:
            self._drop_closed()

    def _drop_closed(self) -> None:
        """Forget the sessions that were closed. Each of them costs this once."""
        sessions = self._sessions
        self._young = deque(entry for entry in self._young if entry[1] in sessions)
        self._ranked = [entry for entry in self._ranked if entry[2] in sessions]
        heapify(self._ranked)

    def least(self, made_before: float) -> S | None:
        """The session with the lowest priority of those that were made before a time; None if there is none."""
        sessions, young, ranked = self._sessions, self._young, self._ranked
        moves = MOVES
        while moves and young and young[0][0] < made_before:
            moves -= 1
            session = sessions.get(young.popleft()[1])
            if session is not None:
                heappush(ranked, _rank(session))
        moves = MOVES
        while moves and ranked:
            moves -= 1
            top = ranked[0]
            session = sessions.get(top[2])
            if session is None:
                heappop(ranked)
            elif (rank := _rank(session)) == top:
                return session
            else:
                heapreplace(ranked, rank)
        return None


def _rank(session: RankedSession) -> tuple[bool, int, int]:
    return session.is_follower, len(session.partitions), session.session_id
