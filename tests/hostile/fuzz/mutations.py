"""Mutated frames: bytes of valid frames are flipped, cut, repeated, mixed with others, or replaced by extreme numbers.

Most mutated frames no longer decode, so that the broker closes their connection at the first field. Such frames are
sent too, but only one in `UNDECODABLE`: the others are mutated again, so that most frames reach a handler. Where a
number could be replaced and the frame still decoded, there is a value and not a length: such places are remembered,
and most frames get other numbers in several of them, which costs little.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from functools import cache
from random import Random

from barnabas.broker.apis.registry import BROKER_APIS, served_versions
from barnabas.wire.api_keys import ApiKey
from barnabas.wire.errors import KafkaError, ProtocolError
from barnabas.wire.frame import message_for, parse_request_header
from barnabas.wire.varint import encode_unsigned_varint
from tests.hostile.attacker import frame_of
from tests.support.requests.absurd_values import Absurd, tame
from tests.support.requests.recorded import exchanges, vectors

UNDECODABLE = 8
TRIES = 4
NEW_SEEDS = 0.02
AT_KNOWN_PLACES = 0.75
KNOWN_PLACES = 20_000
EXTREMES = tuple(
    struct.pack(kind, value)
    for kind, bits in ((">b", 7), (">h", 15), (">i", 31), (">q", 63))
    for value in (0, 1, -1, (1 << bits) - 1, -(1 << bits), 1 << (bits // 2))
) + tuple(
    encode_unsigned_varint(value)
    for value in (0, 1, 2, 127, 128, 300, 65_535, 1 << 20, 1 << 28, (1 << 31) - 1, (1 << 32) - 1)
) + (b"\xff" * 5, b"\xff" * 10, b"\x80" * 5, b"\x80" * 10, b"\x80\x00")  # fmt: skip

SIZED = {size: tuple(one for one in EXTREMES[:24] if len(one) == size) for size in (1, 2, 4, 8)}
"""The extreme numbers by their size."""


@cache
def recorded_frames() -> tuple[bytes, ...]:
    """Frames without their size: of real clients, and Kafka's own vectors of requests that are served."""
    keys = {int(key): served_versions(key) for key in BROKER_APIS}
    frames = [one.request for one in exchanges() if one.api_key in keys]
    for one in vectors():
        key = one.message_class.api_key
        if one.message_class.kind == "request" and key in keys and keys[key][0] <= one.version <= keys[key][1]:
            frames.append(frame_of(key, one.version, one.data)[4:])
    return tuple(frames)


class Mutations:
    """Makes mutated frames."""

    def __init__(self, random: Random, absurd: Absurd, keys: Sequence[int] = ()) -> None:
        """Most frames are of the APIs `keys`, of all if there are none."""
        self._random = random
        self._absurd = absurd
        self._keys = keys
        self._seeds: list[bytes] = []
        self._places: dict[bytes, list[tuple[int, int]]] = {}
        self._with_places: list[bytes] = []

    def frame(self) -> bytes:
        """A frame with its size, which is nearly always right."""
        random = self._random
        if len(self._with_places) > 50 and random.random() < AT_KNOWN_PLACES:
            data = self._at_known_places()
            return struct.pack(">i", len(data)) + data
        data = b""
        for _ in range(1 if random.randrange(UNDECODABLE) == 0 else TRIES):
            data = self._mutated()
            if decodes(data, random):
                break
        self._find_place()
        size = len(data)
        if random.random() < 0.005:
            size = random.choice((0, -1, 3, size - 1, size + 1, size + 1000, 2**31 - 1, 100 << 20, -(2**31)))
        return struct.pack(">i", size) + data

    def _seed(self) -> bytes:
        random = self._random
        if not self._seeds:
            chosen = [recorded for recorded in recorded_frames() if int.from_bytes(recorded[:2], "big") in self._keys]
            self._seeds = [*recorded_frames(), *chosen * (4 * len(recorded_frames()) // max(1, len(chosen)))]
            random.shuffle(self._seeds)
        if random.random() < NEW_SEEDS:
            request, version = self._absurd.request()
            fresh = frame_of(request.api_key, version, request.encode(version))[4:]
            if len(fresh) < 4000:
                self._seeds[random.randrange(len(self._seeds))] = fresh
                return fresh
        return random.choice(self._seeds)

    def _mutated(self) -> bytes:
        random = self._random
        data = bytearray(self._seed())
        for _ in range(random.choice((1, 1, 1, 2, 2, 3, 8))):
            first = 4 if random.random() < 0.95 else 0  # seldom another API or version
            at = random.randrange(min(first, len(data)), len(data) + 1)
            random.choice(EDITS)(data, at, random)
            if random.random() < 0.1:
                self._splice(data, at)
        return bytes(data)

    def _at_known_places(self) -> bytes:
        """Other numbers in places of a seed that are known to have values."""
        random = self._random
        seed = random.choice(self._with_places)
        data = bytearray(seed)
        places = self._places[seed]
        for _ in range(random.choice((1, 2, 3, 5))):
            at, size = random.choice(places)
            data[at : at + size] = random.choice(SIZED[size])
        return bytes(data)

    def _find_place(self) -> None:
        """Try one place of a seed."""
        random = self._random
        seed = self._seed()
        size = random.choice((1, 2, 4, 8))
        if len(seed) < 12 + size or int.from_bytes(seed[:2], "big") in TAMED:
            return
        at = random.randrange(10, len(seed) - size + 1)
        for value in (SIZED[size][0], SIZED[size][-1]):
            if not decodes(seed[:at] + value + seed[at + size :], random):
                return
        if seed not in self._places:
            self._places[seed] = []
            self._with_places.append(seed)
        self._places[seed].append((at, size))
        if len(self._with_places) > KNOWN_PLACES:
            self._with_places = self._with_places[KNOWN_PLACES // 2 :]
            self._places = {place: self._places[place] for place in self._with_places}

    def _splice(self, data: bytearray, at: int) -> None:
        random = self._random
        other = random.choice(self._seeds)
        start = random.randrange(len(other))
        data[at : at + random.choice((0, 4, 20))] = other[start : start + random.choice((1, 4, 20, 200))]


def _flip(data: bytearray, at: int, random: Random) -> None:
    if at < len(data):
        data[at] ^= 1 << random.randrange(8)


def _set(data: bytearray, at: int, random: Random) -> None:
    if at < len(data):
        data[at] = random.choice((0, 1, 2, 0x7F, 0x80, 0xFE, 0xFF))


def _overwrite(data: bytearray, at: int, random: Random) -> None:
    extreme = random.choice(EXTREMES)
    data[at : at + len(extreme)] = extreme


def _insert(data: bytearray, at: int, random: Random) -> None:
    data[at:at] = random.choice(EXTREMES)


def _delete(data: bytearray, at: int, random: Random) -> None:
    del data[at : at + random.choice((1, 1, 2, 4, 50))]


def _repeat(data: bytearray, at: int, random: Random) -> None:
    data[at:at] = data[at : at + random.choice((1, 4, 20))] * random.choice((1, 2, 50))


EDITS = (_flip, _flip, _set, _overwrite, _overwrite, _overwrite, _insert, _delete, _repeat)


def decodes(frame: bytes, random: Random) -> bool:
    """Whether the broker can decode a frame, and the fuzz itself survives its request."""
    try:
        header, start = parse_request_header(frame)
        request_class = message_for(header.request_api_key)[0]
        request, _ = request_class.codec(header.request_api_version).parse(memoryview(frame), start)
    except (ProtocolError, KafkaError):
        return False
    if header.request_api_key in TAMED:
        before = request.encode(header.request_api_version)
        tame(request, random)
        return request.encode(header.request_api_version) == before
    return True


TAMED = {
    ApiKey.ALTER_CONFIGS,
    ApiKey.INCREMENTAL_ALTER_CONFIGS,
    ApiKey.CREATE_TOPICS,
    ApiKey.CREATE_PARTITIONS,
    ApiKey.UPDATE_FEATURES,
}
