"""What an event leaves to be written of a share partition: the input of WriteShareGroupState."""

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
    """Kafka's sentence for the record's header; empty when it is not known any more, after a restart."""


class StateChange:
    """Steps of some records. They count once written: `SharePartition.committed`; else `failed` takes them back."""

    __slots__ = ("batches", "dead_letters", "frees")

    def __init__(self) -> None:
        self.batches: list[StateBatch] = []
        self.dead_letters: list[DeadLetters] = []
        """To be written to the queue once the change is."""
        self.frees = False
        """Whether members may be given some of the records once the change is written."""

    def add(self, first: int, last: int, state: RecordState, delivery_count: int) -> None:
        """Note a step; steps are noted from the lowest offset to the highest where they can be one batch."""
        if state is RecordState.AVAILABLE:
            self.frees = True
        if self.batches:
            before = self.batches[-1]
            if before.last_offset + 1 == first and before[2:] == (state, delivery_count):
                self.batches[-1] = before._replace(last_offset=last)
                return
        self.batches.append(StateBatch(first, last, state, delivery_count))

    def __bool__(self) -> bool:
        return bool(self.batches)
