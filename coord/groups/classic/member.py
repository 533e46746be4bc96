"""One member of a classic group, and its parked requests.

Invariant: `join_ticket` (or `sync_ticket`) is set exactly while a JoinGroup (or SyncGroup) of the member is parked; a
ticket is answered once.
"""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from barnabas.coord.machine import Ticket
    from barnabas.wire.messages.groups.classic_groups import JoinGroupRequest, JoinGroupRequestProtocol

NO_ASSIGNMENT = b""

MEMBER_ID_REQUIRED_SINCE = 4
"""From this JoinGroup version on, a new member has to join again with the member id it is sent (KIP-394)."""


@dataclass(slots=True, eq=False, repr=False)
class ClassicMember:
    """A member: a consumer, a Connect worker, or another client that joins."""

    member_id: str
    instance_id: str | None
    _: KW_ONLY
    client_id: str
    client_host: str
    rebalance_timeout_ms: int
    session_timeout_ms: int
    protocols: list[tuple[str, bytes]]
    """(name, metadata) in the member's order of preference."""
    assignment: bytes = NO_ASSIGNMENT
    is_new: bool = False
    """Its first JoinGroup is parked; it cannot send heartbeats until that is answered."""
    join_ticket: Ticket | None = None
    sync_ticket: Ticket | None = None

    @property
    def held_bytes(self) -> int:
        """The bytes of what clients have sent for this member."""
        return sum([len(name) + len(metadata) for name, metadata in self.protocols]) + len(self.assignment)

    @property
    def is_static(self) -> bool:
        """Whether the member has a group.instance.id (KIP-345)."""
        return self.instance_id is not None

    @property
    def has_satisfied_heartbeat(self) -> bool:
        """Whether a parked request keeps the session from expiring; a new member's JoinGroup has its own time limit."""
        return not self.is_new and (self.join_ticket is not None or self.sync_ticket is not None)

    def metadata(self, protocol: str) -> bytes:
        """The metadata the member sent for `protocol`; empty when it does not support it."""
        return next((metadata for name, metadata in self.protocols if name == protocol), b"")

    def protocol_names(self) -> list[str]:
        """The names of the supported protocols, in order of preference, each once."""
        return list(dict.fromkeys(name for name, _ in self.protocols))

    def matches(self, protocols: Sequence[tuple[str, bytes]]) -> bool:
        """Whether `protocols` equals the member's present protocols in names, metadata and order."""
        return self.protocols == list(protocols)

    def vote(self, candidates: Collection[str]) -> str:
        """The first protocol of the member's list that is a candidate."""
        return next(name for name, _ in self.protocols if name in candidates)


def protocol_list(protocols: Sequence[JoinGroupRequestProtocol]) -> list[tuple[str, bytes]]:
    """The protocols of a JoinGroup request as (name, metadata)."""
    return [(protocol.name, bytes(protocol.metadata)) for protocol in protocols]


def rebalance_timeout_ms(request: JoinGroupRequest) -> int:
    """JoinGroup v0 has no rebalance timeout: it is the session timeout then."""
    return request.rebalance_timeout_ms if request.rebalance_timeout_ms >= 0 else request.session_timeout_ms
