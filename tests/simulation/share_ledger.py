"""What a share group may do with records, watched at the broker's door: every request as it is taken, every answer as
it leaves (G5, KIP-932).

A record is locked for one member at a time; a lock that ran out is counted; nobody gets a record more often than the
limit allows, and what was acknowledged, and answered, is never given out again, whatever crashes. A delivery counts
even when the connection ends before its answer leaves, which waits for the acknowledgements of the same ShareFetch.
Such a fetch may be of a connection that the member has given up, and the session another's (Kafka knows it by member
and epoch only): so nobody gives its records back, and their locks run out.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from barnabas.wire.messages import share_groups as g

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from barnabas.wire.schema import Message
    from tests.simulation.clock import Clock
    from tests.simulation.network import Wire

GAP, ACCEPT, RELEASE, REJECT, RENEW = 0, 1, 2, 3, 4
FOR_GOOD = (GAP, ACCEPT, REJECT)
ROUNDING_S = 1e-6
Place = tuple[int, int]
"""Partition and offset."""


class Lock(NamedTuple):
    """A record at a member."""

    member_id: str
    wire: Wire
    until: float
    """It is certain to hold until then, unless it is given up."""


class Locked(NamedTuple):
    """A record that the broker has locked for a member."""

    place: Place
    member_id: str
    count: int
    """Of its deliveries, this one included."""


class Delivery(NamedTuple):
    """The last time that a record was given out."""

    count: int
    ran_out: bool
    """Whether it is still with a member who has never said a word about it."""
    era: int


class ShareLedger:
    """One group's."""

    def __init__(self, clock: Clock, limit: int) -> None:
        self._clock = clock
        self._limit = limit
        self._locks: dict[Place, Lock] = {}
        self._deliveries: dict[Place, Delivery] = {}
        self._withheld: dict[Wire, tuple[str, dict[Place, int]]] = {}
        """Of the ShareFetches whose answers wait for acknowledgements: the member, and the records that are locked for
        it and that no answer has shown, with their delivery counts."""
        self._era = 0
        """Counts what makes the broker forget about records that are out: sessions that end, and crashes."""
        self.settled: dict[Place, int] = {}
        """What members have said of records for good, and were told that it is kept."""
        self.decided: set[Place] = set()
        """What members have accepted or rejected, whether they were told that it is kept or not."""

    # ---- what is seen

    def request_arrives(self, wire: Wire, request: Message) -> None:
        """A request is taken."""
        if not isinstance(request, (g.ShareFetchRequest, g.ShareAcknowledgeRequest)):
            return
        wire.arrived_at = self._clock.now
        member_id = request.member_id or ""
        if request.share_session_epoch <= 0:
            self._let_go(lambda lock: lock.member_id == member_id)
        heard = list(said_of(request))
        if heard and isinstance(request, g.ShareFetchRequest):
            self._withheld[wire] = (member_id, {})
        for place, said in heard:
            if said in FOR_GOOD:
                self.decided.add(place)
            lock = self._locks.get(place)
            if said != RENEW and lock is not None and lock.member_id == member_id:
                del self._locks[place]
                self._deliveries[place] = self._deliveries[place]._replace(ran_out=False)

    def answer_leaves(self, wire: Wire, request: Message, answer: Message) -> None:
        """An answer is on its way."""
        self._withheld.pop(wire, None)
        if not isinstance(answer, (g.ShareFetchResponse, g.ShareAcknowledgeResponse)) or answer.error_code:
            return
        assert isinstance(request, (g.ShareFetchRequest, g.ShareAcknowledgeRequest))
        self._settle(request, answer)
        if isinstance(answer, g.ShareFetchResponse):
            until = wire.arrived_at + answer.acquisition_lock_timeout_ms / 1000
            lock = Lock(request.member_id or "", wire, until)
            for partition in (one for topic in answer.responses for one in topic.partitions):
                for acquired in partition.acquired_records:
                    for offset in range(acquired.first_offset, acquired.last_offset + 1):
                        self._acquire((partition.partition_index, offset), lock, acquired.delivery_count)

    def connection_ends(self, wire: Wire) -> None:
        """The broker hears that a connection is closed: the session on it ends, and what it has is given back."""
        self._lose_answer(wire)
        self._let_go(lambda lock: lock.wire is wire)

    def broker_crashes(self) -> None:
        """Nobody has anything any more."""
        for wire in list(self._withheld):
            self._lose_answer(wire)
        self._let_go(lambda _: True)

    @property
    def has_withheld(self) -> bool:
        """Whether records may be locked that no answer has shown yet."""
        return bool(self._withheld)

    def turn_ends(self, locked: Iterable[Locked]) -> None:
        """What the broker has locked, at the end of a turn; of interest while something is withheld."""
        for place, member_id, count in locked:
            before = self._deliveries.get(place)
            if before is not None and before.count >= count:
                continue
            for asked_by, places in self._withheld.values():
                if asked_by == member_id and places.get(place) != count:
                    self._check_delivery(place, member_id, count)
                    places[place] = count
                    if before is not None:  # the next count follows on this one
                        self._deliveries[place] = before._replace(ran_out=False)

    # ---- what follows

    def _let_go(self, is_over: object) -> None:
        assert callable(is_over)
        self._era += 1
        self._locks = {place: lock for place, lock in self._locks.items() if not is_over(lock)}

    def _settle(
        self,
        request: g.ShareFetchRequest | g.ShareAcknowledgeRequest,
        answer: g.ShareFetchResponse | g.ShareAcknowledgeResponse,
    ) -> None:
        errors = {}
        for partition in (one for topic in answer.responses for one in topic.partitions):
            is_fetch = isinstance(partition, g.ShareFetchResponsePartitionData)
            errors[partition.partition_index] = partition.acknowledge_error_code if is_fetch else partition.error_code
        for place, said in said_of(request):
            if errors.get(place[0]) == 0 and said in FOR_GOOD:
                self.settled[place] = said

    def _lose_answer(self, wire: Wire) -> None:
        """It will never leave: what it would have shown was given out, and its member knows nothing of it."""
        _, places = self._withheld.pop(wire, ("", {}))
        for place, count in places.items():
            before = self._deliveries.get(place)
            if before is None or before.count < count:
                self._deliveries[place] = Delivery(count, ran_out=False, era=self._era)

    def _check_delivery(self, place: Place, member_id: str, count: int) -> None:
        held = self._locks.get(place)
        assert held is None or held.until < self._clock.now + ROUNDING_S, (
            f"{place} is given to {member_id}, and {held.member_id} has it"
        )
        assert place not in self.settled, f"{place} is given to {member_id} after {self.settled[place]}"
        assert 1 <= count <= self._limit, f"{place} is given out {count} times"
        before = self._deliveries.get(place)
        if before is not None and before.ran_out and before.era == self._era:
            assert count == before.count + 1, f"{place} ran out after delivery {before.count}, and this is {count}"

    def _acquire(self, place: Place, lock: Lock, count: int) -> None:
        self._check_delivery(place, lock.member_id, count)
        self._locks[place] = lock
        self._deliveries[place] = Delivery(count, ran_out=True, era=self._era)

    def is_accounted_for(self, place: Place) -> bool:
        """Whether a record may be done with: somebody has decided about it, or it was given out too often."""
        delivery = self._deliveries.get(place)
        return delivery is not None and (place in self.decided or delivery.count >= self._limit)


def said_of(request: g.ShareFetchRequest | g.ShareAcknowledgeRequest) -> Iterator[tuple[Place, int]]:
    """What a member says of each record."""
    for topic in request.topics:
        for partition in topic.partitions:
            for batch in partition.acknowledgement_batches:
                types = batch.acknowledge_types
                for n, offset in enumerate(range(batch.first_offset, batch.last_offset + 1)):
                    yield (partition.partition_index, offset), types[n if len(types) > 1 else 0]
