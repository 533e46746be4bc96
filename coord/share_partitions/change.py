"""The state changes of a share partition that have to be written: the input of WriteShareGroupState."""

from __future__ import annotations

from typing import NamedTuple

from barnabas.coord.share_partitions.states import RecordState
from barnabas.coord.share_state.batches import StateBatch

REJECTED = "Offset rejected by client."
DELIVERED_TOO_OFTEN = "Offset delivery count exceeded the threshold."


class DeadLetters(NamedTuple):
    """Records for the dead-letter queue."""

    first_offset: int
    last_offset: int
    delivery_count: int
    reason: str
    """Kafka's text for the record's header; empty when it is unknown after a restart."""


class StateChange:
    """State transitions of records. `SharePartition.committed` makes them final, `failed` undoes them."""

    __slots__ = ("batches", "dead_letters", "makes_available")

    def __init__(self) -> None:
        self.batches: list[StateBatch] = []
        self.dead_letters: list[DeadLetters] = []
        """To be written to the dead-letter queue after the change is written."""
        self.makes_available = False
        """Whether some of the records can be acquired again after the change is written."""

    def add(self, first: int, last: int, state: RecordState, delivery_count: int) -> None:
        """Add a transition; calls in the order of offsets are merged into batches where state and count are equal."""
        if state is RecordState.AVAILABLE:
            self.makes_available = True
        if self.batches:
            last_batch = self.batches[-1]
            if last_batch.last_offset + 1 == first and last_batch[2:] == (state, delivery_count):
                self.batches[-1] = last_batch._replace(last_offset=last)
                return
        self.batches.append(StateBatch(first, last, state, delivery_count))

    def __bool__(self) -> bool:
        return bool(self.batches)
