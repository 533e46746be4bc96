"""Share sessions (KIP-932): which partitions a member of a share group reads, by the connection it reads them on.

Epoch 0 opens a session, a request of epoch n goes on with it and makes it n + 1, -1 ends it. A session ends with its
connection too. Whoever's session has ended gives back all records that it holds.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, NamedTuple

from wire.errors import ErrorCode, KafkaError

if TYPE_CHECKING:
    from broker.connection import Connection
    from wire.types import Uuid

INITIAL_EPOCH = 0
FINAL_EPOCH = -1
_MAX_EPOCH = 2**31 - 1


class SharedPartition(NamedTuple):
    """A partition in a session."""

    topic_id: Uuid
    partition: int


class ShareSession:
    """What one member reads, in the order in which it is served."""

    __slots__ = ("connection", "epoch", "group_id", "member_id", "partitions")

    def __init__(
        self, group_id: str, member_id: str, partitions: Iterable[SharedPartition], connection: Connection
    ) -> None:
        self.group_id = group_id
        self.member_id = member_id
        self.partitions = dict.fromkeys(partitions)
        self.connection = connection
        self.epoch = 1

    def bump(self) -> None:
        """A request of this epoch has come."""
        self.epoch = self.epoch + 1 if self.epoch < _MAX_EPOCH else 1


class ShareSessions:
    """The sessions of all members."""

    def __init__(self, most: int, on_end: Callable[[ShareSession], None]) -> None:
        """At most `most` sessions at a time; `on_end` is told of those that end otherwise than by the member's wish."""
        self._most = most
        self._on_end = on_end
        self._sessions: dict[tuple[str, str], ShareSession] = {}
        self._by_connection: dict[Connection, set[ShareSession]] = {}

    def __len__(self) -> int:
        return len(self._sessions)

    def open(
        self, group_id: str, member_id: str, partitions: Iterable[SharedPartition], connection: Connection
    ) -> ShareSession:
        """A new session, in place of any that the member had. KafkaError SHARE_SESSION_LIMIT_REACHED."""
        known = self._sessions.get((group_id, member_id))
        if known is not None:
            self._remove(known)
        if len(self._sessions) >= self._most:
            raise KafkaError(ErrorCode.SHARE_SESSION_LIMIT_REACHED)
        session = ShareSession(group_id, member_id, partitions, connection)
        self._sessions[group_id, member_id] = session
        if connection not in self._by_connection:
            self._by_connection[connection] = set()
            connection.on_close.append(lambda: self._connection_closed(connection))
        self._by_connection[connection].add(session)
        return session

    def resume(self, group_id: str, member_id: str, epoch: int) -> ShareSession:
        """The session of a request with an epoch other than 0, for which it counts.

        KafkaError SHARE_SESSION_NOT_FOUND or INVALID_SHARE_SESSION_EPOCH: the member then opens a new one.
        """
        session = self._sessions.get((group_id, member_id))
        if session is None:
            raise KafkaError(ErrorCode.SHARE_SESSION_NOT_FOUND)
        if epoch != FINAL_EPOCH:
            if session.epoch != epoch:
                raise KafkaError(ErrorCode.INVALID_SHARE_SESSION_EPOCH)
            session.bump()
        return session

    def close(self, session: ShareSession) -> None:
        """The member has ended its session."""
        self._remove(session)

    def member_left(self, group_id: str, member_id: str) -> None:
        """A member is not in its group any more."""
        session = self._sessions.get((group_id, member_id))
        if session is not None:
            self._remove(session)
            self._on_end(session)

    def _connection_closed(self, connection: Connection) -> None:
        for session in self._by_connection.pop(connection, ()):
            self._remove(session)
            self._on_end(session)

    def _remove(self, session: ShareSession) -> None:
        self._sessions.pop((session.group_id, session.member_id), None)
        of_connection = self._by_connection.get(session.connection)
        if of_connection is not None:
            of_connection.discard(session)
