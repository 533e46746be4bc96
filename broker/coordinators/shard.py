"""One coordinator at work: the pure state machine, the partition it writes to, and the timer of its next deadline."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Final, Generic, TypeVar

from barnabas.broker.event_loop.guarded import call_guarded
from barnabas.broker.event_loop.waking import FEW, do_in_pieces
from barnabas.coord.machine import Moment, Reply, Result

if TYPE_CHECKING:
    from barnabas.broker.event_loop.loop import Gathered, Loop
    from barnabas.broker.event_loop.timers import Timer
    from barnabas.broker.replicas.partition import Partition
    from barnabas.coord.coordinator import Coordinator


ANSWERING: Final = "Answering what has waited for a coordinator"

C = TypeVar("C", bound="Coordinator")


class Shard(Generic[C]):
    """One coordinator with its partition and its timer."""

    __slots__ = ("coordinator", "gathered", "leader_epoch", "partition", "timer")

    def __init__(self, coordinator: C, partition: Partition, leader_epoch: int) -> None:
        self.coordinator = coordinator
        self.partition = partition
        self.leader_epoch = leader_epoch
        """The epoch in which this broker leads the partition; the coordinator writes in no other."""
        self.timer: Timer | None = None
        self.gathered: Gathered | None = None
        """Events of this turn whose records are not written yet."""

    @property
    def is_committed(self) -> bool:
        """Whether all records of the partition are committed."""
        log = self.partition.log
        return log.high_watermark == log.log_end_offset

    def unload(self, at: Moment, loop: Loop) -> None:
        """Cancel the timer and answer all waiting requests."""
        if self.timer is not None:
            self.timer.cancel()
        release_replies(self.coordinator.unload(at), loop)


def release_replies(result: Result, loop: Loop) -> None:
    """Call each ticket with its answer: a ticket is the function that takes the answer. Many are called in pieces.

    A ticket that fails is logged, and the others are called; most are `Future.complete`, which cannot fail.
    """
    if len(result.replies) > FEW:
        do_in_pieces(loop, deque(result.replies), _send, _ignore)
        return
    for reply in result.replies:
        ticket, message, _ = reply
        if callable(message):
            _send(reply)
        else:
            call_guarded(ANSWERING, ticket, message)  # type: ignore[arg-type]  # every ticket is such a function


def _send(reply: Reply) -> None:
    call_guarded(ANSWERING, _make_and_send, reply)


def _make_and_send(reply: Reply) -> None:
    reply.ticket(reply.made())  # type: ignore[operator]


def _ignore() -> None:
    """There is nothing to do after the answers."""
