"""Placement of new replicas: striped over racks and brokers, so that leaders and replicas are spread evenly.

Each partition takes its leader from the next rack, and one replica from each rack in turn; in a rack the brokers take
turns too. A fenced broker gets a replica only when its rack has no other left, and never a leader. When every broker
has led once the orders are shuffled, so that the followers of one leader differ. Two things are more even than in
Kafka: a topic starts where `start` says and not at random, so that topics of one partition are spread as well; and the
brokers of a rack take turns as leaders, whatever turn they have as followers. Source: Kafka 4.4 `StripedReplicaPlacer`.
KIP-36, KIP-841, KIP-1066 (a broker whose log directories are all cordoned gets no replica). Manual assignments are
checked here too, as in Kafka's `ReplicationControlManager.validateManualPartitionAssignment`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from random import Random
from typing import NamedTuple

from barnabas.coord.cluster.broker_image import BrokerImage
from barnabas.coord.cluster.image import ClusterImage
from barnabas.wire.errors import ErrorCode, KafkaError


class UsableBroker(NamedTuple):
    """A broker that may get replicas."""

    id: int
    rack: str | None = None
    fenced: bool = False


def usable_brokers(image: ClusterImage) -> Iterator[UsableBroker]:
    """The brokers that may get replicas: neither stopping, nor with cordoned log directories only."""
    for _, broker in sorted(image.brokers.items()):
        is_stopping = broker.in_controlled_shutdown and not broker.fenced
        if not is_stopping and broker.has_uncordoned_directories:
            yield UsableBroker(broker.id, broker.rack, broker.fenced)


class _Ring:
    """Brokers that take turns: in each round every one is given once, and each round begins one later."""

    __slots__ = ("_offset", "_round", "_taken", "brokers")

    def __init__(self) -> None:
        self.brokers: list[int] = []
        self._taken = 0
        self._offset = 0
        self._round = 0

    def begin(self, start: int) -> None:
        """Begin the first round with the broker at index `start`, modulo their number; all brokers are known."""
        if self.brokers:
            self.brokers.sort()
            self._offset = start % len(self.brokers)

    def take(self, number: int) -> int | None:
        """The next broker of this round, or None when all were given."""
        count = len(self.brokers)
        if not count:
            return None
        if self._round != number:
            self._round, self._taken = number, 0
            self._offset = (self._offset + 1) % count
        if self._taken >= count:
            return None
        self._taken += 1
        return self.brokers[(self._taken - 1 + self._offset) % count]


class _Rack:
    __slots__ = ("_leaders", "_led", "fenced", "live")

    def __init__(self) -> None:
        self.live = _Ring()
        self.fenced = _Ring()
        self._leaders: list[int] = []
        self._led = 0

    def begin(self, start: int) -> None:
        """Begin the first round of each ring, and of the leaders, at index `start`; all brokers are known."""
        self.live.begin(start)
        self.fenced.begin(start)
        self._leaders, self._led = list(self.live.brokers), start

    def lead(self) -> int | None:
        """The next leader from this rack, or None if no broker in it is live."""
        if not self._leaders:
            return None
        self._led += 1
        return self._leaders[(self._led - 1) % len(self._leaders)]

    def take(self, number: int) -> int | None:
        """The next broker of this round, the fenced ones last."""
        broker = self.live.take(number)
        return self.fenced.take(number) if broker is None else broker


class ReplicaPlacer:
    """Places the partitions of one topic."""

    def __init__(self, brokers: Iterable[UsableBroker], start: int) -> None:
        """`start` selects the first rack and the first broker in it, and the order after each round."""
        racks: dict[str | None, _Rack] = {}
        self._live = self._total = 0
        for broker in brokers:
            rack = racks.setdefault(broker.rack, _Rack())
            (rack.fenced if broker.fenced else rack.live).brokers.append(broker.id)
            self._total += 1
            self._live += not broker.fenced
        self._racks = [rack for _, rack in sorted(racks.items(), key=lambda item: (item[0] is not None, item[0] or ""))]
        self._start = start
        self._random: Random | None = None
        self._round = 0
        self._offset = start % max(1, len(self._racks))
        for rack in self._racks:
            rack.begin(start // len(self._racks))

    def check(self, replication_factor: int) -> None:
        """KafkaError(INVALID_REPLICATION_FACTOR) when there are too few brokers."""
        times = f"Unable to replicate the partition {replication_factor} time(s):"
        if not self._live:
            raise KafkaError(
                ErrorCode.INVALID_REPLICATION_FACTOR,
                f"{times} All brokers are currently fenced, or have all their log directories cordoned.",
            )
        if replication_factor > self._total:
            raise KafkaError(
                ErrorCode.INVALID_REPLICATION_FACTOR,
                f"{times} The target replication factor of {replication_factor} cannot be reached because only "
                f"{self._total} broker(s) are registered or some brokers have all their log directories cordoned.",
            )

    def place(self, replication_factor: int) -> list[int]:
        """The replicas of the next partition, its leader first; `check` has passed."""
        if self._round and self._live > 1 and self._round % self._live == 0:
            self._shuffle()
        count = len(self._racks)
        first = self._offset
        while (leader := self._racks[first].lead()) is None:
            first = (first + 1) % count
        replicas = [leader]
        position, skipped = self._offset, False
        while len(replicas) < replication_factor:
            if position == first and not skipped:  # the leader is from this rack
                skipped = True
            else:
                broker = self._racks[position].take(self._round)
                if broker == leader:
                    broker = self._racks[position].take(self._round)
                if broker is not None:
                    replicas.append(broker)
            position = (position + 1) % count
        self._round += 1
        self._offset = (self._offset + 1) % count
        return replicas

    def _shuffle(self) -> None:
        if self._random is None:
            self._random = Random(self._start)
        self._random.shuffle(self._racks)
        for rack in self._racks:
            self._random.shuffle(rack.live.brokers)
            self._random.shuffle(rack.fenced.brokers)


def check_manual_assignment(
    replicas: Sequence[int], brokers: Mapping[int, BrokerImage], replication_factor: int | None
) -> None:
    """Validate one partition of a manual assignment; KafkaError(INVALID_REPLICA_ASSIGNMENT) when it is invalid.

    `replication_factor` is the earlier partitions', None for the first.
    """
    if not replicas:
        raise _invalid("The manual partition assignment includes an empty replica list.")
    for position, replica in enumerate(replicas):
        if replica in replicas[:position]:
            raise _invalid(f"The manual partition assignment includes the broker {replica} more than once.")
        if replica not in brokers:
            raise _invalid(
                f"The manual partition assignment includes broker {replica}, but no such broker is registered."
            )
        if not brokers[replica].has_uncordoned_directories:
            raise _invalid(
                f"The manual partition assignment includes broker {replica}, but all its log directories are cordoned."
            )
    if replication_factor is not None and len(replicas) != replication_factor:
        raise _invalid(
            f"The manual partition assignment includes a partition with {len(replicas)} replica(s), but this is not "
            f"consistent with previous partitions, which have {replication_factor} replica(s)."
        )


def _invalid(message: str) -> KafkaError:
    return KafkaError(ErrorCode.INVALID_REPLICA_ASSIGNMENT, message)
