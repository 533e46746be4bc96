"""The framing of every codec: at most as many bytes as allowed, and only CorruptRecord.

What was decompressed is compressed and decompressed again.
"""

from __future__ import annotations

from collections.abc import Iterator

from barnabas.wire.batches.compression import Codec, compress, decompress
from barnabas.wire.errors import CorruptRecord
from tests.fuzz.targets import Input

MAX_BYTES = 2048
MOST = 1 << 18
CONTENTS = (b"", b"a", b"ab" * 400, bytes(range(256)), b"\x10\0\0\0\0\x01\0" * 60)


def check(data: bytes) -> None:
    """The first byte is the codec; unknown ones too."""
    source = Input(data)
    codec = source.number(7)
    try:
        content = decompress(codec, source.rest, MOST)
    except CorruptRecord:
        return
    assert len(content) <= MOST
    assert decompress(codec, compress(codec, content), MOST) == content


def seeds() -> Iterator[bytes]:
    """A few contents in every codec."""
    for codec in Codec:
        for content in CONTENTS:
            yield bytes((codec,)) + compress(codec, content)
