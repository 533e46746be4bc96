"""Snapshots of the producer state, through stops, truncations and damage (I5, I7)."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from barnabas.storage.producers.producer_snapshot import CorruptSnapshot, decode_snapshot, encode_snapshot
from barnabas.storage.producers.producer_state import ProducerState
from barnabas.wire.batches.crc import crc32c
from barnabas.wire.messages.records.log_records import ProducerSnapshot
from tests.storage.producers.producer_driver import BIG, full_replay, send, snapshot_fields
from tests.support.logs.log_driver import (
    PROPERTY,
    append,
    append_marker,
    batch_of,
    kill,
    open_log,
    restart,
    small_config,
    truncate,
)


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
    """I5, I7: after rolls, clean stops, kills and a truncation the state equals the state after a full replay."""
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
        truncate(log, starts[cut * (len(starts) - 1) // 100])
        assert snapshot_fields(log.producers) == full_replay(log)
        assert snapshot_fields(kill(log).producers) == full_replay(log)


def test_snapshot_of_truncated_data_is_not_used(tmp_path: Path) -> None:
    """I7: its offsets now belong to other batches."""
    log = open_log(tmp_path, BIG)
    for sequence in range(8):
        send(log, sequence)
    log = restart(log)
    truncate(log, 1)
    for sequence in range(0, 10, 2):
        send(log, sequence, 2, producer_id=2)
    truncate(log, 9)
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
