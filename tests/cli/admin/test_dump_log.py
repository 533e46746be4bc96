"""`barnabas dump-log` on intact files, damaged files and other files."""

from __future__ import annotations

import json
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from barnabas.broker.config.keys import BROKER_KEYS
from barnabas.cli import main
from barnabas.storage.layout import segment_name
from barnabas.tools.dump.secrets import HIDDEN, hide_secrets
from barnabas.wire.batches.records import BatchBuilder, build_batch, control_batch
from barnabas.wire.configdef import PASSWORD
from tests.support.cases import for_each
from tests.support.logs.written_log import write_log

NOW_MS = 1_700_000_000_000
FIRST_LOG = segment_name(0, ".log")


class Ran:
    """The output and the exit code of the command."""

    def __init__(self, code: int, out: str, err: str) -> None:
        self.code = code
        self.out = out
        self.err = err

    @property
    def items(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.out.splitlines()]


@pytest.fixture
def dump(capsys: pytest.CaptureFixture[str]) -> Callable[..., Ran]:
    def run(*arguments: object) -> Ran:
        code = main(["dump-log", *map(str, arguments)])
        printed = capsys.readouterr()
        return Ran(code, printed.out, printed.err)

    return run


@pytest.fixture
def partition(tmp_path: Path) -> Path:
    return write_log(tmp_path, batches=40, segment_bytes=5000, index_interval_bytes=500)


def flip(path: Path, at: int) -> None:
    data = bytearray(path.read_bytes())
    data[at] ^= 1
    path.write_bytes(data)


def test_directory_stands_for_its_files(dump: Callable[..., Ran], partition: Path) -> None:
    ran = dump(partition)
    assert (ran.code, ran.err) == (0, "")
    dumped = [line.removeprefix("Dumping ") for line in ran.out.splitlines() if line.startswith("Dumping ")]
    assert dumped == [str(path) for path in sorted(partition.iterdir())]
    assert "epoch: 0 startOffset: 0" in ran.out
    assert "topic_id: AAECAwQFBgcICQoLDA0ODw" in ran.out


def test_json_has_an_object_a_line(dump: Callable[..., Ran], tmp_path: Path) -> None:
    path = tmp_path / segment_name(100, ".log")
    records: list[Any] = [(NOW_MS, b"k", b"v", [("h", b"x")]), (NOW_MS + 5, None, b"\xff\x00", [])]
    path.write_bytes(build_batch(records, 100, producer_id=4, producer_epoch=0, base_sequence=9))
    log, batch, first, second = dump(path, "--print-data-log", "-o", "json").items
    assert log == {"file": str(path), "kind": "log", "starting_offset": 100}
    assert batch["kind"] == "batch"
    assert (batch["base_offset"], batch["last_offset"], batch["create_time"]) == (100, 101, NOW_MS + 5)
    assert (batch["delete_horizon_ms"], batch["isvalid"], batch["compresscodec"]) == (None, True, "none")
    assert first == {
        "file": str(path),
        "kind": "record",
        "offset": 100,
        "create_time": NOW_MS,
        "key_size": 1,
        "value_size": 1,
        "sequence": 9,
        "header_keys": ["h"],
        "key": "k",
        "payload": "v",
    }
    assert second["payload_base64"] == "/wA="
    assert "key" not in second


def test_records_are_left_out_without_deep_iteration(dump: Callable[..., Ran], partition: Path) -> None:
    assert "| offset: " not in dump(partition / FIRST_LOG).out
    assert "| offset: " in dump(partition / FIRST_LOG, "--deep-iteration").out
    assert "payload: " not in dump(partition / FIRST_LOG, "--deep-iteration").out


def test_delete_horizon_is_shown(dump: Callable[..., Ran], tmp_path: Path) -> None:
    """L8."""
    builder = BatchBuilder(delete_horizon_ms=NOW_MS)
    builder.append(NOW_MS, b"k", None)
    path = tmp_path / FIRST_LOG
    path.write_bytes(builder.build())
    assert f"deleteHorizonMs: OptionalLong[{NOW_MS}] position: 0" in dump(path).out
    assert dump(path, "-o", "json").items[1]["delete_horizon_ms"] == NOW_MS


def test_flipped_bit_is_found_by_the_crc(dump: Callable[..., Ran], partition: Path) -> None:
    """L1."""
    flip(partition / FIRST_LOG, 90)
    ran = dump(partition / FIRST_LOG)
    assert ran.code == 1
    assert "isvalid: false" in ran.out
    assert "CRC mismatch in" in ran.err
    assert "at position 0" in ran.err


def test_torn_tail_is_counted(dump: Callable[..., Ran], partition: Path) -> None:
    path = partition / FIRST_LOG
    path.write_bytes(path.read_bytes() + bytes(70))
    ran = dump(path)
    assert ran.code == 1
    assert f"Found 70 invalid bytes at the end of {FIRST_LOG}" in ran.out


def test_broken_records_under_a_good_header_are_told(dump: Callable[..., Ran], tmp_path: Path) -> None:
    path = tmp_path / FIRST_LOG
    raw = bytearray(build_batch([(NOW_MS, b"k", b"v")]))
    raw[60] = 2
    path.write_bytes(raw)
    ran = dump(path, "--deep-iteration")
    assert ran.code == 1
    assert "Unreadable records in" in ran.err


def test_gap_between_offsets_is_told(dump: Callable[..., Ran], tmp_path: Path) -> None:
    path = tmp_path / FIRST_LOG
    path.write_bytes(build_batch([(NOW_MS, None, b"a")], 3) + build_batch([(NOW_MS, None, b"b")], 7))
    ran = dump(path, "--deep-iteration")
    assert ran.code == 1
    assert "3 is followed by 7" in ran.err


def test_max_bytes_stops_without_complaint(dump: Callable[..., Ran], partition: Path) -> None:
    ran = dump(partition / FIRST_LOG, "--max-bytes", 1000)
    assert ran.code == 0
    assert 0 < ran.out.count("baseOffset: ") < dump(partition / FIRST_LOG).out.count("baseOffset: ")


def test_offset_index_that_points_elsewhere_is_found(dump: Callable[..., Ran], partition: Path) -> None:
    """L4."""
    path = partition / segment_name(0, ".index")
    flip(path, 3)
    ran = dump(path)
    assert ran.code == 1
    assert "Mismatches in :" in ran.err
    assert dump(path, "--index-sanity-check").code == 0


def test_time_index_that_lies_is_found(dump: Callable[..., Ran], partition: Path) -> None:
    path = partition / segment_name(0, ".timeindex")
    flip(path, 7)
    assert "Found timestamp mismatch in :" in dump(path).err
    flip(path, 7)
    flip(path, 11)
    assert "are not found in the log" in dump(path).err


def test_time_index_out_of_order_is_found(dump: Callable[..., Ran], tmp_path: Path) -> None:
    log = build_batch([(NOW_MS, None, b"a")], 1) + build_batch([(NOW_MS, None, b"b")], 2)
    (tmp_path / FIRST_LOG).write_bytes(log)
    path = tmp_path / segment_name(0, ".timeindex")
    path.write_bytes(struct.pack(">qiqi", NOW_MS, 1, NOW_MS, 2))
    assert "Found out of order timestamp in :" in dump(path).err


def test_cut_off_index_fails_the_sanity_check(dump: Callable[..., Ran], partition: Path) -> None:
    path = partition / segment_name(0, ".index")
    path.write_bytes(path.read_bytes()[:-3])
    ran = dump(path, "--index-sanity-check")
    assert ran.code == 1
    assert "failed the sanity check" in ran.err


def test_zeros_behind_the_last_entry_are_kafkas_preallocation(dump: Callable[..., Ran], partition: Path) -> None:
    for suffix, size in ((".index", 8), (".timeindex", 12)):
        path = partition / segment_name(0, suffix)
        before = dump(path).out
        path.write_bytes(path.read_bytes() + bytes(10 * size))
        assert dump(path).out == before


def test_verify_index_only_prints_no_entries(dump: Callable[..., Ran], partition: Path) -> None:
    path = partition / segment_name(0, ".index")
    assert dump(path, "--verify-index-only").out == f"Dumping {path}\n"


def test_empty_index_is_empty(dump: Callable[..., Ran], partition: Path) -> None:
    path = partition / segment_name(0, ".index")
    path.write_bytes(b"")
    assert f"{path} is empty." in dump(path).out


@pytest.mark.parametrize("at", [0, 4, -1])
def test_corrupt_snapshot_is_told(dump: Callable[..., Ran], partition: Path, at: int) -> None:
    path = max(partition.glob("*.snapshot"))
    assert "producerId: 7" in dump(path).out
    flip(path, at)
    ran = dump(path)
    assert ran.code == 1
    assert "is corrupt" in ran.err


@pytest.mark.parametrize("text", ["", "1\n0\n", "0\n2\n5 100\n", "0\n1\nfive 100\n"])
def test_damaged_checkpoint_is_told(dump: Callable[..., Ran], tmp_path: Path, text: str) -> None:
    path = tmp_path / "leader-epoch-checkpoint"
    path.write_text(text)
    ran = dump(path)
    assert ran.code == 1
    assert "is damaged" in ran.err


def test_offset_checkpoint_and_properties(dump: Callable[..., Ran], tmp_path: Path) -> None:
    checkpoint = tmp_path / "recovery-point-offset-checkpoint"
    checkpoint.write_text("0\n1\norders 3 77\n")
    assert "topic: orders partition: 3 offset: 77" in dump(checkpoint).out
    properties = tmp_path / "meta.properties"
    properties.write_text("#made\nnode.id=1\ncluster.id=abc=\n")
    assert dump(properties).out.splitlines()[1:] == ["node.id: 1", "cluster.id: abc="]


def test_records_that_a_decoder_cannot_read_are_told_in_words(dump: Callable[..., Ran], tmp_path: Path) -> None:
    path = tmp_path / FIRST_LOG
    keys = [None, b"\x00\x63", b"\x00\x01\x7f", b"\x00\x01\x00\x01g\x00\x01t\x00\x00\x00\x05"]
    path.write_bytes(build_batch([(NOW_MS, key, None) for key in keys]))
    lines = dump(path, "--offsets-decoder", "--skip-record-metadata").out.splitlines()[3:]
    assert lines[0] == "| key: Error at offset 0, skipping. The record has no key"
    assert lines[1] == "| key: Unknown record type 99 at offset 1, skipping."
    assert lines[2].startswith("| key: Error at offset 2, skipping. OffsetCommitKey v0: ")
    assert lines[3] == '| key: {"type":"1","data":{"group":"g","topic":"t","partition":5}} payload: <DELETE>'
    metadata = dump(path, "--cluster-metadata-decoder", "--skip-record-metadata").out
    assert "| payload: Error at 0, skipping." in metadata


def test_control_record_of_an_unknown_type_is_shown(dump: Callable[..., Ran], tmp_path: Path) -> None:
    path = tmp_path / FIRST_LOG
    path.write_bytes(control_batch(99, b"", timestamp_ms=NOW_MS))
    assert "controlType: UNKNOWN(99)" in dump(path, "--deep-iteration").out


@for_each(
    ("arguments", "sentence"),
    [
        ([], "name at least one file"),
        (["absent.log"], "does not exist"),
        (["--files", "absent.log"], "'absent.log' does not exist"),
        (["notes.txt"], "is not a file of a log directory"),
        (["orders.log"], "is not named after its base offset"),
        (["short.checkpoint"], "is not named after a snapshot's end offset"),
        (["empty"], "has no file of a partition"),
        ([segment_name(0, ".index")], "cannot be checked without its segment"),
        ([FIRST_LOG, "--offsets-decoder", "--cluster-metadata-decoder"], "exclude each other"),
        ([FIRST_LOG, "--max-bytes", "0"], "--max-bytes"),
        ([FIRST_LOG, "-o", "yaml"], "yaml"),
    ],
)
def test_mistake_is_one_sentence_and_exit_code_2(
    dump: Callable[..., Ran], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: list[str], sentence: str
) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("notes.txt", "orders.log", "short.checkpoint", FIRST_LOG):
        (tmp_path / name).write_bytes(b"")
    (tmp_path / "empty").mkdir()
    (tmp_path / segment_name(0, ".index")).write_bytes(struct.pack(">ii", 0, 0))
    if arguments == [segment_name(0, ".index")]:
        (tmp_path / FIRST_LOG).unlink()
    ran = dump(*arguments)
    assert ran.code == 2
    assert sentence in ran.err
    assert len(ran.err.splitlines()) == 1


def test_every_password_of_a_broker_is_hidden() -> None:
    kinds = {name: key.type for name, key in BROKER_KEYS.items()}
    for name in [*kinds, *(f"listener.name.a.{name}" for name in kinds)]:
        data = {"resourceType": 4, "resourceName": "1", "name": name, "value": "x"}
        is_password = kinds[name.removeprefix("listener.name.a.")] == PASSWORD
        assert hide_secrets("ConfigRecord", data)["value"] == (HIDDEN if is_password else "x"), name
        assert hide_secrets("ConfigRecord", data | {"resourceType": 2})["value"] == "x"
