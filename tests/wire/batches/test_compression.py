"""Compression codecs: compatible with Kafka's Java classes in both directions, and limited in their output size."""

from __future__ import annotations

import random
import zlib
from contextlib import suppress

import lz4.frame
import pytest
import snappy
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from barnabas.wire.batches.compression import Codec, compress, decompress
from barnabas.wire.errors import CorruptRecord, ErrorCode
from tests.support.cases import for_each

TEXT = b"Barnabas sold a field and laid the money at their feet. " * 4000
NOISE = random.Random(5).randbytes(200_000)
COMPRESSED = [codec for codec in Codec if codec != Codec.NONE]


@given(codec=st.sampled_from(Codec), data=st.binary(max_size=3000), times=st.integers(1, 60))
def test_compression_round_trip(codec: Codec, data: bytes, times: int) -> None:
    assert decompress(codec, compress(codec, data * times)) == data * times


@for_each("codec", Codec)
@for_each("data", [b"", b"a", TEXT, NOISE], ids=["empty", "byte", "text", "noise"])
def test_any_buffer_type_is_accepted(codec: Codec, data: bytes) -> None:
    packed = compress(codec, memoryview(bytearray(data)))
    assert decompress(codec, memoryview(packed)) == decompress(codec, bytearray(packed)) == data


@for_each(("codec", "level"), [(1, 1), (1, 9), (3, 1), (3, 17), (4, -5), (4, 19)])
def test_levels_in_kafkas_range_are_accepted(codec: int, level: int) -> None:
    assert decompress(codec, compress(codec, TEXT, level)) == TEXT


@for_each("codec", Codec)
def test_size_limit_is_exact(codec: Codec) -> None:
    packed = compress(codec, TEXT)
    assert decompress(codec, packed, len(TEXT)) == TEXT
    with pytest.raises(CorruptRecord, match=f"larger than the limit of {len(TEXT) - 1} bytes"):
        decompress(codec, packed, len(TEXT) - 1)


@for_each("codec", COMPRESSED)
@for_each("data", [TEXT[:3000], NOISE[:3000]], ids=["text", "noise"])
def test_truncated_data_is_corrupt(codec: Codec, data: bytes) -> None:
    packed = compress(codec, data)
    whole_snappy_header = codec == Codec.SNAPPY
    for cut in range(1, len(packed)):
        if whole_snappy_header and cut == 16:
            continue  # a snappy stream without any block is valid
        with pytest.raises(CorruptRecord):
            decompress(codec, packed[:cut])


@given(codec=st.sampled_from(COMPRESSED), junk=st.binary(max_size=200))
def test_random_bytes_are_corrupt_or_within_the_limit(codec: Codec, junk: bytes) -> None:
    with suppress(CorruptRecord):
        assert len(decompress(codec, junk, 1000)) <= 1000


def test_corrupt_record_has_the_code_corrupt_message() -> None:
    assert CorruptRecord("why").code == ErrorCode.CORRUPT_MESSAGE


@pytest.mark.parametrize("codec", [5, 6, 7])
def test_unknown_codec(codec: int) -> None:
    with pytest.raises(CorruptRecord, match=f"codec {codec}"):
        decompress(codec, b"x")
    with pytest.raises(ValueError, match=f"{codec} is not"):
        compress(codec, b"x")


@pytest.mark.parametrize("codec", [Codec.GZIP, Codec.SNAPPY, Codec.ZSTD])
def test_concatenated_streams_are_read(codec: Codec) -> None:
    assert decompress(codec, compress(codec, b"one ") + compress(codec, b"two")) == b"one two"


def test_snappy_is_written_in_xerial_blocks_of_32_kib() -> None:
    packed = compress(Codec.SNAPPY, NOISE)
    assert packed[:16] == b"\x82SNAPPY\x00\x00\x00\x00\x01\x00\x00\x00\x01"
    pos, sizes = 16, []
    while pos < len(packed):
        length = int.from_bytes(packed[pos : pos + 4], "big")
        sizes.append(len(snappy.uncompress(packed[pos + 4 : pos + 4 + length])))
        pos += 4 + length
    assert sizes == [32768] * 6 + [len(NOISE) - 6 * 32768]


def test_raw_snappy_block_is_read() -> None:
    """librdkafka sends raw snappy blocks; snappy-java reads them."""
    assert decompress(Codec.SNAPPY, snappy.compress(TEXT)) == TEXT


def test_oversized_snappy_block_is_rejected_before_decompression() -> None:
    announced = b"\xff\xff\xff\xff\x0f"
    with pytest.raises(CorruptRecord, match="larger than"):
        decompress(Codec.SNAPPY, announced + b"\x00")


def test_lz4_is_written_in_independent_64_kib_blocks() -> None:
    packed = compress(Codec.LZ4, TEXT)
    assert packed[:6] == bytes.fromhex("04224d186040")


@pytest.mark.parametrize("checksums", [(True, False), (False, True), (True, True)])
def test_lz4_checksums_and_content_size_are_read(checksums: tuple[bool, bool]) -> None:
    packed = lz4.frame.compress(
        TEXT, block_linked=False, content_checksum=checksums[0], block_checksum=checksums[1], store_size=True
    )
    assert decompress(Codec.LZ4, packed) == TEXT
    broken = packed[:-6] + bytes([packed[-6] ^ 1]) + packed[-5:]
    with pytest.raises(CorruptRecord):
        decompress(Codec.LZ4, broken)


def test_lz4_of_dependent_blocks_is_rejected() -> None:
    """Kafka's Lz4BlockInputStream: "Dependent block stream is unsupported"."""
    with pytest.raises(CorruptRecord, match="dependent"):
        decompress(Codec.LZ4, lz4.frame.compress(TEXT, block_linked=True))


def test_zstd_is_written_without_content_size() -> None:
    frame = zstandard.get_frame_parameters(compress(Codec.ZSTD, TEXT))
    assert frame.content_size == zstandard.CONTENTSIZE_UNKNOWN


@for_each("size_known", [True, False])
@for_each("checksum", [True, False])
def test_zstd_frames_of_other_writers_are_read(size_known: bool, checksum: bool) -> None:
    packed = zstandard.ZstdCompressor(write_content_size=size_known, write_checksum=checksum).compress(TEXT)
    assert decompress(Codec.ZSTD, packed) == TEXT
    if checksum:
        with pytest.raises(CorruptRecord):
            decompress(Codec.ZSTD, packed[:-1] + bytes([packed[-1] ^ 1]))


def test_zstd_blocks_of_one_repeated_byte_are_read() -> None:
    zeros = bytes(5_000_000)
    assert decompress(Codec.ZSTD, compress(Codec.ZSTD, zeros)) == zeros


def test_limit_applies_to_the_sum_of_gzip_members() -> None:
    member = zlib.compress(bytes(600), wbits=31)
    assert decompress(Codec.GZIP, member * 3, 1800) == bytes(1800)
    with pytest.raises(CorruptRecord, match="larger than the limit of 1799"):
        decompress(Codec.GZIP, member * 3, 1799)
