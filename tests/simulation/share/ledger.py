"""Checks of a share group's deliveries, from the requests and responses as the broker receives and sends them (G5).

A record is locked for one member at a time; a lock that expires is counted as a delivery; no record is delivered more
often than the limit; and a record whose acknowledgement was answered is never delivered again, even after a crash. A
delivery counts even when the connection ends before its response is sent, which waits for the acknowledgements of the
same ShareFetch. Such a fetch may come from a connection that the member has abandoned, while the session belongs to
another one (Kafka identifies it by member and epoch only): then nothing releases its records, and their locks expire.
KIP-932.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from barnabas.wire.messages.groups import share_groups as g

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from barnabas.wire.schema import Message
    from tests.simulation.broker.network import Wire
    from tests.simulation.clock import Clock

GAP, ACCEPT, RELEASE, REJECT, RENEW = 0, 1, 2, 3, 4
FINAL = (GAP, ACCEPT, REJECT)
ROUNDING_S = 1e-6
RecordPosition = tuple[int, int]
"""Partition and offset."""


class Lock(NamedTuple):
    """A record that a member has acquired."""

    member_id: str
    wire: Wire
    until: float
    """The lock holds at least until then, unless the record is released."""


class Locked(NamedTuple):
    """A record that the broker has locked for a member."""

    record: RecordPosition
    member_id: str
    count: int
    """Delivery count, this delivery included."""


class Delivery(NamedTuple):
    """The last delivery of a record."""

    count: int
    is_unacknowledged: bool
    """Whether the member has sent no acknowledgement of it."""
    era: int


class ShareLedger:
    """The ledger of one share group."""

    def __init__(self, clock: Clock, limit: int) -> None:
        self._clock = clock
        self._limit = limit
        self._locks: dict[RecordPosition, Lock] = {}
        self._deliveries: dict[RecordPosition, Delivery] = {}
        self._withheld: dict[Wire, tuple[str, dict[RecordPosition, int]]] = {}
        """By connection with a ShareFetch whose response waits for acknowledgements: the member, and the delivery
        counts of the records that are locked for it and were in no response."""
        self._failed: list[str] = []
        """Members of ShareFetches that were answered with an error in this turn, as when the records cannot be read:
        what was locked for them counts as delivered."""
        self._era = 0
        """Incremented by events that make the broker release acquired records: ends of sessions, and crashes."""
        self.acknowledged: dict[RecordPosition, int] = {}
        """Final acknowledgements that were answered without an error."""
        self.decided: set[RecordPosition] = set()
        """Records with a final acknowledgement, answered or not."""

    # ---- events

    def request_received(self, wire: Wire, request: Message) -> None:
        """The broker receives a request."""
        if not isinstance(request, (g.ShareFetchRequest, g.ShareAcknowledgeRequest)):
            return
        wire.arrived_at = self._clock.now
        member_id = request.member_id or ""
        if request.share_session_epoch <= 0:
            self._release(lambda lock: lock.member_id == member_id)
        acknowledged = list(acknowledgements(request))
        if acknowledged and isinstance(request, g.ShareFetchRequest):
            self._withheld[wire] = (member_id, {})
        for record, kind in acknowledged:
            if kind in FINAL:
                self.decided.add(record)
            lock = self._locks.get(record)
            if kind != RENEW and lock is not None and lock.member_id == member_id:
                del self._locks[record]
                self._deliveries[record] = self._deliveries[record]._replace(is_unacknowledged=False)

    def response_sent(self, wire: Wire, request: Message, response: Message) -> None:
        """The broker sends a response."""
        self._withheld.pop(wire, None)
        if not isinstance(response, (g.ShareFetchResponse, g.ShareAcknowledgeResponse)):
            return
        if response.error_code:
            if isinstance(request, g.ShareFetchRequest):
                self._failed.append(request.member_id or "")
            return
        assert isinstance(request, (g.ShareFetchRequest, g.ShareAcknowledgeRequest))
        self._settle(request, response)
        if isinstance(response, g.ShareFetchResponse):
            until = wire.arrived_at + response.acquisition_lock_timeout_ms / 1000
            lock = Lock(request.member_id or "", wire, until)
            for partition in (data for topic in response.responses for data in topic.partitions):
                for acquired in partition.acquired_records:
                    for offset in range(acquired.first_offset, acquired.last_offset + 1):
                        self._acquire((partition.partition_index, offset), lock, acquired.delivery_count)

    def connection_closed(self, wire: Wire) -> None:
        """The broker's end of a connection is closed: its session ends, and its records are released."""
        self._lose_response(wire)
        self._release(lambda lock: lock.wire is wire)

    def broker_crashes(self) -> None:
        """The broker crashes: all records are released."""
        for wire in list(self._withheld):
            self._lose_response(wire)
        self._release(lambda _: True)

    @property
    def has_withheld(self) -> bool:
        """Whether records may be locked that were in no response yet, or never will be."""
        return bool(self._withheld or self._failed)

    def turn_ends(self, locked: Iterable[Locked]) -> None:
        """The records that the broker has locked at the end of a turn; needed while responses are withheld."""
        failed, self._failed = self._failed, []
        for record, member_id, count in locked:
            before = self._deliveries.get(record)
            if before is not None and before.count >= count:
                continue
            if member_id in failed:
                self._check_delivery(record, member_id, count)
                self._deliveries[record] = Delivery(count, is_unacknowledged=False, era=self._era)
                continue
            for member_of_fetch, records in self._withheld.values():
                if member_of_fetch == member_id and records.get(record) != count:
                    self._check_delivery(record, member_id, count)
                    records[record] = count
                    if before is not None:  # the next count follows on this one
                        self._deliveries[record] = before._replace(is_unacknowledged=False)

    # ---- checks

    def _release(self, condition: object) -> None:
        assert callable(condition)
        self._era += 1
        self._locks = {record: lock for record, lock in self._locks.items() if not condition(lock)}

    def _settle(
        self,
        request: g.ShareFetchRequest | g.ShareAcknowledgeRequest,
        response: g.ShareFetchResponse | g.ShareAcknowledgeResponse,
    ) -> None:
        errors = {}
        for partition in (data for topic in response.responses for data in topic.partitions):
            is_fetch = isinstance(partition, g.ShareFetchResponsePartitionData)
            errors[partition.partition_index] = partition.acknowledge_error_code if is_fetch else partition.error_code
        for record, kind in acknowledgements(request):
            if errors.get(record[0]) == 0 and kind in FINAL:
                self.acknowledged[record] = kind

    def _lose_response(self, wire: Wire) -> None:
        """A response will never be sent: its records were delivered, but the member does not know it."""
        _, records = self._withheld.pop(wire, ("", {}))
        for record, count in records.items():
            before = self._deliveries.get(record)
            if before is None or before.count < count:
                self._deliveries[record] = Delivery(count, is_unacknowledged=False, era=self._era)

    def _check_delivery(self, record: RecordPosition, member_id: str, count: int) -> None:
        held = self._locks.get(record)
        assert held is None or held.until < self._clock.now + ROUNDING_S, (
            f"{record} is delivered to {member_id} while {held.member_id} has it"
        )
        assert record not in self.acknowledged, (
            f"{record} is delivered to {member_id} after acknowledgement {self.acknowledged[record]}"
        )
        assert 1 <= count <= self._limit, f"{record} is delivered {count} times"
        before = self._deliveries.get(record)
        if before is not None and before.is_unacknowledged and before.era == self._era:
            assert count == before.count + 1, (
                f"the lock of {record} expired after delivery {before.count}, and the next one is {count}"
            )

    def _acquire(self, record: RecordPosition, lock: Lock, count: int) -> None:
        self._check_delivery(record, lock.member_id, count)
        self._locks[record] = lock
        self._deliveries[record] = Delivery(count, is_unacknowledged=True, era=self._era)

    def is_accounted_for(self, record: RecordPosition) -> bool:
        """Whether a record may be finished: it has a final acknowledgement, or was delivered as often as the limit."""
        delivery = self._deliveries.get(record)
        return delivery is not None and (record in self.decided or delivery.count >= self._limit)


def acknowledgements(request: g.ShareFetchRequest | g.ShareAcknowledgeRequest) -> Iterator[tuple[RecordPosition, int]]:
    """The acknowledgement of each record in a request."""
    for topic in request.topics:
        for partition in topic.partitions:
            for batch in partition.acknowledgement_batches:
                types = batch.acknowledge_types
                for n, offset in enumerate(range(batch.first_offset, batch.last_offset + 1)):
                    yield (partition.partition_index, offset), types[n if len(types) > 1 else 0]
