"""`barnabas.log.read.check.crcs`: what a reader gets of a batch that was damaged on the disk, with it and without."""

from __future__ import annotations

from pathlib import Path

import pytest

from barnabas.storage.damage import DamagedLog
from barnabas.wire.batches.records import HEADER_SIZE, iter_batches
from barnabas.wire.errors import ErrorCode as E
from barnabas.wire.messages.fetch import FetchResponse, FetchResponsePartitionData
from tests.support.memory.broker import MemoryBroker
from tests.support.requests.fetch import append, at, fetch, values

CHECKED = {"barnabas.log.read.check.crcs": "true"}
VALUE = bytes(20_000)  # too large to be sent without sendfile


def opened(path: Path, sets: dict[str, str]) -> MemoryBroker:
    """A broker with three batches in a topic."""
    broker = MemoryBroker(path, sets)
    broker.create_topic("t", 2)
    for _ in range(3):
        append(broker, "t", VALUE)
    return broker


def flip_in_batch(path: Path, number: int) -> None:
    """Change a byte of the records of a batch."""
    log = path / "t-0" / f"{0:020d}.log"
    content = bytearray(log.read_bytes())
    content[len(content) // 3 * number + HEADER_SIZE + 10] ^= 1
    log.write_bytes(content)


def read(broker: MemoryBroker, offset: int = 0, max_bytes: int = 1 << 20) -> FetchResponsePartitionData:
    request = fetch(at(offset, max_bytes=max_bytes), at(0, 1))
    return broker.client().ask(request, 12, FetchResponse).responses[0].partitions[0]


def test_whole_batches_are_read_as_without_the_check(tmp_path: Path) -> None:
    for name, sets in (("checked", CHECKED), ("not", {})):
        broker = opened(tmp_path / name, sets)
        assert values(read(broker)) == [(offset, VALUE) for offset in range(3)]
        assert values(read(broker, 1)) == [(1, VALUE), (2, VALUE)]
        assert values(read(broker, 1, 30_000)) == [(1, VALUE)]  # the second one is incomplete
        broker.close()


@pytest.mark.parametrize("number", [0, 1, 2])
def test_a_batch_with_a_wrong_crc_fails_only_the_reads_that_cross_it(
    tmp_path: Path, number: int, caplog: pytest.LogCaptureFixture
) -> None:
    """R28: no other replica can serve the partition, so this one goes on."""
    broker = opened(tmp_path, CHECKED)
    flip_in_batch(tmp_path, number)
    before = read(broker)
    assert (before.error_code == 0, [offset for offset, _ in values(before)]) == (number > 0, list(range(number)))
    for _ in range(3):
        assert read(broker, number).error_code == E.KAFKA_STORAGE_ERROR
    if number < 2:
        assert values(read(broker, number + 1))[0] == (number + 1, VALUE)
    assert append(broker, "t", b"v") == 3
    assert values(read(broker, 3)) == [(3, b"v")]
    (line,) = [
        message
        for message in caplog.messages
        if f"the CRC of the record batch at offset {number} does not match" in message
    ]
    assert "Partition t-0 is damaged" in line
    assert "barnabas storage check" in line
    assert not broker.broker.partitions.offline
    broker.close()


def test_without_the_check_the_reader_gets_the_batch(tmp_path: Path) -> None:
    broker = opened(tmp_path, {})
    flip_in_batch(tmp_path, 1)
    response = read(broker)
    assert response.error_code == 0
    assert [batch.crc_is_valid() for batch in iter_batches(memoryview(response.records))] == [True, False, True]
    assert not broker.broker.partitions.offline
    broker.close()


def test_what_is_sent_are_the_bytes_that_were_checked(tmp_path: Path) -> None:
    broker = opened(tmp_path, CHECKED)
    log = broker.broker.partitions.get("t", 0).log
    piece = log.read(0, 1 << 20, limit_offset=3, min_one_batch=True).slice
    assert piece is not None
    assert piece.is_in_memory
    flip_in_batch(tmp_path, 0)
    assert values(FetchResponsePartitionData(records=piece.read())) == [(offset, VALUE) for offset in range(3)]
    with pytest.raises(DamagedLog):
        log.read(0, 1 << 20, limit_offset=3, min_one_batch=True)
    broker.close()
