"""Compaction, rule by rule: L7 (what is kept, what is cleaned), L8 (tombstones), L9 (transactions, producers)."""

from __future__ import annotations

from pathlib import Path

import pytest

from barnabas.storage import layout
from barnabas.storage.cleaning.cleaner import Cleaner
from barnabas.storage.cleaning.key_map import KEY_BYTES
from barnabas.storage.cleaning.selection import CleanerLimits, cleanable, cleaning_task
from barnabas.storage.files import UnsyncedFiles
from barnabas.storage.log import Log
from barnabas.storage.producer_entry import ProducerEntry
from barnabas.wire.records import DELETE_HORIZON_BIT, BatchBuilder, CorruptRecord, iter_records
from tests.storage.cleaning_driver import (
    AMPLE,
    DELETE_RETENTION_MS,
    NOW_MS,
    batches_of,
    clean,
    compacted,
    data_of,
    keys_and_values,
    stored,
    task_for,
)
from tests.storage.log_driver import append, append_marker, kill, open_log, records_from

Pair = tuple[bytes | None, bytes | None]


@pytest.fixture
def log(tmp_path: Path) -> Log:
    return open_log(tmp_path, compacted())


def put(
    log: Log,
    *pairs: Pair,
    codec: int = 0,
    producer: tuple[int, int, int] = (-1, -1, -1),
    transactional: bool = False,
    timestamp: int = 1_000,
) -> int:
    """Append one batch of (key, value); its base offset."""
    builder = BatchBuilder(
        codec=codec,
        producer_id=producer[0],
        producer_epoch=producer[1],
        base_sequence=producer[2],
        transactional=transactional,
    )
    for key, value in pairs:
        builder.append(timestamp, key, value, [("h", b"x")])
    info = append(log, bytearray(builder.build()), now_ms=NOW_MS)
    log.high_watermark = log.log_end_offset
    return info.first_offset


def close_segment(log: Log) -> None:
    """Make everything appended so far cleanable."""
    log.roll(0.0)
    log.flush()


def producers(log: Log) -> dict[int, tuple[int, int]]:
    """(epoch, last sequence) of each producer."""
    entries: list[ProducerEntry] = log.active_producers()
    return {entry.producer_id: (entry.producer_epoch, entry.last_sequence) for entry in entries}


# --- L7: what is kept


def test_last_record_of_each_key_stays_at_its_offset(log: Log) -> None:
    """L7: offsets, timestamps and headers do not change; a batch keeps its own range of offsets."""
    put(log, (b"a", b"1"), (b"b", b"1"), (b"a", b"2"))
    put(log, (b"c", b"1"), (b"b", b"2"))
    before = {record.offset: record for record in data_of(log)}
    close_segment(log)
    clean(log)
    assert keys_and_values(log) == [(2, b"a", b"2"), (3, b"c", b"1"), (4, b"b", b"2")]
    assert [before[record.offset] for record in data_of(log)] == data_of(log)
    assert [(batch.base_offset, batch.last_offset) for batch in batches_of(log)] == [(0, 2), (3, 4)]
    assert [record.offset for record in records_from(log, 1)] == [2, 3, 4]


def test_batch_that_loses_records_again_and_again_keeps_its_offsets(log: Log) -> None:
    """L7, L9: its last offset belongs to its last sequence, whatever remains between."""
    put(log, *[(b"k%d" % number, b"1") for number in range(5)], producer=(7, 0, 0))
    for number in (4, 2, 0):
        put(log, (b"k%d" % number, b"2"))
        close_segment(log)
        clean(log)
        first = batches_of(log)[0]
        assert (first.base_offset, first.last_offset, first.last_sequence) == (0, 4, 4)
    assert [offset for offset, _, _ in keys_and_values(log)] == [1, 3, 5, 6, 7]


@pytest.mark.parametrize("codec", range(5))
def test_compressed_batches_are_filtered_and_compressed_again(log: Log, codec: int) -> None:
    """L7: with their original codec; a batch that keeps all records is unchanged byte for byte."""
    put(log, (b"a", b"1" * 50), (b"b", b"1" * 50), codec=codec)
    put(log, (b"a", b"2" * 50), (b"c", b"2" * 50), codec=codec)
    untouched = stored(log)[batches_of(log)[1].start :]
    close_segment(log)
    clean(log)
    assert keys_and_values(log) == [(1, b"b", b"1" * 50), (2, b"a", b"2" * 50), (3, b"c", b"2" * 50)]
    assert [batch.codec for batch in batches_of(log)] == [codec, codec]
    assert stored(log).endswith(untouched)


def test_record_without_key_does_not_survive(log: Log) -> None:
    """It was written before the topic was compacted, and cannot be looked up."""
    log.config.cleanup_policy = frozenset({"delete"})
    put(log, (b"a", b"1"), (None, b"2"), (b"b", b"3"))
    log.config.cleanup_policy = frozenset({"compact"})
    close_segment(log)
    clean(log)
    assert keys_and_values(log) == [(0, b"a", b"1"), (2, b"b", b"3")]


def test_active_segment_is_untouched(log: Log) -> None:
    """L7: its keys are neither counted nor removed."""
    put(log, (b"a", b"1"))
    close_segment(log)
    put(log, (b"a", b"2"))
    clean(log)
    assert [offset for offset, _, _ in keys_and_values(log)] == [0, 1]
    close_segment(log)
    clean(log)
    assert [offset for offset, _, _ in keys_and_values(log)] == [1]


def test_nothing_at_or_past_the_last_stable_offset_is_cleaned(log: Log) -> None:
    """L7: an open transaction, or records not yet replicated, end the cleanable part."""
    put(log, (b"a", b"1"))
    close_segment(log)
    put(log, (b"a", b"2"), producer=(7, 0, 0), transactional=True)
    close_segment(log)
    put(log, (b"a", b"3"))
    close_segment(log)
    assert cleanable(log, None, NOW_MS).end_offset == 1
    clean(log)
    assert len(keys_and_values(log)) == 3
    append_marker(log, commit=True, producer_id=7)
    log.high_watermark = 2
    assert cleanable(log, None, NOW_MS).end_offset == 1


def test_nothing_that_is_not_synced_is_cleaned(log: Log) -> None:
    """L7: a record that a power failure may lose must not supersede one that survives."""
    put(log, (b"k", b"old"))
    close_segment(log)
    put(log, (b"k", b"new"))
    log.roll(0.0)
    assert cleanable(log, None, NOW_MS).end_offset == 1
    log.flush(data_only=True)
    assert cleanable(log, None, NOW_MS).end_offset == 2


@pytest.mark.parametrize("commit", [True, False])
def test_transaction_is_open_to_the_cleaner_until_its_marker_is_synced(log: Log, commit: bool) -> None:
    """L7, L9: if a power failure loses the marker, the transaction is open and must be complete."""
    put(log, (b"k", b"1"), producer=(7, 0, 0), transactional=True)
    close_segment(log)
    append_marker(log, commit=commit, producer_id=7)
    log.high_watermark = log.log_end_offset
    assert cleanable(log, None, NOW_MS).end_offset == 0
    log.flush()
    assert cleanable(log, None, NOW_MS).end_offset == 1


def test_records_younger_than_min_compaction_lag_are_left(log: Log) -> None:
    """L7: the first segment with a young record ends the cleanable part."""
    log.config.min_compaction_lag_ms = 1_000
    put(log, (b"a", b"1"), timestamp=NOW_MS - 3_000)
    close_segment(log)
    put(log, (b"a", b"2"), timestamp=NOW_MS - 999)
    close_segment(log)
    put(log, (b"a", b"3"), timestamp=NOW_MS - 5_000)
    close_segment(log)
    assert cleanable(log, None, NOW_MS).end_offset == 1
    assert cleanable(log, None, NOW_MS + 1).end_offset == 3


def test_log_is_due_when_more_than_the_dirty_ratio_is_dirty(log: Log) -> None:
    """L7: dirty bytes divided by cleanable bytes, strictly more than the ratio."""
    put(log, (b"a", b"1" * 80))
    close_segment(log)
    put(log, (b"b", b"1" * 80))
    close_segment(log)
    part = cleanable(log, 1, NOW_MS)
    assert (part.clean_bytes, part.dirty_bytes) == (log.segments[0].size, log.segments[1].size)
    assert not part.is_due
    log.config.min_cleanable_dirty_ratio = 0.49
    assert cleanable(log, 1, NOW_MS).is_due
    log.config.min_cleanable_dirty_ratio = 0.99
    assert cleanable(log, None, NOW_MS).is_due
    log.config.min_cleanable_dirty_ratio = 0.0
    assert not cleanable(log, 2, NOW_MS).is_due


def test_max_compaction_lag_makes_a_log_due_and_closes_its_segment(log: Log) -> None:
    """L7, KIP-354: by the first timestamp of a dirty segment, and by rolling earlier than segment.ms."""
    log.config.max_compaction_lag_ms = 1_000
    log.config.min_cleanable_dirty_ratio = 1.0
    put(log, (b"a", b"1"), timestamp=NOW_MS - 1_001)
    put(log, (b"b", b"1"), timestamp=NOW_MS)
    assert [segment.base_offset for segment in log.segments] == [0, 1]
    close_segment(log)
    assert cleanable(log, None, NOW_MS).is_due
    assert not cleanable(log, None, NOW_MS - 1).is_due
    assert not cleanable(log, 2, NOW_MS).is_due


@pytest.mark.parametrize("checkpoint", [99, 0])
def test_checkpoint_outside_the_log_means_all_is_dirty(log: Log, checkpoint: int) -> None:
    for value in (b"1", b"2", b"3"):
        put(log, (b"a", value))
        close_segment(log)
    log.advance_log_start_offset(1)
    part = cleanable(log, checkpoint, NOW_MS)
    assert (part.first_dirty_offset, part.reset_from) == (1, checkpoint)


def test_small_segments_are_merged_while_they_fit(log: Log) -> None:
    """L7: by segment.bytes; the last batch of each is kept, at least as a header, so that its end is known."""
    for value in (b"1", b"2", b"3", b"4", b"5", b"6"):
        put(log, (b"a", value * 550), (b"k" + value, value))
        close_segment(log)
    files_before = {Path(segment.path(layout.LOG_SUFFIX)).stat().st_mtime_ns // 10**6 for segment in log.segments}
    groups = clean(log).groups
    assert [group.replaced for group in groups] == [[0, 2], [4, 6], [8, 10]]
    assert [segment.base_offset for segment in log.segments] == [0, 4, 8, 12]
    assert len(keys_and_values(log)) == 7
    again = clean(log)
    assert [group.replaced for group in again.groups] == [[0, 4, 8]]
    assert Path(log.segments[0].path(layout.LOG_SUFFIX)).stat().st_mtime_ns // 10**6 in files_before


def test_index_size_limits_a_group(log: Log) -> None:
    """L7: the larger of a segment's two indexes counts."""
    for value in (b"1", b"2", b"3"):
        for key in range(4):
            put(log, (b"k%d" % key, value * 60))
        close_segment(log)
    sizes = {
        Path(segment.path(kind)).stat().st_size
        for segment in list(log.segments)[:-1]
        for kind in (layout.INDEX_SUFFIX, layout.TIME_INDEX_SUFFIX)
    }
    log.config.segment_index_bytes = max(sizes) * 2
    assert [len(group.replaced) for group in clean(log).groups] == [2, 1]


def test_range_of_offsets_limits_a_group(tmp_path: Path) -> None:
    """L7: offsets in an index are relative, and have 31 bits."""
    log = open_log(tmp_path, compacted())
    put(log, (b"a", b"1"))
    log.truncate_fully_and_start_at(0)
    put(log, (b"a", b"1"))
    log.log_end_offset = log.producers.end_offset = 2**31 - 2
    close_segment(log)
    put(log, (b"a", b"2"), (b"b", b"2"))
    close_segment(log)
    put(log, (b"c", b"3"))
    close_segment(log)
    assert [group.replaced for group in clean(log).groups] == [[0, 2**31 - 2], [2**31]]


# --- the map of keys


def test_keys_that_do_not_fit_the_map_take_several_passes(log: Log) -> None:
    """A pass cleans up to where the map was full; the next continues there, and the result is the same."""
    keys = [b"k%d" % (number % 10) for number in range(40)]
    for number, key in enumerate(keys):
        put(log, (key, b"%d" % number))
        if number % 5 == 4:
            close_segment(log)
    limits = CleanerLimits(key_memory=4 * (KEY_BYTES + 1), io_buffer=500, io_per_second=0.0)
    ends = [0]
    while ends[-1] < 40:
        ends.append(clean(log, checkpoint=ends[-1], limits=limits).done.end_offset)
        assert ends[-1] > ends[-2]
        kept = {offset for offset, _, _ in keys_and_values(log)}
        assert set(range(ends[-1], 40)) <= kept, "records that are not in the map are unchanged"
    assert len(ends) > 5
    assert [offset for offset, _, _ in keys_and_values(log)] == list(range(30, 40))


def test_batch_larger_than_the_map_is_cleaned(log: Log) -> None:
    put(log, *[(b"k%d" % number, b"1") for number in range(20)])
    put(log, *[(b"k%d" % number, b"2") for number in range(20)])
    close_segment(log)
    limits = CleanerLimits(key_memory=1, io_buffer=500, io_per_second=0.0)
    assert clean(log, limits=limits).done.end_offset == 20
    assert clean(log, checkpoint=20, limits=limits).done.end_offset == 40
    assert [offset for offset, _, _ in keys_and_values(log)] == list(range(20, 40))


def test_second_pass_over_a_clean_log_changes_nothing(log: Log) -> None:
    for number in range(20):
        put(log, (b"k%d" % (number % 4), b"%d" % number), (b"x", b"y"), codec=number % 5)
    close_segment(log)
    clean(log)
    assert clean(log).done.bytes_read > log.segments[0].size, "the segments of the first pass were merged"
    before = stored(log)
    clean(log)
    assert stored(log) == before


# --- L8: tombstones


def test_tombstone_gets_a_horizon_and_is_removed_when_it_has_passed(log: Log) -> None:
    """L8: attribute bit 6 is set, the base timestamp is the horizon, and the record's own timestamp does not change."""
    put(log, (b"a", b"1"), (b"b", b"1"), timestamp=700)
    put(log, (b"a", None), (b"c", b"1"), timestamp=800)
    close_segment(log)
    clean(log, now_ms=NOW_MS)
    assert keys_and_values(log) == [(1, b"b", b"1"), (2, b"a", None), (3, b"c", b"1")]
    first, second = batches_of(log)
    assert (first.delete_horizon_ms, second.delete_horizon_ms) == (None, NOW_MS + DELETE_RETENTION_MS)
    assert [record.timestamp for record in iter_records(second)] == [800, 800]
    assert second.max_timestamp == 800
    for now_ms in (NOW_MS + 1, NOW_MS + DELETE_RETENTION_MS - 1):
        clean(log, now_ms=now_ms)
        assert len(keys_and_values(log)) == 3
        assert batches_of(log)[1].delete_horizon_ms == NOW_MS + DELETE_RETENTION_MS, "it is set once"
    clean(log, now_ms=NOW_MS + DELETE_RETENTION_MS)
    assert keys_and_values(log) == [(1, b"b", b"1"), (3, b"c", b"1")]


@pytest.mark.parametrize("codec", range(5))
def test_horizon_in_a_compressed_batch(log: Log, codec: int) -> None:
    """L8: the timestamp deltas inside are rewritten, whatever their size and sign."""
    builder = BatchBuilder(codec=codec)
    timestamps = [5, 4, 3_000_000_000_000, 7]
    log.config.message_timestamp_after_max_ms = 2**62
    for number, timestamp in enumerate(timestamps):
        builder.append(timestamp, b"%d" % number, None if number == 1 else b"v", [("h", None)])
    append(log, bytearray(builder.build()), now_ms=NOW_MS)
    log.high_watermark = log.log_end_offset
    before = data_of(log)
    close_segment(log)
    clean(log)
    assert data_of(log) == before
    (batch,) = batches_of(log)
    assert (batch.codec, batch.delete_horizon_ms) == (codec, NOW_MS + DELETE_RETENTION_MS)
    assert batch.max_timestamp == 3_000_000_000_000


def test_tombstone_past_the_map_gets_no_horizon(log: Log) -> None:
    """L8: its time starts with the pass that removes its older values, else a reader could miss both."""
    put(log, (b"a", b"1"), (b"b", b"1"))
    put(log, (b"a", None))
    close_segment(log)
    limits = CleanerLimits(key_memory=1, io_buffer=500, io_per_second=0.0)
    clean(log, limits=limits)
    assert [batch.attributes & DELETE_HORIZON_BIT for batch in batches_of(log)] == [0, 0]


def test_value_after_a_tombstone_supersedes_it_at_once(log: Log) -> None:
    put(log, (b"a", b"1"))
    put(log, (b"a", None))
    put(log, (b"a", b"2"))
    close_segment(log)
    clean(log)
    assert keys_and_values(log) == [(2, b"a", b"2")]


# --- L9: transactions and producers


def test_aborted_data_is_removed_and_committed_data_is_kept(log: Log) -> None:
    """L9: an aborted record does not even supersede an earlier one with its key."""
    put(log, (b"a", b"0"), (b"b", b"0"))
    put(log, (b"a", b"1"), producer=(7, 0, 0), transactional=True)
    put(log, (b"b", b"2"), producer=(8, 0, 0), transactional=True)
    append_marker(log, commit=False, producer_id=7)
    append_marker(log, commit=True, producer_id=8)
    close_segment(log)
    log.high_watermark = log.log_end_offset
    clean(log)
    assert keys_and_values(log) == [(0, b"a", b"0"), (3, b"b", b"2")]


def test_marker_is_removed_only_after_its_data_and_its_horizon(log: Log) -> None:
    """L9: a pass that reads data of the transaction keeps the marker, the next sets the horizon, a later removes it."""
    put(log, (b"a", b"1"), producer=(7, 0, 0), transactional=True)
    append_marker(log, commit=False, producer_id=7)
    put(log, (b"a", b"2"), producer=(7, 0, 1), transactional=True)
    append_marker(log, commit=True, producer_id=7)
    put(log, (b"a", b"3"), producer=(7, 0, 2))
    put(log, (b"b", b"3"), producer=(7, 0, 3))
    close_segment(log)
    log.high_watermark = log.log_end_offset

    def markers() -> list[tuple[int, int | None]]:
        return [(batch.base_offset, batch.delete_horizon_ms) for batch in batches_of(log) if batch.is_control]

    clean(log, now_ms=NOW_MS)
    assert markers() == [(1, None), (3, None)]
    assert [entry.last_offset for entry in log.aborted_transactions(0, 10)] == [1]
    clean(log, now_ms=NOW_MS)
    horizon = NOW_MS + DELETE_RETENTION_MS
    assert markers() == [(1, horizon), (3, horizon)]
    assert log.aborted_transactions(0, 10) == []
    clean(log, now_ms=horizon - 1)
    assert markers() == [(1, horizon), (3, horizon)]
    clean(log, now_ms=horizon)
    assert markers() == []
    assert keys_and_values(log) == [(4, b"a", b"3"), (5, b"b", b"3")]


def test_aborted_transaction_does_not_affect_a_later_one(log: Log) -> None:
    """L9: also when the pass starts between the two."""
    put(log, (b"a", b"1"), producer=(7, 0, 0), transactional=True)
    append_marker(log, commit=False, producer_id=7)
    close_segment(log)
    put(log, (b"a", b"2"), producer=(7, 0, 1), transactional=True)
    append_marker(log, commit=True, producer_id=7)
    put(log, (b"a", b"3"))
    close_segment(log)
    log.high_watermark = log.log_end_offset
    clean(log, checkpoint=2)
    assert [(offset, value) for offset, _, value in keys_and_values(log)] == [(4, b"3")]


def test_transaction_that_reaches_past_the_part_keeps_its_entry(log: Log) -> None:
    """L9: the marker is in a segment that is not cleaned yet, and the data is removed all the same."""
    put(log, (b"a", b"0"))
    put(log, (b"a", b"1"), producer=(7, 0, 0), transactional=True)
    close_segment(log)
    append_marker(log, commit=False, producer_id=7)
    log.high_watermark = log.log_end_offset
    clean(log)
    assert keys_and_values(log) == [(0, b"a", b"0")]
    assert [(entry.first_offset, entry.last_offset) for entry in log.aborted_transactions(0, 10)] == [(1, 2)]


def test_last_batch_of_an_active_producer_is_kept_as_a_header(log: Log) -> None:
    """L9: its sequence would be lost with it; recovery without a snapshot restores it from the header."""
    put(log, (b"a", b"1"), (b"b", b"1"), producer=(7, 3, 10))
    put(log, (b"a", b"2"), (b"b", b"2"), producer=(7, 3, 12))
    put(log, (b"a", b"3"), (b"b", b"3"))
    close_segment(log)
    clean(log)
    empty, last = batches_of(log)
    assert (empty.base_offset, empty.last_offset, empty.record_count, empty.size) == (2, 3, 0, 61)
    assert (empty.producer_id, empty.producer_epoch, empty.base_sequence, empty.last_sequence) == (7, 3, 12, 13)
    assert last.base_offset == 4
    known = producers(log)
    for path in Path(log.directory).glob("*.snapshot"):
        path.unlink()
    assert producers(kill(log)) == known == {7: (3, 13)}


def test_last_synced_batch_of_a_producer_stays_while_its_later_ones_are_not_synced(log: Log) -> None:
    """L9: the producer's state is restored from it when a power failure loses the later ones."""
    put(log, (b"k", b"1"), producer=(7, 0, 0))
    put(log, (b"k", b"2"))
    close_segment(log)
    put(log, (b"k", b"3"), producer=(7, 0, 1))
    part = cleanable(log, None, NOW_MS)
    assert cleaning_task(log, part, AMPLE, NOW_MS).producers == {7: (0, 0)}
    log.flush()
    assert cleaning_task(log, part, AMPLE, NOW_MS).producers == {}


def test_last_marker_of_a_producer_without_data_stays(log: Log) -> None:
    """L9: an aborted transaction of a new epoch leaves only the epoch, which fences the old one."""
    put(log, (b"a", b"1"), producer=(7, 0, 0), transactional=True)
    append_marker(log, commit=False, producer_id=7, producer_epoch=1)
    put(log, (b"a", b"2"))
    close_segment(log)
    log.high_watermark = log.log_end_offset
    for now_ms in (NOW_MS, NOW_MS, NOW_MS + 2 * DELETE_RETENTION_MS):
        clean(log, now_ms=now_ms)
    marker, _ = batches_of(log)
    assert (marker.is_control, marker.record_count, marker.producer_epoch) == (True, 1, 1)
    for path in Path(log.directory).glob("*.snapshot"):
        path.unlink()
    assert producers(kill(log)) == {7: (1, -1)}


def test_last_batch_of_an_expired_producer_is_removed(log: Log) -> None:
    """L9: when the producer's entry has expired, the header is not needed."""
    put(log, (b"a", b"1"), producer=(7, 0, 0))
    put(log, (b"a", b"2"))
    close_segment(log)
    clean(log)
    assert len(batches_of(log)) == 2
    log.producers.remove_expired(2**60, 1)
    clean(log)
    assert len(batches_of(log)) == 1


# --- failures


def test_damaged_batch_ends_the_pass_and_leaves_the_log(log: Log) -> None:
    """A batch never gets a new CRC before the old one was verified."""
    put(log, (b"a", b"1" * 50))
    put(log, (b"a", b"2" * 50))
    close_segment(log)
    path = Path(log.segments[0].path(layout.LOG_SUFFIX))
    damaged = bytearray(path.read_bytes())
    damaged[80] ^= 1
    path.write_bytes(damaged)
    with pytest.raises(CorruptRecord, match="CRC of the batch at offset 0"):
        clean(log)
    assert path.read_bytes() == damaged
    assert not list(Path(log.directory).glob("*.cleaned"))


def test_full_disk_leaves_the_log_and_no_file_behind(tmp_path: Path) -> None:
    class Full(UnsyncedFiles):
        room = 100_000

        def write_at(self, file: object, data: object, position: int) -> None:
            if file.path.endswith(".cleaned"):  # type: ignore[attr-defined]
                raise OSError(28, "No space left on device")
            super().write_at(file, data, position)  # type: ignore[arg-type]

    log = open_log(tmp_path, compacted(), Full())
    put(log, (b"a", b"1"))
    put(log, (b"a", b"2"))
    close_segment(log)
    before = stored(log)
    with pytest.raises(OSError, match="No space left"):
        clean(log)
    assert stored(log) == before
    assert not list(Path(log.directory).glob("*.cleaned"))


def test_files_of_a_killed_cleaner_are_not_used_by_the_next(log: Log) -> None:
    """A `.txnindex.cleaned` of another pass would contain transactions that do not exist."""
    put(log, (b"a", b"1"))
    close_segment(log)
    stale = Path(log.directory) / f"{0:020d}.txnindex.cleaned"
    stale.write_bytes(bytes(34))
    clean(log)
    assert not stale.exists()
    assert not Path(log.segments[0].path(layout.TXN_INDEX_SUFFIX)).exists()


def test_every_byte_read_and_written_is_passed_to_the_throttle(log: Log) -> None:
    for number in range(30):
        put(log, (b"k%d" % number, b"v" * 50))
    close_segment(log)
    throttled: list[int] = []
    cleaner = Cleaner(task_for(log), log.files, throttled.append)
    assert len(list(cleaner.run())) >= 1
    closed = sum(segment.size for segment in list(log.segments)[:-1])
    assert sum(throttled) >= 3 * closed, "once for the keys, once to clean, once to write"
    assert sum(throttled) < 3 * closed + 61 * AMPLE.io_buffer


def test_readers_keep_what_they_hold_while_segments_are_replaced(log: Log) -> None:
    """A slice that is being sent is of the old file, up to its end."""
    put(log, (b"a", b"1"))
    put(log, (b"a", b"2"))
    close_segment(log)
    before = stored(log)
    read = log.read(0, 1 << 20, limit_offset=2, min_one_batch=True)
    clean(log)
    assert read.slice is not None
    assert read.slice.read() == before
    assert [record.offset for record in records_from(log, 0)] == [1]
