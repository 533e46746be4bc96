"""The load and the version of a broker: tagged fields of DescribeCluster that only Barnabas knows.

A request with the tag asks for it, and only then the response has it: Kafka's clients, which would skip an unknown tag
anyway, get the responses that they know. The figures describe the broker that answers. A broker of Kafka answers
without them.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable
from typing import Final, NamedTuple

TAG: Final = 10_000
"""Far above the tags that Kafka assigns in order."""
_FORM: Final = struct.Struct(">8d")


class BrokerLoad(NamedTuple):
    """What a broker does, averaged over the last seconds."""

    cpu: float
    """Of the machine's CPUs: 0 to 1."""
    memory: float
    """Of the machine's memory: 0 to 1."""
    memory_bytes: float
    disk: float
    """The used part of its fullest data directory's file system: 0 to 1."""
    bytes_per_s: float
    """Appended to its partitions, as leader and as follower."""
    messages_per_s: float
    """Offsets by which its partitions have grown."""
    leaders: float
    """Partitions that it leads."""
    uptime_s: float
    version: str = ""
    """The version of Barnabas."""


def encode(load: BrokerLoad) -> bytes:
    """The data of the tagged field."""
    version = load.version.encode()[:255]
    return _FORM.pack(*load[:8]) + bytes([len(version)]) + version


def find(tagged_fields: Iterable[tuple[int, bytes]]) -> BrokerLoad | None:
    """The load among the unknown tagged fields of a response; None if there is none, or in an unknown form."""
    for tag, data in tagged_fields:
        if tag == TAG and len(data) >= _FORM.size:  # later versions may append more, earlier ones have no version
            length = data[_FORM.size] if len(data) > _FORM.size else 0
            version = data[_FORM.size + 1 : _FORM.size + 1 + length].decode(errors="replace")
            return BrokerLoad._make((*_FORM.unpack_from(data), version))
    return None


def is_asked_for(tagged_fields: Iterable[tuple[int, bytes]]) -> bool:
    """Whether a request asks for the load."""
    return any(tag == TAG for tag, _ in tagged_fields)
