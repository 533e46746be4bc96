"""The record batches that are produced: their bytes are the same in every run."""

from __future__ import annotations

import random

from barnabas.wire.batches.compression import Codec
from barnabas.wire.batches.records import BatchBuilder

TIME_MS = 1_700_000_000_000
RECORD_BYTES = 100


def batch(count: int, *, codec: Codec = Codec.NONE, time_ms: int = TIME_MS, **producer: int | bool) -> bytes:
    """A batch of records of 100 bytes, half of which compress well; `producer` are fields of a producer."""
    chance = random.Random(7)
    builder = BatchBuilder(codec=codec, **producer)  # type: ignore[arg-type]
    for index in range(count):
        value = b'{"number": %8d, "text": "' % index + chance.randbytes(RECORD_BYTES // 4).hex().encode()
        builder.append(time_ms, None, value.ljust(RECORD_BYTES, b"x"))
    return bytes(builder.build())
