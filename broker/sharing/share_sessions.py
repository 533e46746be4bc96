"""Share sessions (KIP-932): which partitions a member of a share group reads, by the connection it reads them on.

Epoch 0 opens a session, a request of epoch n goes on with it and makes it n + 1, -1 ends it. A session ends with its
connection too. Whoever's session has ended gives back all records that it holds. A group that is left without a
session when a connection closes is empty: Kafka's `ShareSessionCache`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, NamedTuple

from barnabas.wire.errors import ErrorCode, KafkaError

if TYPE_CHECKING:
    from barnabas.broker.net.connection import Connection
    from barnabas.wire.types import Uuid

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

    def __init__(
        self, most: int, on_end: Callable[[ShareSession], None], on_group_empty: Callable[[str], None]
    ) -> None:
        """At most `most` sessions at a time.

        `on_end` is told of those that end with their connection, `on_group_empty` of groups without any after it.
        """
        self._most = most
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
        """A new session, in place of any that the member had. KafkaError SHARE_SESSION_LIMIT_REACHED."""
        known = self._sessions.get((group_id, member_id))
        if known is not None:
            self.close(known)
        if len(self._sessions) >= self._most:
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
        """End a session; the caller gives back what its member holds."""
        if self._sessions.pop((session.group_id, session.member_id), None) is not None:
            self._counts[session.group_id] -= 1

    def _connection_closed(self, connection: Connection) -> None:
        groups = self._groups.pop(connection)
        for session in [one for one in self._sessions.values() if one.connection is connection]:
            self.close(session)
            self._on_end(session)
        for group_id in sorted(groups):
            if self._counts.get(group_id) == 0:
                del self._counts[group_id]
                self._on_group_empty(group_id)
