"""The states of a record in a share partition, and the types of acknowledgements (rule G5, KIP-932, KIP-1191).

The table is data: `Window.become` checks every transition against it. The numbers are the same as in
`__share_group_state`.
"""

from __future__ import annotations

from enum import IntEnum
from typing import Final


class RecordState(IntEnum):
    """The state of a record for a share group. A record that was never acquired has no state."""

    AVAILABLE = 0
    """Released; the next ShareFetch of any member may acquire it.

    ShareFetch: -> Acquired, the delivery count is incremented. Acknowledgements: INVALID_RECORD_STATE (121). The record
    is no longer in the log: -> Archived.
    """

    ACQUIRED = 1
    """Locked for one member, until it acknowledges, its session ends or `share.record.lock.duration.ms` has passed.

    Acknowledgements of the member: accept -> Acknowledged; release -> Available, at the delivery limit as below; reject
    and gap -> Archived, a rejected record with a dead-letter queue -> Archiving; renew restarts the lock. Of another
    member: INVALID_RECORD_STATE. End of the lock or of the member's session: -> Available below the delivery limit; at
    it -> Archived, or Archiving with a dead-letter queue. Record of an aborted transaction under `read_committed`: ->
    Archived. A transition that cannot be written is undone: the record is acquired as before.
    """

    ACKNOWLEDGED = 2
    """Processed; never delivered again. Acknowledgements: INVALID_RECORD_STATE."""

    ARCHIVING = 3
    """Being written to the dead-letter queue; never delivered again.

    Acknowledgements: INVALID_RECORD_STATE. Written to the queue, or the write failed for good: -> Archived.
    """

    ARCHIVED = 4
    """Finished without being processed; never delivered again. Acknowledgements: INVALID_RECORD_STATE."""

    def __str__(self) -> str:
        return self.name.capitalize()


PREDECESSORS: Final[dict[RecordState, frozenset[RecordState]]] = {
    RecordState.ACQUIRED: frozenset({RecordState.AVAILABLE}),
    RecordState.AVAILABLE: frozenset({RecordState.ACQUIRED}),
    RecordState.ACKNOWLEDGED: frozenset({RecordState.ACQUIRED}),
    RecordState.ARCHIVING: frozenset({RecordState.ACQUIRED}),
    RecordState.ARCHIVED: frozenset({RecordState.AVAILABLE, RecordState.ACQUIRED, RecordState.ARCHIVING}),
}
"""For each state the states it may follow. `Window.restore` undoes a transition that could not be written."""

FINISHED: Final = frozenset({RecordState.ACKNOWLEDGED, RecordState.ARCHIVED})
"""Final states: once they are written, the start of the window moves past them."""


class AcknowledgeType(IntEnum):
    """The type of an acknowledgement in ShareFetch and ShareAcknowledge."""

    GAP = 0
    """There is no record at this offset."""
    ACCEPT = 1
    RELEASE = 2
    REJECT = 3
    RENEW = 4
    """Still processing: restart the lock (KIP-1222)."""
