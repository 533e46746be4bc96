"""Idempotent producers compared with a naive model; their state after snapshots, truncations and kills (I1-I7)."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from barnabas.storage.log import Log
from barnabas.storage.producer_snapshot import CorruptSnapshot, decode_snapshot, encode_snapshot
from barnabas.storage.producer_state import ProducerState
from barnabas.wire.crc import crc32c
from barnabas.wire.errors import ErrorCode, KafkaError
from barnabas.wire.messages.log_records import ProducerSnapshot
from tests.storage.log_driver import (
    PROPERTY,
    append,
    append_marker,
    batch_of,
    kill,
    open_log,
    restart,
    small_config,
)

MAX = 2**31 - 1
BIG = small_config(segment_bytes=1 << 20)


def send(log: Log, sequence: int, count: int = 1, *, producer_id: int = 1, epoch: int = 0) -> tuple[int, bool]:
    """Append a batch of an idempotent producer; (first offset, whether it was a repeat)."""
    info = append(log, batch_of([b"v"] * count, producer=(producer_id, epoch, sequence)))
    return info.first_offset, info.duplicate


def refused(log: Log, sequence: int, count: int = 1, **options: int) -> ErrorCode:
    """The error code with which a batch is rejected; the log must be unchanged."""
    before = log.log_end_offset, log.size_bytes
    with pytest.raises(KafkaError) as caught:
        send(log, sequence, count, **options)
    assert (log.log_end_offset, log.size_bytes) == before
    return caught.value.code


def snapshot_fields(state: ProducerState) -> dict[int, tuple[int, ...]]:
    """The fields of each producer that a snapshot keeps."""
    return {
        producer_id: (
            entry.producer_epoch,
            entry.last_sequence,
            entry.last_offset,
            entry.last_timestamp,
            entry.coordinator_epoch,
            entry.current_txn_first_offset,
        )
        for producer_id, entry in state.producers.items()
    }


def full_replay(log: Log) -> dict[int, tuple[int, ...]]:
    """The state after reading the whole log."""
    state = ProducerState()
    for segment in log.segments:
        for header, batch in segment.batches():
            state.replay(header, batch)
    return snapshot_fields(state)


def test_exact_repeat_is_answered_with_the_original_offset(tmp_path: Path) -> None:
    """I1: each of the last five batches may be repeated."""
    log = open_log(tmp_path, BIG)
    offsets = [send(log, sequence * 2, 2)[0] for sequence in range(7)]
    for at in range(2, 7):
        assert send(log, at * 2, 2) == (offsets[at], True)
    assert log.log_end_offset == 14


def test_repeat_older_than_five_batches_is_out_of_order(tmp_path: Path) -> None:
    """I2: as in Kafka, which never answers DUPLICATE_SEQUENCE_NUMBER."""
    log = open_log(tmp_path, BIG)
    for sequence in range(6):
        send(log, sequence)
    assert refused(log, 0) == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER


def test_gap_is_out_of_order(tmp_path: Path) -> None:
    """I2."""
    log = open_log(tmp_path, BIG)
    send(log, 0, 3)
    assert refused(log, 4) == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert refused(log, 2) == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert send(log, 3) == (3, False)


def test_sequences_wrap_after_the_greatest_int(tmp_path: Path) -> None:
    """I2: 2^31-1 is followed by 0, between batches and inside one."""
    log = open_log(tmp_path, BIG)
    send(log, MAX - 1)
    assert send(log, MAX, 3) == (1, False)
    assert refused(log, 1) == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert send(log, MAX, 3) == (1, True)
    assert send(log, 2) == (4, False)


def test_sequence_after_the_greatest_int_is_zero(tmp_path: Path) -> None:
    """I2: also when a batch ends exactly at the greatest int."""
    log = open_log(tmp_path, BIG)
    send(log, MAX - 1, 2)
    assert refused(log, 1) == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert send(log, 0, 2) == (2, False)


def test_wrapped_batch_is_known_after_a_restart(tmp_path: Path) -> None:
    """I2, I5: the snapshot keeps only the last sequence; the first one wraps backwards."""
    log = open_log(tmp_path, BIG)
    send(log, MAX - 1, 4)
    log = restart(log)
    assert send(log, MAX - 1, 4) == (0, True)
    assert send(log, 2) == (4, False)


def test_new_epoch_starts_at_zero(tmp_path: Path) -> None:
    """I3."""
    log = open_log(tmp_path, BIG)
    send(log, 0, 3)
    assert refused(log, 3, epoch=1) == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert send(log, 0, epoch=1) == (3, False)
    assert refused(log, 3, epoch=0) == ErrorCode.INVALID_PRODUCER_EPOCH
    assert send(log, 1, epoch=1) == (4, False)


def test_new_epoch_forgets_the_batches_of_the_old_one(tmp_path: Path) -> None:
    """I3: the same sequences under a new epoch are new batches, and their repeats get the new offsets."""
    log = open_log(tmp_path, BIG)
    for sequence in range(3):
        send(log, sequence)
    for sequence in range(3):
        assert send(log, sequence, epoch=1) == (3 + sequence, False)
    for sequence in range(3):
        assert send(log, sequence, epoch=1) == (3 + sequence, True)


def test_unknown_producer_may_start_anywhere(tmp_path: Path) -> None:
    """I4: its state may have been deleted with its records."""
    log = open_log(tmp_path, BIG)
    assert send(log, 41) == (0, False)
    assert refused(log, 43) == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER


def test_producers_and_partitions_are_independent(tmp_path: Path) -> None:
    log = open_log(tmp_path, BIG)
    send(log, 0, producer_id=1)
    assert send(log, 0, producer_id=2) == (1, False)
    assert send(log, 0, producer_id=1) == (0, True)


@PROPERTY
@given(
    st.lists(st.tuples(st.integers(0, 1), st.sampled_from([0, 1]), st.integers(-7, 2), st.integers(1, 3)), max_size=40),
    st.sampled_from([0, 5, MAX - 4]),
)
def test_answers_equal_the_model(
    tmp_path_factory: pytest.TempPathFactory, attempts: list[tuple[int, int, int, int]], start: int
) -> None:
    """I1-I4: a model that keeps all batches of each producer as a list."""
    log = open_log(tmp_path_factory.mktemp("producers"), BIG)
    epochs: dict[int, int] = {}
    batches: dict[int, list[tuple[int, int, int]]] = {1: [], 2: []}
    for producer, epoch, step, count in attempts:
        producer_id = producer + 1
        known = batches[producer_id] if epochs.get(producer_id) == epoch else []
        following = (known[-1][1] + 1) % (MAX + 1) if known else (start if producer_id not in epochs else 0)
        first = (following + step) % (MAX + 1) if known else following + max(step, 0)
        last = (first + count - 1) % (MAX + 1)
        end = log.log_end_offset
        repeat = next((entry[2] for entry in known[-5:] if entry[:2] == (first, last)), None)
        if repeat is not None:
            expected: object = (repeat, True)
        elif epoch < epochs.get(producer_id, -1):
            expected = ErrorCode.INVALID_PRODUCER_EPOCH
        elif first != following and producer_id in epochs:
            expected = ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
        else:
            expected = (end, False)
            epochs[producer_id] = epoch
            batches[producer_id] = [*known, (first, last, end)]
        try:
            answer: object = send(log, first, count, producer_id=producer_id, epoch=epoch)
        except KafkaError as error:
            answer = error.code
        assert answer == expected


@PROPERTY
@given(
    st.lists(
        st.tuples(
            st.integers(1, 3), st.sampled_from(["send", "send", "begin", "commit", "abort", "bump", "stop", "kill"])
        ),
        max_size=30,
    ),
    st.integers(0, 100),
)
def test_any_stop_gives_the_state_of_a_full_replay(
    tmp_path_factory: pytest.TempPathFactory, steps: list[tuple[int, str]], cut: int
) -> None:
    """I5, I7: after rolls, clean stops, kills and a truncation the state equals that of a full replay."""
    log = open_log(tmp_path_factory.mktemp("producers"), small_config(segment_bytes=400))
    sequences: dict[int, int] = {}
    epochs: dict[int, int] = {}
    open_producers: set[int] = set()
    for producer_id, step in steps:
        epoch = epochs.get(producer_id, 0)
        if step in ("commit", "abort"):
            append_marker(log, commit=step == "commit", producer_id=producer_id, producer_epoch=epoch)
            open_producers.discard(producer_id)
        elif step == "bump":
            epochs[producer_id] = epoch + 1
            sequences[producer_id] = 0
        elif step == "stop":
            log = restart(log)
        elif step == "kill":
            log = kill(log)
        else:
            if step == "begin":
                open_producers.add(producer_id)
            sequence = sequences.get(producer_id, 0)
            append(
                log,
                batch_of([b"v"], producer=(producer_id, epoch, sequence), transactional=producer_id in open_producers),
            )
            sequences[producer_id] = sequence + 1
        assert snapshot_fields(log.producers) == full_replay(log)
    starts = [header.base_offset for segment in log.segments for header in segment.scan(0)]
    if starts:
        log.truncate_to(starts[cut * (len(starts) - 1) // 100])
        assert snapshot_fields(log.producers) == full_replay(log)
        assert snapshot_fields(kill(log).producers) == full_replay(log)


def test_snapshot_of_truncated_data_is_not_used(tmp_path: Path) -> None:
    """I7: its offsets now belong to other batches."""
    log = open_log(tmp_path, BIG)
    for sequence in range(8):
        send(log, sequence)
    log = restart(log)
    log.truncate_to(1)
    for sequence in range(0, 10, 2):
        send(log, sequence, 2, producer_id=2)
    log.truncate_to(9)
    assert snapshot_fields(log.producers) == full_replay(log)
    assert set(log.producers.producers) == {1, 2}


@pytest.mark.parametrize(
    "damage", [lambda raw: raw[:-3], lambda raw: raw[:20] + bytes([raw[20] ^ 1]) + raw[21:], lambda raw: b""]
)
def test_older_snapshot_is_used_instead_of_a_torn_one(tmp_path: Path, damage: Callable[[bytes], bytes]) -> None:
    """I5: a snapshot with a wrong CRC is removed; the state comes from an older one and the batches."""
    log = open_log(tmp_path, small_config(segment_bytes=300))
    for sequence in range(8):
        send(log, sequence)
    log.close()
    expected = snapshot_fields(log.producers)
    newest = max(Path(log.directory).glob("*.snapshot"))
    newest.write_bytes(damage(newest.read_bytes()))
    again = restart(log)
    assert snapshot_fields(again.producers) == expected
    assert not newest.exists()


def test_snapshots_are_kept_per_segment_and_for_the_end(tmp_path: Path) -> None:
    """I5: one at the start of every segment, one at the clean stop; all others are removed."""
    log = open_log(tmp_path, small_config(segment_bytes=300))
    for sequence in range(8):
        send(log, sequence)
    log.close()
    stray = Path(log.directory, f"{1:020d}.snapshot")
    stray.write_bytes(b"")
    log = restart(log)
    names = sorted(int(path.stem) for path in Path(log.directory).glob("*.snapshot"))
    assert names == [*[segment.base_offset for segment in log.segments][1:], log.log_end_offset]


def test_snapshot_is_kafkas_message_with_its_crc(tmp_path: Path) -> None:
    """I5: int16 version, then ProducerSnapshot; the CRC covers all bytes after it."""
    log = open_log(tmp_path, BIG)
    send(log, 0, 3)
    append(log, batch_of([b"t"], producer=(2, 4, 0), transactional=True))
    append_marker(log, commit=False, producer_id=3, producer_epoch=1, coordinator_epoch=9)
    raw = encode_snapshot(log.producers.producers.values())
    assert raw[:2] == b"\x00\x01"
    snapshot = ProducerSnapshot.decode(raw[2:], 1)
    assert snapshot.crc == crc32c(raw[6:])
    assert [
        (
            e.producer_id,
            e.epoch,
            e.last_sequence,
            e.last_offset,
            e.offset_delta,
            e.coordinator_epoch,
            e.current_txn_first_offset,
        )
        for e in snapshot.producer_entries
    ] == [(1, 0, 2, 2, 2, -1, -1), (2, 4, 0, 3, 0, -1, 3), (3, 1, -1, -1, 0, 9, -1)]
    assert raw[2:] == snapshot.encode(1)


@PROPERTY
@given(st.data())
def test_damaged_snapshot_is_corrupt_and_nothing_else(data: st.DataObject) -> None:
    state = ProducerState()
    raw = bytearray(encode_snapshot(state.producers.values()) + data.draw(st.binary(max_size=80)))
    if data.draw(st.booleans()):
        raw = raw[: data.draw(st.integers(0, len(raw)))]
    try:
        assert decode_snapshot(bytes(raw)) == []
    except CorruptSnapshot:
        pass


def test_every_flipped_bit_of_a_snapshot_is_noticed(tmp_path: Path) -> None:
    """I5: a snapshot is loaded completely or not at all."""
    log = open_log(tmp_path, BIG)
    send(log, 0, 3)
    append(log, batch_of([b"t"], producer=(2, 4, 0), transactional=True))
    raw = encode_snapshot(log.producers.producers.values())
    assert len(decode_snapshot(raw)) == 2
    for bit in range(len(raw) * 8):
        damaged = bytearray(raw)
        damaged[bit // 8] ^= 1 << bit % 8
        with pytest.raises(CorruptSnapshot):
            decode_snapshot(bytes(damaged))


def test_inactive_producer_expires_but_never_inside_a_transaction(tmp_path: Path) -> None:
    """I6."""
    log = open_log(tmp_path, BIG)
    send(log, 0, producer_id=1)
    append(log, batch_of([b"t"], producer=(2, 0, 0), transactional=True))
    log.producers.remove_expired(now_ms=1_000 + 99, expiration_ms=100)
    assert set(log.producers.producers) == {1, 2}
    log.producers.remove_expired(now_ms=1_000 + 100, expiration_ms=100)
    assert set(log.producers.producers) == {2}


def test_plain_write_inside_a_transaction_is_refused(tmp_path: Path) -> None:
    log = open_log(tmp_path, BIG)
    append(log, batch_of([b"t"], producer=(1, 0, 0), transactional=True))
    assert refused(log, 1) == ErrorCode.INVALID_TXN_STATE


def test_marker_of_an_old_epoch_or_coordinator_is_fenced(tmp_path: Path) -> None:
    log = open_log(tmp_path, BIG)
    append(log, batch_of([b"t"], producer=(1, 3, 0), transactional=True))
    append_marker(log, commit=True, producer_id=1, producer_epoch=3, coordinator_epoch=5)
    for epoch, coordinator_epoch, code in (
        (2, 5, ErrorCode.INVALID_PRODUCER_EPOCH),
        (3, 4, ErrorCode.TRANSACTION_COORDINATOR_FENCED),
    ):
        with pytest.raises(KafkaError) as caught:
            append_marker(log, commit=True, producer_id=1, producer_epoch=epoch, coordinator_epoch=coordinator_epoch)
        assert caught.value.code == code


def test_replicated_batches_are_not_checked_again(tmp_path: Path) -> None:
    """I3: the leader has checked them."""
    log = open_log(tmp_path, BIG)
    send(log, 0, epoch=3)
    append(log, batch_of([b"v"], producer=(1, 2, 7)), origin="replication")
    assert log.log_end_offset == 2


def test_open_transaction_holds_readers_back_after_a_restart(tmp_path: Path) -> None:
    """I5, T6: the snapshot contains the transaction's first offset."""
    log = open_log(tmp_path, BIG)
    send(log, 0)
    append(log, batch_of([b"t"], producer=(2, 0, 0), transactional=True))
    for stop in (restart, kill):
        log = stop(log)
        log.high_watermark = log.log_end_offset
        assert log.last_stable_offset == 1


def test_last_stable_offset_is_the_first_undecided_one(tmp_path: Path) -> None:
    """T6: the earliest transaction that is open or whose marker is above the high watermark."""
    log = open_log(tmp_path, BIG)
    send(log, 0, producer_id=9)
    append(log, batch_of([b"t"], producer=(1, 0, 0), transactional=True))
    append(log, batch_of([b"t"], producer=(2, 0, 0), transactional=True))
    log.high_watermark = 3
    assert log.last_stable_offset == 1
    append_marker(log, commit=False, producer_id=1)
    assert log.last_stable_offset == 1
    log.high_watermark = 3
    assert log.last_stable_offset == 1, "the marker itself is not replicated yet"
    log.high_watermark = log.log_end_offset
    assert log.last_stable_offset == 2
    append_marker(log, commit=True, producer_id=2)
    log.high_watermark = log.log_end_offset
    assert log.last_stable_offset == log.log_end_offset == 5
    assert [tuple(entry) for entry in log.aborted_transactions(0, 5)] == [(1, 1, 3, 2)]
