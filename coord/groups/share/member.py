"""One member of a share group. A value: what changes is written as a record, and replay puts a new one in its place."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from barnabas.wire.errors import ErrorCode, KafkaError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from barnabas.coord.groups.context import ClientContext
    from barnabas.coord.groups.modern.partitions import Partitions

NO_PARTITIONS: Partitions = {}


class ShareMember(NamedTuple):
    """What the records of a member say. Nothing has to be given back before another may have it: epochs are enough."""

    member_id: str
    rack_id: str | None = None
    client_id: str = ""
    client_host: str = ""
    subscribed: frozenset[str] = frozenset()
    """Names of topics; they need not exist."""
    epoch: int = 0
    """Epoch of the target assignment that the member has been given."""
    previous_epoch: int = 0
    assigned: Partitions = NO_PARTITIONS

    def with_request(self, rack_id: str | None, topics: Iterable[str] | None, context: ClientContext) -> ShareMember:
        """The member as a heartbeat describes it; None leaves as it was."""
        return self._replace(
            rack_id=self.rack_id if rack_id is None else rack_id,
            subscribed=self.subscribed if topics is None else frozenset(topics),
            client_id=context.client_id,
            client_host=context.client_host,
        )

    def check_epoch(self, epoch: int) -> None:
        """FENCED_MEMBER_EPOCH unless the member may go on with this epoch; 0 is one that starts over.

        The epoch before is taken too, since the answer that gave the current one may have been lost.
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

    def describes_like(self, other: ShareMember) -> bool:
        """Whether the record of the member's metadata would be the same."""
        return self[:5] == other[:5]
