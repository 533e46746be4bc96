"""What the members of a group have been told, and what follows from it. G1, G2, G3."""

from __future__ import annotations

from collections.abc import Callable, Iterable

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

    def lets_go(self, identity: str) -> None:
        """A member has abandoned all that it had: who owns them is a matter of generations here."""

    def when_sent(self, partitions: Iterable[int]) -> dict[int, int]:
        """The newest generation until now, for each partition: commits of older ones must be refused from here on."""
        return dict.fromkeys(partitions, self.newest_epoch)

    def committed(self, partition: int, offset: int, *, identity: str, epoch: int, when_sent: dict[int, int]) -> None:
        """An offset commit of a member was acknowledged."""
        newest = when_sent[partition]
        assert epoch >= newest, f"a commit of {identity} in generation {epoch} was taken after {newest} began"
        self._acknowledged[partition] = max(offset, self._acknowledged.get(partition, 0))

    def acknowledged(self, partition: int) -> int:
        """The furthest offset that was acknowledged until now."""
        return self._acknowledged.get(partition, 0)

    def found(self, partition: int, offset: int, at_least: int) -> None:
        """The group was told its offset; `at_least` was acknowledged before it asked."""
        assert offset >= at_least, f"offset {offset} of partition {partition}, and {at_least} was acknowledged"


class ConsumerLedger(GroupLedger):
    """A group's of the consumer protocol: epochs are the members' own, and partitions go from hand to hand."""

    def __init__(self, group: str, is_member: Callable[[str], bool | None]) -> None:
        """`is_member` tells whether the coordinator still has a member of this id, or None."""
        super().__init__(group)
        self._is_member = is_member
        self._holders: dict[int, str] = {}
        self._takes: dict[int, int] = {}
        """How often a partition has changed hands."""
        self._sleepers: set[str] = set()
        self._taken_by: dict[tuple[int, str], int] = {}
        """The number of the last of these times that a member has got it."""

    def owns(self, epoch: int, identity: str, partitions: list[int]) -> None:
        """A member has taken over its assignment, and let go of the rest."""
        if self._is_member(identity) is False:
            self._sleepers.add(identity)
            return  # it was put out, and will hear of that, unless a crash undoes it
        self.newest_epoch = max(self.newest_epoch, epoch)
        for partition, holder in list(self._holders.items()):
            if holder == identity and partition not in partitions:
                del self._holders[partition]
        for partition in partitions:
            holder = self._holders.get(partition, identity)
            assert holder == identity or self._is_member(holder) is not True, (
                f"partition {partition} is given to {identity} in epoch {epoch}, and {holder} still has it"
            )
            if holder != identity or partition not in self._holders:
                count = self._takes[partition] = self._takes.get(partition, 0) + 1
                self._taken_by[partition, identity] = count
            self._holders[partition] = identity

    def lets_go(self, identity: str) -> None:
        """A member has abandoned all that it had."""
        self._holders = {partition: holder for partition, holder in self._holders.items() if holder != identity}

    def when_sent(self, partitions: Iterable[int]) -> dict[int, int]:
        """How often each partition has changed hands until now."""
        return {partition: self._takes.get(partition, 0) for partition in partitions}

    def committed(self, partition: int, offset: int, *, identity: str, epoch: int, when_sent: dict[int, int]) -> None:
        """An offset commit of a member was acknowledged; it must have been its partition when it was sent."""
        taken = self._taken_by.get((partition, identity), 0)
        assert when_sent[partition] <= taken, (
            f"{identity} in epoch {epoch} has committed {partition}, which others have"
        )
        self._acknowledged[partition] = max(offset, self._acknowledged.get(partition, 0))
