"""Checks of a share group's deliveries from what its members see, while the leaders of its partitions move (G5).

A record whose final acknowledgement was accepted is never delivered again; no record is delivered more often than the
limit; a leader does not give a record to another member while the lock of the first one holds. A broker that was
deposed and does not know it delivers from its memory, in Kafka too, so what it delivers is checked for its count only.
An acknowledgement may be accepted twice: one for a record below the start of the window is without effect (Kafka).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

from barnabas.wire.messages.groups import share_groups as g
from tests.simulation.cluster.links import DIRECTLY
from tests.simulation.share.ledger import FINAL, RENEW, RecordPosition, acknowledgements

if TYPE_CHECKING:
    from tests.simulation.clock import Clock

Leadership = Callable[[int, int], object]
"""What identifies the leadership of a node over a partition of the queue; None unless it leads, and knows it."""
SessionKey = tuple[str, int]
"""Member and node."""


class Sent(NamedTuple):
    """A request that is under way."""

    session: SessionKey
    request: g.ShareFetchRequest | g.ShareAcknowledgeRequest
    at: float
    leaderships: list[object]


class Hold(NamedTuple):
    """A record that a member has acquired: while its session lasts, no other member gets it before `until`."""

    session: SessionKey
    leadership: object
    since: float
    until: float

    def excludes(self, sent: Sent, other: Hold) -> bool:
        """Whether a fetch that was sent and answered meanwhile cannot have got the record, from the same leader."""
        is_meanwhile = self.since < sent.at and other.since < self.until
        return is_meanwhile and other.session != self.session and other.leadership == self.leadership


class ClusterShareLedger:
    """The ledger of one share group."""

    def __init__(self, clock: Clock, limit: int, partitions: int, leadership: Leadership) -> None:
        self._clock = clock
        self._limit = limit
        self._partitions = partitions
        self._leadership = leadership
        self._holds: dict[RecordPosition, Hold] = {}
        self._doubts: dict[SessionKey, tuple[float, str]] = {}
        """Deliveries of what a member has, an error if its session turns out to have lasted."""
        self._accepted: dict[RecordPosition, float] = {}
        """When final acknowledgements were answered without an error."""
        self._decided: set[RecordPosition] = set()
        self._counts: dict[RecordPosition, int] = {}
        self._unanswered = 0
        """How many fetches have no answer: each may have delivered records."""

    # ---- what members do

    def sending(self, member_id: str, lane: str, request: g.ShareFetchRequest | g.ShareAcknowledgeRequest) -> Sent:
        """A member sends a request."""
        session = (member_id, int(lane.removeprefix(DIRECTLY)))
        if request.share_session_epoch <= 0:
            self._session_ends(session)
        for record, kind in acknowledgements(request):
            if kind in FINAL:
                self._decided.add(record)
            if kind != RENEW and record in self._holds and self._holds[record].session == session:
                del self._holds[record]
        return Sent(session, request, self._clock.now, self._leaderships(session[1]))

    def answered(self, sent: Sent, response: g.ShareFetchResponse | g.ShareAcknowledgeResponse | None) -> None:
        """It has a response, or None."""
        if response is None or response.error_code:
            self._unanswered += response is None
            self._session_ends(sent.session)
            return
        doubt = self._doubts.get(sent.session)
        assert doubt is None or doubt[0] >= sent.at, doubt
        self._settle(sent, response)
        if isinstance(response, g.ShareFetchResponse):
            now = self._leaderships(sent.session[1])
            for partition in (data for topic in response.responses for data in topic.partitions):
                index = partition.partition_index
                leadership = now[index] if now[index] == sent.leaderships[index] else None
                until = sent.at + response.acquisition_lock_timeout_ms / 1000
                hold = Hold(sent.session, leadership, self._clock.now, until)
                for acquired in partition.acquired_records:
                    for offset in range(acquired.first_offset, acquired.last_offset + 1):
                        self._delivered((index, offset), acquired.delivery_count, sent, hold)

    def is_accounted_for(self, record: RecordPosition) -> bool:
        """Whether a record may be finished: it has a final acknowledgement, or was delivered as often as the limit."""
        return record in self._decided or self._counts.get(record, 0) + self._unanswered >= self._limit

    # ---- checks

    def _leaderships(self, node_id: int) -> list[object]:
        return [self._leadership(index, node_id) for index in range(self._partitions)]

    def _session_ends(self, session: SessionKey) -> None:
        self._doubts.pop(session, None)
        self._holds = {record: hold for record, hold in self._holds.items() if hold.session != session}

    def _settle(self, sent: Sent, response: g.ShareFetchResponse | g.ShareAcknowledgeResponse) -> None:
        errors = {}
        for partition in (data for topic in response.responses for data in topic.partitions):
            is_fetch = isinstance(partition, g.ShareFetchResponsePartitionData)
            errors[partition.partition_index] = partition.acknowledge_error_code if is_fetch else partition.error_code
        for record, kind in acknowledgements(sent.request):
            if errors.get(record[0]) == 0 and kind in FINAL:
                self._accepted.setdefault(record, self._clock.now)

    def _delivered(self, record: RecordPosition, count: int, sent: Sent, hold: Hold) -> None:
        assert 1 <= count <= self._limit, f"{record} is delivered {count} times"
        self._counts[record] = max(count, self._counts.get(record, 0))
        if hold.leadership is None:
            return
        accepted = self._accepted.get(record)
        assert accepted is None or accepted > sent.at, (
            f"{record} is delivered to {sent.session} after an acknowledgement was accepted at {accepted}"
        )
        held = self._holds.get(record)
        if held is not None and held.excludes(sent, hold):
            problem = f"{record} is delivered to {sent.session} while {held.session} has it until {held.until}"
            self._doubts[held.session] = (self._clock.now, problem)
        self._holds[record] = hold
