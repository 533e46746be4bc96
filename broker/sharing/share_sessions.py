"""Share sessions (KIP-932): the partitions that a member of a share group reads on a connection.

A request with epoch 0 opens a session; one with epoch n continues it and increments the epoch; one with -1 closes it. A
session is also closed with its connection. The records of a closed session are released. A group without a session
after a connection was closed is empty. Source: Kafka 4.4 `ShareSessionCache`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, NamedTuple, Protocol

from barnabas.wire.errors import ErrorCode, KafkaError

if TYPE_CHECKING:
    from barnabas.wire.types import Uuid

INITIAL_EPOCH = 0
FINAL_EPOCH = -1
_MAX_EPOCH = 2**31 - 1


class Connection(Protocol):
    """The connection of a session."""

    on_close: list[Callable[[], None]]
    """Called when the connection is closed."""


class SharedPartition(NamedTuple):
    """A partition in a session."""

    topic_id: Uuid
    partition: int


class ShareSession:
    """The partitions of one member, in the order in which they were added."""

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
        """Increment the epoch, after a request."""
        self.epoch = self.epoch + 1 if self.epoch < _MAX_EPOCH else 1


class ShareSessions:
    """The sessions of all members."""

    def __init__(
        self, limit: int, on_end: Callable[[ShareSession], None], on_group_empty: Callable[[str], None]
    ) -> None:
        """At most `limit` sessions at a time.

        `on_end` is called for sessions that are closed with their connection, `on_group_empty` for groups that have no
        session afterwards.
        """
        self._limit = limit
        self._on_end = on_end
        self._on_group_empty = on_group_empty
        self._sessions: dict[tuple[str, str], ShareSession] = {}
        self._counts: dict[str, int] = {}
        self._groups: dict[Connection, set[str]] = {}

    def __len__(self) -> int:
        return len(self._sessions)

    def open(
        self, group_id: str, member_id: str, partitions: Iterable[SharedPartition], connection: Connection
    ) -> ShareSession:
        """Open a session, and close the one that the member had. KafkaError SHARE_SESSION_LIMIT_REACHED."""
        known = self._sessions.get((group_id, member_id))
        if known is not None:
            self.close(known)
        if len(self._sessions) >= self._limit:
            raise KafkaError(ErrorCode.SHARE_SESSION_LIMIT_REACHED)
        session = ShareSession(group_id, member_id, partitions, connection)
        self._sessions[group_id, member_id] = session
        self._counts[group_id] = self._counts.get(group_id, 0) + 1
        if connection not in self._groups:
            self._groups[connection] = set()
            connection.on_close.append(lambda: self._connection_closed(connection))
        self._groups[connection].add(group_id)
        return session

    def resume(self, group_id: str, member_id: str, epoch: int) -> ShareSession:
        """The session of a request with an epoch other than 0; its epoch is incremented.

        KafkaError SHARE_SESSION_NOT_FOUND or INVALID_SHARE_SESSION_EPOCH: the member then opens a new session.
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
        """Close a session; the caller releases the member's records."""
        if self._sessions.pop((session.group_id, session.member_id), None) is not None:
            self._counts[session.group_id] -= 1

    def _connection_closed(self, connection: Connection) -> None:
        groups = self._groups.pop(connection)
        for session in [session for session in self._sessions.values() if session.connection is connection]:
            self.close(session)
            self._on_end(session)
        for group_id in sorted(groups):
            if self._counts.get(group_id) == 0:
                del self._counts[group_id]
                self._on_group_empty(group_id)
