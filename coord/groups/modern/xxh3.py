"""XXH3, the 64-bit hash of the xxHash family, with seed 0: what Kafka hashes a group's topics with (KIP-1101).

Plain Python is fast enough for what is hashed here: some bytes a partition, when topics change. The specification is
xxHash's `doc/xxhash_spec.md`.
"""

from __future__ import annotations

from struct import unpack_from
from typing import Final

_M32: Final = 0xFFFFFFFF
_M64: Final = 0xFFFFFFFFFFFFFFFF
_P32_1, _P32_2, _P32_3 = 0x9E3779B1, 0x85EBCA77, 0xC2B2AE3D
_P64_1, _P64_2, _P64_3 = 0x9E3779B185EBCA87, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9
_P64_4, _P64_5 = 0x85EBCA77C2B2AE63, 0x27D4EB2F165667C5
_MX1, _MX2 = 0x165667919E3779F9, 0x9FB21C651E98DF25

_SECRET: Final = bytes.fromhex(
    "b8fe6c3923a44bbe7c01812cf721ad1cded46de9839097db7240a4a4b7b3671fcb79e64eccc0e578825ad07dccff7221"
    "b8084674f743248ee03590e6813a264c3c2852bb91c300cb88d0658b1b532ea371644897a20df94e3819ef46a9deacd8"
    "a8fa763fe39c343ff9dcbbc7c70b4f1d8a51e04bcdb45931c89f7ec9d9787364eac5ac8334d3ebc3c581a0fffa1363eb"
    "170ddd51b7f0da49d316552629d4689e2b16be587d47a1fc8ff8b8d17ad031ce45cb3a8f95160428afd7fbcabb4b407e"
)
_STRIPE: Final = 64
_BLOCK: Final = 1024
_STRIPES_OF_BLOCK: Final = 16


def xxh3_64(data: bytes) -> int:
    """The hash, as an unsigned number."""
    length = len(data)
    if length <= 16:
        return _up_to_16(data, length)
    if length <= 128:
        return _up_to_128(data, length)
    if length <= 240:
        return _up_to_240(data, length)
    return _long(data, length)


def _u64(data: bytes, at: int) -> int:
    value: int = unpack_from("<Q", data, at)[0]
    return value


def _u32(data: bytes, at: int) -> int:
    value: int = unpack_from("<I", data, at)[0]
    return value


def _rotated(value: int, left: int) -> int:
    return (value << left | value >> (64 - left)) & _M64


def _folded(first: int, second: int) -> int:
    """The 128-bit product, its halves laid over each other."""
    product = first * second
    return (product ^ product >> 64) & _M64


def _avalanche(value: int) -> int:
    value = (value ^ value >> 37) * _MX1 & _M64
    return value ^ value >> 32


def _avalanche_64(value: int) -> int:
    value = (value ^ value >> 33) * _P64_2 & _M64
    value = (value ^ value >> 29) * _P64_3 & _M64
    return value ^ value >> 32


def _up_to_16(data: bytes, length: int) -> int:
    if length > 8:
        low = _u64(data, 0) ^ _u64(_SECRET, 24) ^ _u64(_SECRET, 32)
        high = _u64(data, length - 8) ^ _u64(_SECRET, 40) ^ _u64(_SECRET, 48)
        swapped = int.from_bytes(low.to_bytes(8, "little"), "big")
        return _avalanche((length + swapped + high + _folded(low, high)) & _M64)
    if length >= 4:
        value = (_u32(data, length - 4) + (_u32(data, 0) << 32)) ^ _u64(_SECRET, 8) ^ _u64(_SECRET, 16)
        value = (value ^ _rotated(value, 49) ^ _rotated(value, 24)) * _MX2 & _M64
        value = (value ^ ((value >> 35) + length)) * _MX2 & _M64
        return value ^ value >> 28
    if length:
        value = data[0] << 16 | data[length >> 1] << 24 | data[-1] | length << 8
        return _avalanche_64(value ^ _u32(_SECRET, 0) ^ _u32(_SECRET, 4))
    return _avalanche_64(_u64(_SECRET, 56) ^ _u64(_SECRET, 64))


def _mixed_16(data: bytes, at: int, secret: int) -> int:
    return _folded(_u64(data, at) ^ _u64(_SECRET, secret), _u64(data, at + 8) ^ _u64(_SECRET, secret + 8))


def _up_to_128(data: bytes, length: int) -> int:
    value = length * _P64_1
    for step in range((length - 1) // 32 + 1):  # pairs of 16 bytes, from both ends
        value += _mixed_16(data, 16 * step, 32 * step)
        value += _mixed_16(data, length - 16 * (step + 1), 32 * step + 16)
    return _avalanche(value & _M64)


def _up_to_240(data: bytes, length: int) -> int:
    value = length * _P64_1 + sum(_mixed_16(data, 16 * step, 16 * step) for step in range(8))
    value = _avalanche(value & _M64)
    value += sum(_mixed_16(data, 16 * step, 16 * (step - 8) + 3) for step in range(8, length // 16))
    value += _mixed_16(data, length - 16, 136 - 17)
    return _avalanche(value & _M64)


def _long(data: bytes, length: int) -> int:
    lanes = [_P32_3, _P64_1, _P64_2, _P64_3, _P64_4, _P32_2, _P64_5, _P32_1]
    last = (length - 1) // _STRIPE  # the last stripe ends with the data, and may overlap the one before
    for stripe in range(last):
        _accumulate(lanes, data, stripe * _STRIPE, stripe % _STRIPES_OF_BLOCK * 8)
        if stripe % _STRIPES_OF_BLOCK == _STRIPES_OF_BLOCK - 1:
            _scramble(lanes)
    _accumulate(lanes, data, length - _STRIPE, len(_SECRET) - _STRIPE - 7)
    value = length * _P64_1
    for lane in range(0, 8, 2):
        value += _folded(lanes[lane] ^ _u64(_SECRET, 11 + 8 * lane), lanes[lane + 1] ^ _u64(_SECRET, 19 + 8 * lane))
    return _avalanche(value & _M64)


def _accumulate(lanes: list[int], data: bytes, at: int, secret: int) -> None:
    values = unpack_from("<8Q", data, at)
    keys = unpack_from("<8Q", _SECRET, secret)
    for lane in range(8):
        keyed = values[lane] ^ keys[lane]
        lanes[lane ^ 1] = (lanes[lane ^ 1] + values[lane]) & _M64
        lanes[lane] = (lanes[lane] + (keyed & _M32) * (keyed >> 32)) & _M64


def _scramble(lanes: list[int]) -> None:
    keys = unpack_from("<8Q", _SECRET, len(_SECRET) - _STRIPE)
    for lane, key in enumerate(keys):
        lanes[lane] = (lanes[lane] ^ lanes[lane] >> 47 ^ key) * _P32_1 & _M64
