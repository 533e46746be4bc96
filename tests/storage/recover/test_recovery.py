"""Recovery after an unclean stop: the tail is cut at the first invalid batch, all other files are rebuilt (L1)."""

from __future__ import annotations

import errno
import os
import random
import struct
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from barnabas.storage.files import File, UnsyncedFiles
from barnabas.storage.log import Log
from barnabas.storage.producers.producer_snapshot import encode_snapshot
from barnabas.wire.errors import ErrorCode, KafkaError
from tests.support.disks.failing_files import FailingFiles
from tests.support.logs.filled_log import filled_log, names_in
from tests.support.logs.log_driver import (
    EXAMPLES,
    PROPERTY,
    TOPIC_ID,
    append,
    append_marker,
    batch_of,
    kill,
    open_log,
    restart,
    small_config,
    truncate,
    values_from,
)
from tests.support.volume import first_seed


def ends_of_batches(log: Log) -> list[tuple[int, int]]:
    """(position after each batch of the active segment, next offset)."""
    active = log.segments.active
    return [(header.position + header.size, header.last_offset + 1) for header in active.scan(0)]


def index_of(log: Log) -> list[tuple[list[int], list[int], list[int]]]:
    """The content of all indexes."""
    return [
        (list(segment.offset_index.offsets), list(segment.offset_index.positions), list(segment.time_index.timestamps))
        for segment in log.segments
    ]


def test_every_truncation_of_the_last_segment_keeps_its_whole_batches(tmp_path: Path) -> None:
    """L1: a torn tail is cut at the first incomplete batch, wherever it is torn."""
    log = filled_log(tmp_path)
    log.flush()
    active = log.segments.active
    whole, ends, path = values_from(log, 0), ends_of_batches(log), active.stem + ".log"
    content = Path(path).read_bytes()
    for size in range(len(content)):
        Path(path).write_bytes(content[:size])
        log.recovery_point = active.base_offset
        again = kill(log)
        end = max([offset for position, offset in ends if position <= size], default=active.base_offset)
        assert again.log_end_offset == end
        assert values_from(again, 0) == [entry for entry in whole if entry[0] < end]
        assert Path(path).stat().st_size == max([position for position, _ in ends if position <= size], default=0)


def test_flipped_bit_in_the_unflushed_tail_ends_the_log_before_its_batch(tmp_path: Path) -> None:
    """L1: every flipped bit inside the CRC is detected; the batches before it are kept."""
    log = filled_log(tmp_path)
    active = log.segments.active
    whole, path = values_from(log, 0), Path(active.stem + ".log")
    content = path.read_bytes()
    spans = [(header.position, header.size, header.base_offset) for header in active.scan(0)]
    bits = range(len(content) * 8)
    flips = bits if EXAMPLES >= 1_000 else random.Random(first_seed()).sample(bits, 5 * EXAMPLES)
    for bit in flips:
        at = bit // 8
        position, _, base_offset = next(span for span in spans if span[0] <= at < span[0] + span[1])
        if 12 <= at - position < 16:
            continue
        damaged = bytearray(content)
        damaged[at] ^= 1 << bit % 8
        path.write_bytes(damaged)
        again = kill(log)
        assert again.log_end_offset == base_offset
        assert values_from(again, 0) == [entry for entry in whole if entry[0] < base_offset]


def test_damage_in_an_earlier_unflushed_segment_removes_the_segments_behind_it(tmp_path: Path) -> None:
    log = filled_log(tmp_path)
    first = log.segments[0]
    damaged = bytearray(Path(first.stem + ".log").read_bytes())
    damaged[30] ^= 1
    Path(first.stem + ".log").write_bytes(damaged)
    again = kill(log)
    assert again.log_end_offset == 0
    assert [name for name in names_in(log) if name.endswith(".log")] == [f"{0:020d}.log"]


def test_segments_below_the_recovery_point_are_not_read(tmp_path: Path) -> None:
    log = filled_log(tmp_path)
    log.flush()
    end, first = log.log_end_offset, log.segments[0]
    content = bytearray(Path(first.stem + ".log").read_bytes())
    content[70] ^= 1
    Path(first.stem + ".log").write_bytes(content)
    assert kill(log).log_end_offset == end


class CountingFiles(UnsyncedFiles):
    """Counts the bytes that are read."""

    read_bytes = 0

    def read_at(self, file: File, length: int, position: int) -> bytes:
        data = super().read_at(file, length, position)
        self.read_bytes += len(data)
        return data


def test_large_batches_below_the_recovery_point_are_not_read(tmp_path: Path) -> None:
    """L1: indexes and producers are rebuilt from headers, also in the segment of the recovery point."""
    files = CountingFiles()
    log = open_log(tmp_path, small_config(segment_bytes=1 << 30, index_interval_bytes=4096), files)
    for sequence in range(50):
        append(log, batch_of([bytes(500_000)], producer=(7, 0, sequence), transactional=True))
        if sequence == 30:
            append_marker(log, commit=False, producer_id=7)
    log.flush()
    append(log, batch_of([bytes(500_000)], producer=(7, 0, 50), transactional=True))
    log.segments.active.seal()
    before, producers = index_of(log), encode_snapshot(log.producers.producers.values())
    files.read_bytes = 0
    again = kill(log)
    assert files.read_bytes < 2 * 500_000
    assert (again.log_end_offset, index_of(again)) == (log.log_end_offset, before)
    assert encode_snapshot(again.producers.producers.values()) == producers
    assert again.aborted_transactions(0, 10) == log.aborted_transactions(0, 10) != []


def test_marker_among_large_batches_ends_its_transaction(tmp_path: Path) -> None:
    """The header of a marker does not contain the outcome of the transaction, wherever a read ends."""
    log = open_log(tmp_path, small_config(segment_bytes=1 << 30))
    overhead = len(batch_of([bytes(8000)], producer=(7, 0, 0), transactional=True)) - 8000
    value = bytes(8192 - 70 - overhead)  # the first piece ends within the marker
    append(log, batch_of([value], producer=(7, 0, 0), transactional=True))
    append_marker(log, commit=False, producer_id=7)
    append(log, batch_of([bytes(50_000)]))
    _, marker, _ = log.segments.active.scan(0)
    assert marker.position + 61 <= 8192 < marker.position + marker.size
    log.flush()
    again = kill(log)
    assert again.producers.first_unstable_offset is None
    assert [entry.producer_id for entry in again.aborted_transactions(0, 3)] == [7]


def test_indexes_rebuilt_are_those_that_appending_made(tmp_path: Path) -> None:
    """L4: recovery makes the same entries as the appends did."""
    log = filled_log(tmp_path, 40)
    log.segments.active.seal()
    before = index_of(log)
    for name in names_in(log):
        if name.endswith((".index", ".timeindex")):
            Path(log.directory, name).write_bytes(b"garbage that is longer than an entry")
    assert index_of(kill(log)) == before


def test_missing_index_is_rebuilt_even_after_a_clean_stop(tmp_path: Path) -> None:
    log = filled_log(tmp_path, 40)
    log.close()
    before, whole = index_of(log), values_from(log, 0)
    Path(log.segments[1].stem + ".index").unlink()
    again = restart(log)
    assert index_of(again) == before
    assert values_from(again, 0) == whole


def test_preallocated_index_of_kafka_is_read_up_to_its_zeros(tmp_path: Path) -> None:
    """After a kill Kafka leaves zeros after the last entry of the active segment's indexes."""
    log = filled_log(tmp_path, 40)
    log.close()
    before, whole = index_of(log), values_from(log, 0)
    for name in names_in(log):
        if name.endswith((".index", ".timeindex")):
            with Path(log.directory, name).open("ab") as file:
                file.write(bytes(1200))
    again = restart(log)
    assert index_of(again) == before
    assert values_from(again, 0) == whole


@PROPERTY
@given(
    st.one_of(
        st.binary(max_size=64),
        st.lists(st.tuples(st.integers(0, 80), st.integers(0, 3000)), max_size=8).map(
            lambda entries: b"".join(struct.pack(">II", *entry) for entry in entries)
        ),
    ),
    st.booleans(),
)
def test_wrong_index_never_yields_a_wrong_offset(
    tmp_path_factory: pytest.TempPathFactory, entries: bytes, clean: bool
) -> None:
    """L4: invalid entries, and plausible ones with a wrong position, only make the lookup slower."""
    log = filled_log(tmp_path_factory.mktemp("index"), 9)
    whole = values_from(log, 0)
    log.close()
    for segment in log.segments:
        Path(segment.stem + ".index").write_bytes(entries)
    again = restart(log) if clean else kill(log)
    assert again.log_end_offset == len(whole)
    for offset, _ in whole:
        assert values_from(again, offset) == whole[offset:]


def test_leader_epochs_lost_with_the_checkpoint_come_back_from_the_batches(tmp_path: Path) -> None:
    """R2: every batch carries its epoch (R1)."""
    log = filled_log(tmp_path)
    entries = log.leader_epochs.entries()
    assert len(entries) == 3
    log.leader_epochs.save()
    Path(log.directory, "leader-epoch-checkpoint").unlink()
    assert kill(log).leader_epochs.entries() == entries


def test_leader_epochs_below_the_recovery_point_are_in_the_file(tmp_path: Path) -> None:
    """R2: only the segment of the recovery point, and those after it, are read to find epochs that are not in it."""
    log = filled_log(tmp_path)
    entries = log.leader_epochs.entries()
    log.flush(data_only=True)
    assert "leader-epoch-checkpoint" not in names_in(log)
    job = log.start_flush(log.segments.active.base_offset)
    assert job is not None
    append(log, batch_of([b"meanwhile"]), leader_epoch=9)
    job.run()
    log.finish_flush(job)
    assert log.recovery_point == log.segments.active.base_offset
    assert log.segments.active.base_offset > entries[1][1]
    again = kill(log)
    assert again.leader_epochs.entries() == log.leader_epochs.entries() == [*entries, (9, log.log_end_offset - 1)]
    assert restart(again).leader_epochs.entries() == again.leader_epochs.entries()


def test_leader_epochs_of_segments_without_a_flush_come_back_from_the_batches(tmp_path: Path) -> None:
    """R2: a flush of the data only, as before each acknowledgement, does not write them."""
    log = filled_log(tmp_path)
    log.flush(data_only=True)
    assert log.synced_offset == log.log_end_offset
    assert kill(log).leader_epochs.entries() == log.leader_epochs.entries()
    assert len(log.leader_epochs.entries()) == 3


def test_flush_of_a_log_with_no_new_epoch_does_not_write_them(tmp_path: Path) -> None:
    log = filled_log(tmp_path)
    log.flush()
    append(log, batch_of([b"v"]), leader_epoch=log.leader_epochs.latest_epoch)
    job = log.start_flush()
    assert job is not None
    assert job.epochs is None


def test_older_write_of_the_leader_epochs_does_not_replace_a_newer_one(tmp_path: Path) -> None:
    """R2: flushes end in any order, and a truncation does not wait for them."""
    log = filled_log(tmp_path)
    jobs = [log.start_flush()]
    append(log, batch_of([b"v"]), leader_epoch=9)
    jobs.append(log.start_flush())
    truncate(log, log.log_end_offset - 1)
    after = Path(log.directory, "leader-epoch-checkpoint").read_bytes()
    for job in reversed(jobs):
        assert job is not None
        job.run()
        log.finish_flush(job)
        assert Path(log.directory, "leader-epoch-checkpoint").read_bytes() == after
    assert [name for name in names_in(log) if name.endswith(".tmp")] == []


def test_flush_that_finds_no_descriptor_leaves_no_temporary_file(tmp_path: Path) -> None:
    """It is tried again, perhaps often."""
    log = filled_log(tmp_path)
    job = log.start_flush()
    assert job is not None
    assert any(name.endswith(".tmp") for name in names_in(log))

    job._files = FailingFiles(is_synced=False, errors={"open": errno.EMFILE})
    with pytest.raises(OSError, match="open files"):
        job.run()
    assert [name for name in names_in(log) if name.endswith(".tmp")] == []
    log.flush()
    assert "leader-epoch-checkpoint" in names_in(log)


def test_flush_of_a_deleted_log_leaves_its_successor_alone(tmp_path: Path) -> None:
    """R2: a new log of the partition may be made in the old one's path while the flush is in a thread."""
    old = filled_log(tmp_path)
    job = old.start_flush()
    assert job is not None
    old.delete_renamed("0" * 32)
    log = open_log(tmp_path)
    append(log, batch_of([b"v"]), leader_epoch=0)
    assert log.start_flush() is not None  # with a temporary file of the same name
    job.run()
    assert kill(log).leader_epochs.entries() == [(0, 0)]
    assert "leader-epoch-checkpoint" not in names_in(log)


def test_leader_epochs_are_truncated_with_the_log(tmp_path: Path) -> None:
    """R2."""
    log = filled_log(tmp_path)
    start_of_last = log.leader_epochs.entries()[-1][1]
    truncate(log, start_of_last)
    assert log.end_offset_for_epoch(2) == (-1, -1)
    assert log.end_offset_for_epoch(1) == (1, start_of_last)
    assert restart(log).leader_epochs.entries() == log.leader_epochs.entries()


def test_leader_epoch_whose_batches_are_lost_is_removed(tmp_path: Path) -> None:
    """R2: the checkpoint has also epochs whose batches are not flushed yet, and may be lost."""
    log = open_log(tmp_path)
    append(log, batch_of([b"a"]), leader_epoch=1)
    size = log.size_bytes
    append(log, batch_of([b"b"]), leader_epoch=2)
    log.leader_epochs.save()
    os.truncate(log.segments.active.stem + ".log", size)
    assert kill(log).leader_epochs.entries() == [(1, 0)]


def test_leader_epochs_below_the_start_are_forgotten(tmp_path: Path) -> None:
    """R2: also when the crash came before the checkpoint was rewritten."""
    log = filled_log(tmp_path)
    log.leader_epochs.save()
    checkpoint = Path(log.directory, "leader-epoch-checkpoint")
    before, entries = checkpoint.read_bytes(), log.leader_epochs.entries()
    log.high_watermark = log.log_end_offset
    start = entries[1][1] + 1
    log.advance_log_start_offset(start)
    assert log.leader_epochs.entries() == [(entries[1][0], start), entries[2]]
    assert log.end_offset_for_epoch(0) == (0, start)
    checkpoint.write_bytes(before)
    assert kill(log).leader_epochs.entries() == [(entries[1][0], start), entries[2]]


def test_directory_of_another_topic_id_is_refused(tmp_path: Path) -> None:
    """R22: data of a deleted topic never appears in a new topic of the same name."""
    filled_log(tmp_path).close()
    with pytest.raises(KafkaError) as caught:
        open_log(tmp_path, topic_id=bytes(15) + b"x")
    assert caught.value.code == ErrorCode.INCONSISTENT_TOPIC_ID
    assert open_log(tmp_path, topic_id=bytes(16)).topic_id == TOPIC_ID


def test_flush_that_a_truncation_overtook_moves_nothing(tmp_path: Path) -> None:
    """The synced data is not the data that is now at these offsets."""
    log = filled_log(tmp_path)
    job = log.start_flush()
    assert job is not None
    job.run()
    truncate(log, log.segments.active.base_offset)
    append(log, batch_of([b"new"] * 9))
    log.finish_flush(job)
    assert log.recovery_point == 0


def test_interrupted_deletion_of_segments_is_finished(tmp_path: Path) -> None:
    """L5: any of the renames may be lost; segments below the log start may have gaps and are removed."""
    log = filled_log(tmp_path, 40)
    log.flush()
    start = log.segments[3].base_offset + 1
    whole = values_from(log, start)
    log.high_watermark = log.log_end_offset
    log.advance_log_start_offset(start)
    for name in names_in(log):
        if name.startswith(f"{log.segments[1].base_offset:020d}."):
            Path(log.directory, name).unlink()
    again = kill(log)
    assert [segment.base_offset for segment in again.segments][:1] == [log.segments[3].base_offset]
    assert not [name for name in names_in(log) if name.startswith(f"{0:020d}.log")]
    assert values_from(again, start) == whole


def test_leftovers_of_interrupted_work_are_removed(tmp_path: Path) -> None:
    log = filled_log(tmp_path)
    log.close()
    before = sorted(names_in(log))
    for name in (f"{0:020d}.log.deleted", f"{9:020d}.log.cleaned", "partition.metadata.tmp", f"{77:020d}.index"):
        Path(log.directory, name).write_bytes(b"leftover")
    restart(log)
    assert sorted(names_in(log)) == before


def test_aborted_transactions_are_indexed_again(tmp_path: Path) -> None:
    """T6: the index of aborted transactions is rebuilt from data and markers."""
    log = open_log(tmp_path, small_config(segment_bytes=400))
    for at, commit in enumerate([False, True, False]):
        append(log, batch_of([b"a", b"b"], producer=(at, 0, 0), transactional=True))
        append_marker(log, commit=commit, producer_id=at)
    expected = log.aborted_transactions(0, log.log_end_offset)
    assert [(entry.producer_id, entry.first_offset, entry.last_offset) for entry in expected] == [(0, 0, 2), (2, 6, 8)]
    for name in names_in(log):
        if name.endswith(".txnindex"):
            Path(log.directory, name).write_bytes(b"\x01" * 50)
    assert kill(log).aborted_transactions(0, 9) == expected


def test_aborted_transactions_are_those_that_overlap_the_range(tmp_path: Path) -> None:
    """T6: by offset range; truncated with the log."""
    log = open_log(tmp_path, small_config(segment_bytes=1 << 20))
    for at in range(4):
        append(log, batch_of([b"a", b"b"], producer=(at, 0, 0), transactional=True))
        append_marker(log, commit=False, producer_id=at)
    for start in range(12):
        for end in range(start + 1, 13):
            touched = [entry.producer_id for entry in log.aborted_transactions(start, end)]
            assert touched == [at for at in range(4) if 3 * at < end and 3 * at + 2 >= start]
    truncate(log, 6)
    assert [entry.producer_id for entry in log.aborted_transactions(0, 12)] == [0, 1]
    assert [entry.producer_id for entry in restart(log).aborted_transactions(0, 12)] == [0, 1]


def test_start_after_a_clean_stop_reads_almost_no_batch(tmp_path: Path) -> None:
    """After a clean stop damage in the middle is not detected: the log is trusted."""
    log = filled_log(tmp_path)
    log.close()
    end = log.log_end_offset
    content = bytearray(Path(log.segments[1].stem + ".log").read_bytes())
    content[70] ^= 1
    Path(log.segments[1].stem + ".log").write_bytes(content)
    assert restart(log).log_end_offset == end
