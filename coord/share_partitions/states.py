"""The states of a record in a share partition, and what a member may say of a record (rule G5, KIP-932, KIP-1191).

The table is data: `Window.become` checks every step against it. The numbers are those of `__share_group_state`.
"""

from __future__ import annotations

from enum import IntEnum
from typing import Final


class RecordState(IntEnum):
    """Where a record stands with a share group. A record that no member has ever been given is in no state yet."""

    AVAILABLE = 0
    """Given back; the next ShareFetch of any member may have it.

    ShareFetch: -> Acquired, with a delivery more. Acknowledgements: INVALID_RECORD_STATE (121). A log that begins
    later, or that does not have the record any more: -> Archived.
    """

    ACQUIRED = 1
    """Locked for one member, until it acknowledges, its session ends or `share.record.lock.duration.ms` is over.

    Of its member, accept: -> Acknowledged; release: -> Available, at the delivery limit as below; reject and gap: ->
    Archived, with a dead-letter queue a rejected record -> Archiving; renew: the lock starts anew. Of another member:
    INVALID_RECORD_STATE. End of the lock or of the member's session: -> Available below the delivery limit; at it ->
    Archived, or Archiving with a dead-letter queue. Records of aborted transactions under `read_committed`: ->
    Archived. A step that cannot be written is taken back: the record is acquired as before.
    """

    ACKNOWLEDGED = 2
    """Processed; never delivered again. Acknowledgements: INVALID_RECORD_STATE."""

    ARCHIVING = 3
    """On its way to the dead-letter queue; never delivered again.

    Acknowledgements: INVALID_RECORD_STATE. Written to the queue, or given up: -> Archived.
    """

    ARCHIVED = 4
    """Given up on; never delivered again. Acknowledgements: INVALID_RECORD_STATE."""

    def __str__(self) -> str:
        return self.name.capitalize()


PREDECESSORS: Final[dict[RecordState, frozenset[RecordState]]] = {
    RecordState.ACQUIRED: frozenset({RecordState.AVAILABLE}),
    RecordState.AVAILABLE: frozenset({RecordState.ACQUIRED}),
    RecordState.ACKNOWLEDGED: frozenset({RecordState.ACQUIRED}),
    RecordState.ARCHIVING: frozenset({RecordState.ACQUIRED}),
    RecordState.ARCHIVED: frozenset({RecordState.AVAILABLE, RecordState.ACQUIRED, RecordState.ARCHIVING}),
}
"""For each state the states it may follow. A step that could not be written is taken back by `Window.restore`."""

FINISHED: Final = frozenset({RecordState.ACKNOWLEDGED, RecordState.ARCHIVED})
"""States that nothing follows once they are written: the start of the window moves past them."""


class AcknowledgeType(IntEnum):
    """What a member says of a record, in ShareFetch and ShareAcknowledge."""

    GAP = 0
    """There is no record at this offset."""
    ACCEPT = 1
    RELEASE = 2
    REJECT = 3
    RENEW = 4
    """Still at work: lock it for me anew (KIP-1222)."""
