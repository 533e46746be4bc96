"""T5: offsets committed in transactions are applied with the commit marker."""

from __future__ import annotations

from barnabas.coord.groups.pending_offsets import PendingOffsets
from barnabas.coord.groups.records import offset_commit
from barnabas.coord.machine import CoordinatorRecord
from barnabas.wire.messages.records.coordinator_records import OffsetCommitKey, OffsetCommitValue


def record(key: str, value: str | None = "v") -> CoordinatorRecord:
    return CoordinatorRecord(key.encode(), None if value is None else value.encode())


def test_a_commit_gives_the_offsets_of_its_producer_in_order() -> None:
    pending = PendingOffsets()
    pending.hold(7, 1, record("a", "1"))
    pending.hold(8, 2, record("b", "other"))
    pending.hold(7, 3, record("a", "2"))
    assert len(pending) == 3
    assert pending.end(7, commit=True) == [record("a", "1"), record("a", "2")]
    assert len(pending) == 1


def test_an_abort_drops_them_and_a_marker_of_a_stranger_does_nothing() -> None:
    pending = PendingOffsets()
    pending.hold(7, 1, record("a"))
    assert pending.end(9, commit=True) == []
    assert pending.end(7, commit=False) == []
    assert pending.end(7, commit=True) == []


def test_what_was_committed_outside_meanwhile_wins() -> None:
    pending = PendingOffsets()
    pending.hold(7, 1, record("a", "old"))
    pending.hold(7, 2, record("b"))
    pending.replayed(3, record("a", "new"))
    assert pending.end(7, commit=True) == [record("b")]


def test_of_two_transactions_the_later_commit_wins_whichever_ends_first() -> None:
    pending = PendingOffsets()
    pending.hold(7, 1, record("a", "first"))
    pending.hold(8, 2, record("a", "second"))
    assert pending.end(8, commit=True) == [record("a", "second")]
    assert pending.end(7, commit=True) == []


def test_a_tombstone_takes_what_is_pending_along_and_makes_room_again() -> None:
    """As in Kafka 4.4: a marker does not restore an offset that was deleted with its group or topic."""
    pending = PendingOffsets()
    pending.hold(7, 1, record("a", "before"))
    pending.hold(7, 2, record("b"))
    pending.replayed(3, record("a", "new"))
    pending.replayed(4, record("a", None))
    assert not pending.has(b"a")
    pending.hold(8, 5, record("a", "after"))
    assert pending.end(7, commit=True) == [record("b")]
    assert pending.end(8, commit=True) == [record("a", "after")]


def test_an_ended_transaction_leaves_nothing_behind_for_the_next() -> None:
    pending = PendingOffsets()
    pending.hold(7, 1, record("a"))
    pending.replayed(5, record("a"))
    pending.end(7, commit=True)
    pending.hold(7, 6, record("a"))
    assert pending.end(7, commit=True) == [record("a")]


def _offset(group: str, topic: str, partition: int) -> CoordinatorRecord:
    return offset_commit(
        OffsetCommitKey(group=group, topic=topic, partition=partition), OffsetCommitValue(topic_id=b"t" * 16)
    )


def test_the_offsets_of_a_group_and_of_a_topic_are_found_without_a_look_at_the_others() -> None:
    pending = PendingOffsets()
    records = [_offset(f"g{group}", f"t{topic}", 0) for group in range(20) for topic in range(30)]
    for offset, record in enumerate(records):
        pending.hold(offset % 7, offset, record)
    assert pending.of_group("g1") == [_offset("g1", f"t{topic}", 0).key for topic in range(30)]
    assert pending.of_topic("t2", b"t" * 16) == [_offset(f"g{group}", "t2", 0).key for group in range(20)]
    assert pending.of_topic("t2", b"u" * 16) == []
    for offset, record in enumerate(records, len(records)):
        pending.replayed(offset, CoordinatorRecord(record.key, None))
    assert pending.of_group("g1") == []
    assert pending.of_topic("t2", b"t" * 16) == []
    assert len(pending) == 0
    assert [pending.end(producer, commit=True) for producer in range(7)] == [[]] * 7
    assert not pending
