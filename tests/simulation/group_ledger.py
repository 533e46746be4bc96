"""What the members of a group have been told, and what follows from it. G1, G2, G3."""

from __future__ import annotations

from tests.simulation.ledger import Ledger


class GroupLedger:
    """One group's."""

    def __init__(self, group: str) -> None:
        self.group = group
        self.records = Ledger()
        self._leaders: dict[tuple[int, int], str] = {}
        self._owners: dict[tuple[int, int], str] = {}
        self._acknowledged: dict[int, int] = {}
        self.newest_epoch = -1
        self.processed: dict[bytes, int] = {}
        """How often each record was worked on."""

    def leads(self, life: int, epoch: int, identity: str) -> None:
        """A member was told, by a broker in this life, that it leads a generation."""
        # a generation is durable with its assignment only: a broker that dies before gives the number out again
        leader = self._leaders.setdefault((life, epoch), identity)
        assert leader == identity, f"generation {epoch} is led by {leader} and by {identity}"

    def owns(self, epoch: int, identity: str, partitions: list[int]) -> None:
        """A member has got partitions in a generation."""
        self.newest_epoch = max(self.newest_epoch, epoch)
        for partition in partitions:
            owner = self._owners.setdefault((epoch, partition), identity)
            assert owner == identity, f"partition {partition} is owned by {owner} and {identity} in generation {epoch}"

    def committed(self, partition: int, offset: int, *, epoch: int, newest_when_sent: int) -> None:
        """An offset commit of a member was acknowledged."""
        assert epoch >= newest_when_sent, f"a commit of generation {epoch} was taken after {newest_when_sent} began"
        self._acknowledged[partition] = max(offset, self._acknowledged.get(partition, 0))

    def acknowledged(self, partition: int) -> int:
        """The furthest offset that was acknowledged until now."""
        return self._acknowledged.get(partition, 0)

    def found(self, partition: int, offset: int, at_least: int) -> None:
        """The group was told its offset; `at_least` was acknowledged before it asked."""
        assert offset >= at_least, f"offset {offset} of partition {partition}, and {at_least} was acknowledged"
