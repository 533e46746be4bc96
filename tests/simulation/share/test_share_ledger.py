"""The ledger of share groups: which deliveries it counts, and that it detects invalid ones (rule G5)."""

from __future__ import annotations

import pytest

from barnabas.wire.messages.groups import share_groups as g
from tests.simulation.broker.network import Link, Wire
from tests.simulation.broker.world import World
from tests.simulation.share.ledger import RELEASE, Locked, ShareLedger
from tests.simulation.share.share import SETTINGS

RECORD = (0, 31)
LIMIT = 2


@pytest.fixture
def world() -> World:
    """A broker without clients."""
    world = World("ledger", SETTINGS)
    world.node.start()
    return world


@pytest.fixture
def ledger(world: World) -> ShareLedger:
    """A ledger with one delivery of the record, which was released."""
    ledger = ShareLedger(world.clock, LIMIT)
    wire = connected(world)
    request = fetch("first")
    ledger.request_received(wire, request)
    ledger.response_sent(wire, request, response(1))
    ledger.connection_closed(wire)
    assert not ledger.is_accounted_for(RECORD)
    return ledger


def connected(world: World) -> Wire:
    """A connection."""
    wire = world.network.connect(Link(world.network, "member"))
    assert wire is not None
    return wire


def fetch(member_id: str, release: int | None = None) -> g.ShareFetchRequest:
    """A ShareFetch, which may release another record."""
    batches = [] if release is None else [(release, release)]
    partition = g.ShareFetchRequestFetchPartition(
        partition_index=0,
        acknowledgement_batches=[
            g.ShareFetchRequestAcknowledgementBatch(first_offset=first, last_offset=last, acknowledge_types=[RELEASE])
            for first, last in batches
        ],
    )
    topics = [g.ShareFetchRequestFetchTopic(topic_id=b"t" * 16, partitions=[partition])]
    return g.ShareFetchRequest(group_id="workers", member_id=member_id, share_session_epoch=1, topics=topics)


def response(*counts: int) -> g.ShareFetchResponse:
    """A response with the record, with these delivery counts, or without it."""
    acquired = [
        g.AcquiredRecords(first_offset=RECORD[1], last_offset=RECORD[1], delivery_count=count) for count in counts
    ]
    partition = g.ShareFetchResponsePartitionData(partition_index=0, records=b"", acquired_records=acquired)
    topics = [g.ShareFetchableTopicResponse(topic_id=b"t" * 16, partitions=[partition])]
    return g.ShareFetchResponse(acquisition_lock_timeout_ms=2000, responses=topics)


def test_a_delivery_counts_when_the_connection_closes_before_the_response(world: World, ledger: ShareLedger) -> None:
    """The response waits for the acknowledgements; the broker has already counted the delivery."""
    wire = connected(world)
    ledger.request_received(wire, fetch("second", release=3))
    ledger.turn_ends([Locked(RECORD, "second", LIMIT)])
    assert not ledger.is_accounted_for(RECORD)
    ledger.connection_closed(wire)
    assert ledger.is_accounted_for(RECORD)


def test_a_delivery_counts_when_the_broker_crashes_before_the_response(world: World, ledger: ShareLedger) -> None:
    """Its lock may have expired, and that may be durable, before the crash."""
    ledger.request_received(connected(world), fetch("second", release=3))
    ledger.turn_ends([Locked(RECORD, "second", LIMIT)])
    ledger.broker_crashes()
    assert ledger.is_accounted_for(RECORD)


def test_a_delivery_counts_when_the_records_cannot_be_read(world: World, ledger: ShareLedger) -> None:
    """The records are read when the response is sent, after they were acquired; then it is an error."""
    wire = connected(world)
    ledger.request_received(wire, fetch("second"))
    ledger.response_sent(wire, fetch("second"), g.ShareFetchResponse(error_code=56))
    ledger.turn_ends([Locked(RECORD, "second", LIMIT)])
    assert ledger.is_accounted_for(RECORD)


def test_a_delivery_in_a_withheld_response_counts_for_the_next_one(world: World) -> None:
    """The lock of the previous delivery may expire while its response waits."""
    ledger = ShareLedger(world.clock, 3)
    first, other = connected(world), connected(world)
    ledger.request_received(first, fetch("first"))
    ledger.response_sent(first, fetch("first"), response(1))
    world.clock.now += 2.5
    ledger.request_received(first, fetch("first", release=3))
    ledger.turn_ends([Locked(RECORD, "first", 2)])
    world.clock.now += 2.5
    ledger.request_received(other, fetch("second"))
    ledger.response_sent(other, fetch("second"), response(3))
    assert ledger.is_accounted_for(RECORD)


def test_a_lock_that_is_not_in_the_response_is_no_delivery(world: World, ledger: ShareLedger) -> None:
    """A record that is locked but not delivered must not count towards the limit."""
    wire = connected(world)
    request = fetch("second", release=3)
    ledger.request_received(wire, request)
    ledger.turn_ends([Locked(RECORD, "second", LIMIT)])
    ledger.response_sent(wire, request, response())
    ledger.connection_closed(wire)
    assert not ledger.is_accounted_for(RECORD)


def test_a_lock_of_another_member_is_no_delivery_of_this_connection(world: World, ledger: ShareLedger) -> None:
    """Only records of the lost response count."""
    wire = connected(world)
    ledger.request_received(wire, fetch("second", release=3))
    ledger.turn_ends([Locked(RECORD, "third", LIMIT)])
    ledger.connection_closed(wire)
    assert not ledger.is_accounted_for(RECORD)


@pytest.mark.parametrize("count", [LIMIT, LIMIT + 1])
def test_an_invalid_delivery_is_detected_before_its_response(world: World, ledger: ShareLedger, count: int) -> None:
    """A record that another member has, or that was delivered as often as the limit."""
    if count == LIMIT:
        holder = connected(world)
        ledger.request_received(holder, fetch("holder"))
        ledger.response_sent(holder, fetch("holder"), response(1))
    ledger.request_received(connected(world), fetch("second", release=3))
    with pytest.raises(AssertionError, match="holder has it" if count == LIMIT else "delivered 3 times"):
        ledger.turn_ends([Locked(RECORD, "second", count)])
