"""The ledger of share groups: which deliveries it counts, and that it still tells of those that must not be (G5)."""

from __future__ import annotations

import pytest

from barnabas.wire.messages import share_groups as g
from tests.simulation.network import Link, Wire
from tests.simulation.share import SETTINGS
from tests.simulation.share_ledger import RELEASE, Locked, ShareLedger
from tests.simulation.world import World

PLACE = (0, 31)
LIMIT = 2


@pytest.fixture
def world() -> World:
    """A broker, and nobody who does anything."""
    world = World("ledger", SETTINGS)
    world.node.start()
    return world


@pytest.fixture
def ledger(world: World) -> ShareLedger:
    """It has seen one delivery of the record, to somebody who gave it back."""
    ledger = ShareLedger(world.clock, LIMIT)
    wire = connected(world)
    request = fetch("first")
    ledger.request_arrives(wire, request)
    ledger.answer_leaves(wire, request, given(1))
    ledger.connection_ends(wire)
    assert not ledger.is_accounted_for(PLACE)
    return ledger


def connected(world: World) -> Wire:
    """A connection."""
    wire = world.network.connect(Link(world, "member"))
    assert wire is not None
    return wire


def fetch(member_id: str, said_of: int | None = None) -> g.ShareFetchRequest:
    """A request, with a word about another record or without."""
    batches = [] if said_of is None else [(said_of, said_of)]
    partition = g.ShareFetchRequestFetchPartition(
        partition_index=0,
        acknowledgement_batches=[
            g.ShareFetchRequestAcknowledgementBatch(first_offset=first, last_offset=last, acknowledge_types=[RELEASE])
            for first, last in batches
        ],
    )
    topics = [g.ShareFetchRequestFetchTopic(topic_id=b"t" * 16, partitions=[partition])]
    return g.ShareFetchRequest(group_id="workers", member_id=member_id, share_session_epoch=1, topics=topics)


def given(*counts: int) -> g.ShareFetchResponse:
    """An answer that shows the record with these delivery counts, or nothing."""
    acquired = [g.AcquiredRecords(first_offset=PLACE[1], last_offset=PLACE[1], delivery_count=one) for one in counts]
    partition = g.ShareFetchResponsePartitionData(partition_index=0, records=b"", acquired_records=acquired)
    topics = [g.ShareFetchableTopicResponse(topic_id=b"t" * 16, partitions=[partition])]
    return g.ShareFetchResponse(acquisition_lock_timeout_ms=2000, responses=topics)


def test_a_delivery_counts_whose_connection_ends_before_the_answer_leaves(world: World, ledger: ShareLedger) -> None:
    """The answer waits for the acknowledgements; the broker has counted the delivery already (G5)."""
    wire = connected(world)
    ledger.request_arrives(wire, fetch("second", said_of=3))
    ledger.turn_ends([Locked(PLACE, "second", LIMIT)])
    assert not ledger.is_accounted_for(PLACE)
    ledger.connection_ends(wire)
    assert ledger.is_accounted_for(PLACE)


def test_a_delivery_counts_whose_answer_a_crash_keeps_from_leaving(world: World, ledger: ShareLedger) -> None:
    """Its lock may have run out, and that be written, before the crash (G5)."""
    ledger.request_arrives(connected(world), fetch("second", said_of=3))
    ledger.turn_ends([Locked(PLACE, "second", LIMIT)])
    ledger.broker_crashes()
    assert ledger.is_accounted_for(PLACE)


def test_a_count_may_follow_on_that_of_an_answer_that_has_not_left(world: World) -> None:
    """The lock of the delivery before may run out while its answer waits (G5)."""
    ledger = ShareLedger(world.clock, 3)
    one, other = connected(world), connected(world)
    ledger.request_arrives(one, fetch("first"))
    ledger.answer_leaves(one, fetch("first"), given(1))
    world.clock.now += 2.5
    ledger.request_arrives(one, fetch("first", said_of=3))
    ledger.turn_ends([Locked(PLACE, "first", 2)])
    world.clock.now += 2.5
    ledger.request_arrives(other, fetch("second"))
    ledger.answer_leaves(other, fetch("second"), given(3))
    assert ledger.is_accounted_for(PLACE)


def test_a_delivery_that_the_answer_does_not_show_is_none(world: World, ledger: ShareLedger) -> None:
    """A record that is locked, and not given to anybody, is given up without a reason (G5)."""
    wire = connected(world)
    request = fetch("second", said_of=3)
    ledger.request_arrives(wire, request)
    ledger.turn_ends([Locked(PLACE, "second", LIMIT)])
    ledger.answer_leaves(wire, request, given())
    ledger.connection_ends(wire)
    assert not ledger.is_accounted_for(PLACE)


def test_what_is_locked_for_another_member_is_no_delivery_of_this_connection(world: World, ledger: ShareLedger) -> None:
    """Only what the lost answer would have shown counts (G5)."""
    wire = connected(world)
    ledger.request_arrives(wire, fetch("second", said_of=3))
    ledger.turn_ends([Locked(PLACE, "third", LIMIT)])
    ledger.connection_ends(wire)
    assert not ledger.is_accounted_for(PLACE)


@pytest.mark.parametrize("count", [LIMIT, LIMIT + 1])
def test_a_delivery_that_must_not_be_is_told_of_before_its_answer_leaves(
    world: World, ledger: ShareLedger, count: int
) -> None:
    """A record that another member has, or that was given out as often as the limit allows (G5)."""
    if count == LIMIT:
        holder = connected(world)
        ledger.request_arrives(holder, fetch("holder"))
        ledger.answer_leaves(holder, fetch("holder"), given(1))
    ledger.request_arrives(connected(world), fetch("second", said_of=3))
    with pytest.raises(AssertionError, match="holder has it" if count == LIMIT else "given out 3 times"):
        ledger.turn_ends([Locked(PLACE, "second", count)])
