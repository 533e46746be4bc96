"""kafka-dump-log and `barnabas dump-log` print the same for the files of Barnabas and of Kafka."""

from __future__ import annotations

import random
import shutil
from collections.abc import Callable
from pathlib import Path

import lz4.frame
import pytest
import snappy
import zstandard
from confluent_kafka import Consumer, Producer
from confluent_kafka.admin import AdminClient, NewTopic

from barnabas.storage.log_config import LogConfig
from barnabas.wire.batches.compression import compress
from barnabas.wire.batches.crc import crc32c
from barnabas.wire.batches.records import HEADER_SIZE, build_batch
from tests.clients.kafka.dump_tools import both_agree, files_of, kafkas_dump, our_dump
from tests.support.logs.written_log import open_log, write_log
from tests.support.processes.kafka import KafkaServer
from tests.support.processes.server import BarnabasServer, Server

pytestmark = pytest.mark.jvm

CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
RECORDS = 2000


@pytest.fixture(scope="module")
def partition(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A log written by the storage package, without a broker."""
    return write_log(tmp_path_factory.mktemp("storage"))


def test_every_segment_of_storage_reads_in_kafkas_tool(partition: Path) -> None:
    files = files_of(partition, ".log")
    assert len(files) > 5
    dump = both_agree(files, "--deep-iteration", "--print-data-log")
    assert dump.offsets == list(range(dump.offsets[-1] + 1))
    assert {f"compresscodec: {codec} " in dump.text for codec in CODECS} == {True}
    assert "isvalid: false" not in dump.text
    assert "endTxnMarker: COMMIT" in dump.text
    assert "endTxnMarker: ABORT" in dump.text


@pytest.mark.parametrize("suffix", [".index", ".timeindex"])
def test_every_index_of_storage_is_sane_and_points_at_its_batches(partition: Path, suffix: str) -> None:
    """L4."""
    files = files_of(partition, suffix)
    assert len(files) == len(files_of(partition, ".log"))
    both_agree(files, "--index-sanity-check")
    dump = both_agree(files)
    assert len(dump.lines) > 2 * len(files)


def test_snapshots_and_transaction_indexes_of_storage_read_in_kafkas_tool(partition: Path) -> None:
    """I5, T6."""
    dump = both_agree(files_of(partition, ".snapshot", ".txnindex"))
    assert "producerId: 7 producerEpoch: 1" in dump.text
    assert "lastStableOffset: " in dump.text


def test_indexes_rebuilt_by_recovery_read_in_kafkas_tool(partition: Path, tmp_path: Path) -> None:
    """L1: the incomplete last batch is truncated and the indexes are rebuilt."""
    directory = tmp_path / partition.name
    shutil.copytree(partition, directory)
    last = files_of(directory, ".log")[-1]
    with last.open("r+b") as file:
        file.truncate(last.stat().st_size - 7)
    for index in files_of(directory, ".index", ".timeindex"):
        index.unlink()
    config = LogConfig()
    config.index_interval_bytes = 1000
    open_log(directory, config, clean_shutdown=False).close()
    both_agree(files_of(directory, ".log", ".index", ".timeindex"), "--deep-iteration")


def batch_of(payload: bytes, codec: int, base_offset: int) -> bytes:
    """The batch of PLAIN with its records compressed by another library."""
    raw = bytearray(PLAIN[:HEADER_SIZE] + payload)
    raw[:8] = base_offset.to_bytes(8, "big")
    raw[8:12] = (len(raw) - 12).to_bytes(4, "big")
    raw[21:23] = codec.to_bytes(2, "big")
    raw[17:21] = crc32c(raw[21:]).to_bytes(4, "big")
    return bytes(raw)


PLAIN = build_batch([(1_700_000_000_000 + number, b"k%d" % number, b"value " * 40) for number in range(20)])
RECORDS_OF_PLAIN = PLAIN[HEADER_SIZE:]
HALF = len(RECORDS_OF_PLAIN) // 2
UNUSUAL = {
    "raw snappy, as librdkafka sends": (2, snappy.compress(RECORDS_OF_PLAIN)),
    "two xerial streams": (2, compress(2, RECORDS_OF_PLAIN[:HALF]) + compress(2, RECORDS_OF_PLAIN[HALF:])),
    "two gzip members": (1, compress(1, RECORDS_OF_PLAIN[:HALF]) + compress(1, RECORDS_OF_PLAIN[HALF:])),
    "two zstd frames": (4, compress(4, RECORDS_OF_PLAIN[:HALF]) + compress(4, RECORDS_OF_PLAIN[HALF:])),
    "zstd with size and checksum": (4, zstandard.ZstdCompressor(write_checksum=True).compress(RECORDS_OF_PLAIN)),
    "lz4 with size and checksum": (
        3,
        lz4.frame.compress(RECORDS_OF_PLAIN, block_linked=False, content_checksum=True, store_size=True),
    ),
    "lz4 with checksums of blocks": (3, lz4.frame.compress(RECORDS_OF_PLAIN, block_linked=False, block_checksum=True)),
}


@pytest.mark.parametrize("name", UNUSUAL)
def test_batches_that_kafka_decompresses_are_decompressed(tmp_path: Path, name: str) -> None:
    codec, payload = UNUSUAL[name]
    path = tmp_path / f"{0:020d}.log"
    path.write_bytes(batch_of(payload, codec, 0) + batch_of(payload, codec, 20))
    assert both_agree([path], "--print-data-log").offsets == list(range(40))


def test_lz4_of_dependent_blocks_is_refused_by_both(tmp_path: Path) -> None:
    path = tmp_path / f"{0:020d}.log"
    several_blocks = build_batch([(0, None, b"value " * 50_000)])[HEADER_SIZE:]
    path.write_bytes(batch_of(lz4.frame.compress(several_blocks, block_linked=True), 3, 0))
    assert "Unreadable records" in our_dump([path], "--deep-iteration").problems[0]
    with pytest.raises(AssertionError, match="Dependent block stream is unsupported"):
        kafkas_dump([path], "--deep-iteration")


def produce_and_consume(server: Server) -> None:
    """Data in every codec, plain and idempotent, over several segments; a group that commits offsets."""
    topic = NewTopic("orders", 1, 1, config={"segment.bytes": str(1 << 20), "index.interval.bytes": "512"})
    admin = AdminClient({"bootstrap.servers": server.bootstrap})
    for created in admin.create_topics([topic]).values():
        created.result()
    rng = random.Random(11)
    for codec in CODECS:
        for idempotent in (False, True):
            settings = {"compression.type": codec, "enable.idempotence": idempotent, "batch.size": 20_000}
            producer = Producer({"bootstrap.servers": server.bootstrap, "linger.ms": 5, **settings})
            for number in range(RECORDS // 10):
                value = rng.randbytes(1500) + bytes(100)
                producer.produce("orders", value, key=b"key%d" % number, headers={"codec": codec.encode()})
                producer.poll(0)
            assert producer.flush(30) == 0
    consumer = Consumer(
        {
            "bootstrap.servers": server.bootstrap,
            "group.id": "readers",
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
            "fetch.queue.backoff.ms": 5,
        }
    )
    consumer.subscribe(["orders"])
    read = 0
    while read < RECORDS:
        message = consumer.poll(20)
        assert message is not None
        assert message.error() is None
        read += 1
    consumer.commit(asynchronous=False)
    consumer.close()


@pytest.fixture(scope="module", params=["barnabas", pytest.param("kafka", marks=pytest.mark.soak)])
def data_dir(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The data directory of a stopped broker: of Barnabas, and of Kafka to check the test itself."""
    where = tmp_path_factory.mktemp(request.param) / "data"
    config = {"offsets.topic.num.partitions": "1"}
    make: Callable[..., Server] = KafkaServer if request.param == "kafka" else BarnabasServer
    server = make(where, config=config)
    with server:
        produce_and_consume(server)
    return where / "logs" if request.param == "kafka" else where


def test_segments_of_a_broker_read_in_both_tools(data_dir: Path) -> None:
    files = files_of(data_dir / "orders-0", ".log")
    assert len(files) > 2
    dump = both_agree(files, "--deep-iteration")
    assert dump.offsets == list(range(RECORDS))
    assert {f"compresscodec: {codec} " in dump.text for codec in CODECS} == {True}


def test_indexes_of_a_broker_read_in_both_tools(data_dir: Path) -> None:
    files = files_of(data_dir / "orders-0", ".index", ".timeindex", ".snapshot")
    both_agree(files)
    both_agree(files_of(data_dir / "orders-0", ".index", ".timeindex"), "--index-sanity-check")


def test_cluster_metadata_of_a_broker_reads_in_both_tools(data_dir: Path) -> None:
    dump = both_agree(files_of(data_dir / "__cluster_metadata-0", ".log", ".checkpoint"), "--cluster-metadata-decoder")
    assert '{"type":"TOPIC_RECORD","version":0,"data":{"name":"orders"' in dump.text
    assert "skipping" not in dump.text


def test_committed_offsets_of_a_broker_read_in_both_tools(data_dir: Path) -> None:
    """G2."""
    dump = both_agree(files_of(data_dir / "__consumer_offsets-0", ".log"), "--offsets-decoder")
    key = '{"type":"1","data":{"group":"readers","topic":"orders","partition":0}}'
    assert f'key: {key} payload: {{"version":"4","data":{{"offset":{RECORDS},' in dump.text
    assert '"protocolType":"consumer"' in dump.text
    assert "skipping" not in dump.text
