"""A data directory with one wrong file, and what a start makes of it."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random

from barnabas.coord.cluster.image import UnknownMetadataError
from barnabas.storage.damage import DamagedLog
from barnabas.storage.directories.checkpoints import CorruptCheckpoint
from barnabas.storage.directories.log_dirs import DataDirMismatch
from barnabas.wire.errors import CorruptRecord, KafkaError
from barnabas.wire.errors import ErrorCode as E
from barnabas.wire.messages.fetch import FetchResponse, FetchResponsePartitionData
from tests.support.memory.broker import MemoryBroker
from tests.support.requests.fetch import append, at, fetch, values

TOPICS = ("t", "u")
VALUES = [b"v%d" % number for number in range(12)]

REFUSALS = (CorruptCheckpoint, DataDirMismatch, DamagedLog, UnknownMetadataError, KafkaError, OSError)
"""What `Server` turns into one sentence and exit code 2."""

Wrong = tuple[str, Callable[[Path], None]]
"""An error in a file: its name, and a function that causes it."""


def make_data(data: Path) -> None:
    """Two topics with idempotent and aborted records, after a clean stop."""
    broker = MemoryBroker(data, {"log.index.interval.bytes": "100"})
    for topic in TOPICS:
        broker.create_topic(topic)
        for value in VALUES:
            append(broker, topic, value)
    broker.close()


def small_files(data: Path) -> list[Path]:
    """All files with content but the locks."""
    return sorted(path for path in data.rglob("*") if path.is_file() and path.stat().st_size and path.name != ".lock")


def wrong_ways(path: Path, random: Random, flips: int) -> Iterator[Wrong]:
    """Ways in which a file may be wrong; `flips` of them change one byte."""
    content = path.read_bytes()

    def replace(new: bytes) -> Callable[[Path], None]:
        return lambda path: path.write_bytes(new) and None

    for _ in range(flips):
        at, mask = random.randrange(len(content)), random.randrange(1, 256)
        flipped = content[:at] + bytes([content[at] ^ mask]) + content[at + 1 :]
        yield f"byte {at} flipped by {mask}", replace(flipped)
    for size in {0, 1, len(content) // 2, len(content) - 1}:
        yield f"cut to {size}", replace(content[:size])
    yield "zeros", replace(bytes(len(content)))
    yield "no text", replace(b"\xff" * len(content))
    yield "longer", replace(content + b"9" * 40)
    yield "a directory", _make_directory
    yield "a dangling link", _make_link
    yield "missing", Path.unlink


def _make_directory(path: Path) -> None:
    path.unlink()
    path.mkdir()


def _make_link(path: Path) -> None:
    path.unlink()
    path.symlink_to(path.with_name("nowhere"))


class Outcome:
    """What a start made of a data directory: `refusal`, or for each topic its values, None if it is offline."""

    def __init__(self, data: Path) -> None:
        self.refusal = ""
        self.values: dict[str, list[bytes | None] | None] = {}
        try:
            broker = MemoryBroker(data)
        except REFUSALS as error:
            self.refusal = str(error) or repr(error)
            return
        try:
            client = broker.client()
            for topic in TOPICS:
                partition = client.ask(fetch(at(0), topic=topic), 12, FetchResponse).responses[0].partitions[0]
                self.values[topic] = None if partition.error_code == E.KAFKA_STORAGE_ERROR else _values(partition)
        finally:
            try:
                broker.close()
            except REFUSALS:
                pass


def _values(response: FetchResponsePartitionData) -> list[bytes | None]:
    try:
        return [value for _, value in values(response)]
    except CorruptRecord:
        return [b"a reader finds a wrong CRC"]


def copied(data: Path, to: Path) -> Path:
    """A copy of a data directory."""
    shutil.rmtree(to, ignore_errors=True)
    shutil.copytree(data, to, symlinks=True)
    return to
