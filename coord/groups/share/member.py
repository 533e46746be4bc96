"""One member of a share group, an immutable value; replay of its records replaces it (KIP-932)."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from barnabas.coord.groups.limits import held_bytes
from barnabas.wire.errors import ErrorCode, KafkaError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from barnabas.coord.groups.context import ClientContext
    from barnabas.coord.groups.modern.partitions import Partitions

NO_PARTITIONS: Partitions = {}


class ShareMember(NamedTuple):
    """A member. Nothing has to be revoked before another member may read it, so there are only epochs."""

    member_id: str
    rack_id: str | None = None
    client_id: str = ""
    client_host: str = ""
    subscribed: frozenset[str] = frozenset()
    """Names of topics; they need not exist."""
    epoch: int = 0
    """Epoch of the target assignment that the member has received."""
    previous_epoch: int = 0
    assigned: Partitions = NO_PARTITIONS

    @property
    def held_bytes(self) -> int:
        """The bytes of what the member has sent."""
        return held_bytes((self.subscribed, self.rack_id))

    def with_request(self, rack_id: str | None, topics: Iterable[str] | None, context: ClientContext) -> ShareMember:
        """The member with the fields of a heartbeat; None: no change."""
        return self._replace(
            rack_id=self.rack_id if rack_id is None else rack_id,
            subscribed=self.subscribed if topics is None else frozenset(topics),
            client_id=context.client_id,
            client_host=context.client_host,
        )

    def check_epoch(self, epoch: int) -> None:
        """KafkaError FENCED_MEMBER_EPOCH unless the request has the member's epoch, or 0: the member joins again.

        The previous epoch is accepted too, because the response with the current one may have been lost.
        """
        if epoch > self.epoch:
            raise KafkaError(
                ErrorCode.FENCED_MEMBER_EPOCH,
                f"The share group member has a greater member epoch ({epoch}) than the one known by the group "
                f"coordinator ({self.epoch}). The member must abandon all its partitions and rejoin.",
            )
        if epoch not in (0, self.epoch, self.previous_epoch):
            raise KafkaError(
                ErrorCode.FENCED_MEMBER_EPOCH,
                f"The share group member has a smaller member epoch ({epoch}) than the one known by the group "
                f"coordinator ({self.epoch}). The member must abandon all its partitions and rejoin.",
            )

    def has_metadata_of(self, other: ShareMember) -> bool:
        """Whether the metadata of both members are equal."""
        return self[:5] == other[:5]
