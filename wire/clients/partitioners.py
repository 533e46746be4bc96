"""Producer partitioners: by key as in every Kafka client; without a key round-robin, sticky or by load.

`choose(key, size)` returns a partition; `size` is the size in bytes that the record adds to its batch. A key selects
`partition_for_key` (Kafka's murmur2), except with RoundRobin, which like Kafka's RoundRobinPartitioner ignores keys.
`random_int(n)` returns a random number in [0, n).
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Sequence
from struct import unpack_from
from typing import Protocol

_MASK = 0xFFFFFFFF
_M = 0x5BD1E995
_SEED = 0x9747B28C
DEFAULT_BATCH_SIZE = 16384
"""The default of batch.size: after this many bytes the next partition is chosen (KIP-794)."""
LOAD_STEPS = 100
"""How finely loads of brokers are distinguished."""

RandomInt = Callable[[int], int]


class Partitioner(Protocol):
    """Chooses a partition for each record."""

    def choose(self, key: bytes | None, size: int) -> int: ...


def murmur2(data: bytes) -> int:
    """Kafka's 32-bit MurmurHash2 as a signed int."""
    length = len(data)
    h = _SEED ^ length
    words = length >> 2
    for k in unpack_from(f"<{words}I", data):
        k = k * _M & _MASK
        h = h * _M & _MASK ^ (k ^ k >> 24) * _M & _MASK
    tail = data[words << 2 :]
    if tail:
        h = (h ^ int.from_bytes(tail, "little")) * _M & _MASK
    h = (h ^ h >> 13) * _M & _MASK
    h ^= h >> 15
    return h - (1 << 32) if h & 0x80000000 else h


def partition_for_key(key: bytes, partition_count: int) -> int:
    """The partition of a key, as in the Java client's default partitioner."""
    return (murmur2(key) & 0x7FFFFFFF) % partition_count


class RoundRobin:
    """Each record to the next partition, regardless of its key (KIP-369)."""

    def __init__(self, partition_count: int) -> None:
        self._count = partition_count
        self._next = 0

    def choose(self, key: bytes | None, size: int) -> int:  # noqa: ARG002 (the common signature)
        partition = self._next
        self._next = (partition + 1) % self._count
        return partition


class Murmur2:
    """Records with a key by hash, each record without one to a random partition."""

    def __init__(self, partition_count: int, random_int: RandomInt) -> None:
        self._count = partition_count
        self._random_int = random_int

    def choose(self, key: bytes | None, size: int) -> int:  # noqa: ARG002 (the common signature)
        return self._random_int(self._count) if key is None else partition_for_key(key, self._count)


class Sticky:
    """Records with a key by hash, the others to one partition until `batch_size` bytes are sent (KIP-480, KIP-794)."""

    def __init__(self, partition_count: int, random_int: RandomInt, batch_size: int = DEFAULT_BATCH_SIZE) -> None:
        self._count = partition_count
        self._random_int = random_int
        self._batch_size = batch_size
        self._partition: int | None = None
        self._sent = 0

    def choose(self, key: bytes | None, size: int) -> int:
        if key is not None:
            return partition_for_key(key, self._count)
        if self._partition is None or self._sent >= self._batch_size:
            self._partition = self._next_partition()
            self._sent = 0
        self._sent += size
        return self._partition

    def _next_partition(self) -> int:
        return self._random_int(self._count)


class LoadAware(Sticky):
    """Sticky, with partitions with a shorter queue chosen more often (KIP-794, BuiltInPartitioner).

    Where brokers report their loads, the partitions of less loaded ones are chosen more often as well.
    """

    def __init__(self, partition_count: int, random_int: RandomInt, batch_size: int = DEFAULT_BATCH_SIZE) -> None:
        super().__init__(partition_count, random_int, batch_size)
        self._cumulative: list[int] = []
        self._partitions: list[int] = []

    def update(
        self,
        queue_sizes: Sequence[int],
        partitions: Sequence[int] | None = None,
        loads: Sequence[float] | None = None,
    ) -> None:
        """Set the queue sizes of the available partitions; `partitions` are their ids (default: all).

        The weight of a partition with queue size q is max(q) + 1 - q, times 1 - load with the load of its leader (0 to
        1; never less than a tenth). Equal queues and loads of all partitions: uniform choice.
        """
        free = [LOAD_STEPS - min(LOAD_STEPS * 9 // 10, round(LOAD_STEPS * load)) for load in loads or ()]
        ids = list(range(self._count) if partitions is None else partitions)
        if len(ids) != len(queue_sizes):
            raise ValueError(f"{len(queue_sizes)} queue sizes for {len(ids)} partitions")
        self._cumulative = []
        self._partitions = ids
        if len(ids) == self._count and len(set(queue_sizes)) <= 1 and len(set(free)) <= 1:
            return
        above_all = max(queue_sizes, default=0) + 1
        total = 0
        for number, queue_size in enumerate(queue_sizes):
            total += (above_all - queue_size) * (free[number] if free else 1)
            self._cumulative.append(total)

    def _next_partition(self) -> int:
        if not self._cumulative:
            return self._random_int(self._count)
        return self._partitions[bisect_right(self._cumulative, self._random_int(self._cumulative[-1]))]
