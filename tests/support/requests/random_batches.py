"""Record batches of every kind: valid ones in all codecs, of idempotent and transactional producers, and lies."""

from __future__ import annotations

import struct
from functools import cache
from random import Random
from typing import TYPE_CHECKING

from barnabas.wire.batches.batch_builder import encode_batch
from barnabas.wire.batches.compression import Codec
from barnabas.wire.batches.crc import crc32c
from barnabas.wire.batches.records import build_batch

if TYPE_CHECKING:
    from tests.support.requests.absurd_values import Learned

CRC_AT = 17
CHECKED_FROM = 21
PRODUCER_AT = 43
HEADER = 61


@cache
def plain() -> tuple[bytes, ...]:
    """Some valid batches."""
    rows = [(1000 + n, b"key-%d" % n, b"value-%d" % n) for n in range(5)]
    batches = [build_batch(rows[:count], codec=codec) for codec in Codec for count in (1, 5)]
    batches.append(build_batch([(1, None, bytes(20_000))], codec=Codec.ZSTD))
    batches.append(build_batch([(1, b"k", None)]))
    return tuple(batches)


def sealed(batch: bytearray) -> bytes:
    """The batch with the CRC of its present bytes."""
    struct.pack_into(">I", batch, CRC_AT, crc32c(memoryview(batch)[CHECKED_FROM:]))
    return bytes(batch)


def some_records(random: Random, learned: Learned) -> bytes:
    """The value of a records field."""
    chance = random.random()
    if chance < 0.35:
        return random.choice(plain())
    if chance < 0.6:
        return _of_a_producer(random, learned)
    if chance < 0.85:
        return _lie(random)
    if chance < 0.9:
        return random.choice(plain()) + random.choice(plain())
    if chance < 0.95:
        return random.choice((b"", random.randbytes(random.randrange(200)), bytes(HEADER)))
    return encode_batch(
        random.randbytes(random.randrange(300)),
        random.choice((0, 1, 5, 2**31 - 1)),
        random.choice((0, 1, 2, 3, 4, 5)),
        0,
        0,
        -1,
        0,
        0,
    )


def _of_a_producer(random: Random, learned: Learned) -> bytes:
    batch = bytearray(random.choice(plain()))
    producer = learned.any(random, "producerId")
    epoch = learned.any(random, "producer_epoch")
    sequence = random.choice((0, 0, 0, 1, 5, 2**31 - 1, -1))
    producer = producer if type(producer) is int else random.choice((0, 1, -1, 2**63 - 1))
    epoch = epoch if type(epoch) is int and random.random() < 0.7 else random.choice((0, 0, 1, -1, 32767))
    struct.pack_into(">qhi", batch, PRODUCER_AT, producer, epoch, sequence)
    if random.random() < 0.6:
        batch[22] |= 0x10  # transactional
    return sealed(batch)


def _lie(random: Random) -> bytes:
    """A valid batch with changed bytes, nearly always under a right CRC."""
    batch = bytearray(random.choice(plain()))
    for _ in range(random.choice((1, 1, 2, 4))):
        if random.random() < 0.5:
            at = random.choice((0, 8, 12, 23, 27, 35, 43, 53, 57))
            size = {0: "q", 27: "q", 35: "q", 43: "q"}.get(at, "i")
            bits = 63 if size == "q" else 31
            struct.pack_into(">" + size, batch, at, random.choice((0, 1, -1, (1 << bits) - 1, -(1 << bits), 1000)))
        else:
            batch[random.randrange(16, len(batch))] = random.choice((0, 1, 0x7F, 0x80, 0xFF, random.randrange(256)))
    return sealed(batch) if random.random() < 0.9 else bytes(batch)
