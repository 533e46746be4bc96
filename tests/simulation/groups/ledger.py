"""The assignments and offset commits of a group's members, and the checks that follow from them (G1-G3)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from tests.simulation.clients.ledger import Ledger


class GroupLedger:
    """The ledger of one classic group."""

    def __init__(self, group: str) -> None:
        self.group = group
        self.records = Ledger()
        self._leaders: dict[tuple[object, int], str] = {}
        self._owners: dict[tuple[int, int], str] = {}
        self._acknowledged: dict[int, int] = {}
        self._late: set[tuple[int, int]] = set()
        self.may_be_replaced = False
        """Whether a group without members may become one of the other protocol, whose epochs begin again (Kafka)."""
        self.newest_epoch = -1
        self.processed: set[bytes] = set()
        """The values of the records that were processed."""

    def leads(self, incarnation: object, epoch: int, identity: str) -> None:
        """A member is the leader of a generation; `incarnation` says which coordinator has answered."""
        # a generation is durable only with its assignment: a coordinator that crashes before uses the number again
        leader = self._leaders.setdefault((incarnation, epoch), identity)
        assert leader == identity, f"generation {epoch} is led by {leader} and by {identity}"

    def owns(self, epoch: int, identity: str, partitions: list[int]) -> None:
        """A member has received its assignment in a generation."""
        self.newest_epoch = max(self.newest_epoch, epoch)
        for partition in partitions:
            owner = self._owners.setdefault((epoch, partition), identity)
            assert owner == identity, f"partition {partition} is owned by {owner} and {identity} in generation {epoch}"

    def releases(self, identity: str) -> None:
        """A member has given up all partitions. Owners are checked by generation here, so nothing changes."""

    def when_sent(self, partitions: Iterable[int]) -> dict[int, int]:
        """The newest generation, by partition: commits of older generations must be refused from now on."""
        return dict.fromkeys(partitions, self.newest_epoch)

    def committed(self, partition: int, offset: int, *, identity: str, epoch: int, when_sent: dict[int, int]) -> None:
        """An offset commit of a member was acknowledged."""
        newest = when_sent[partition]
        assert epoch >= newest, f"a commit of {identity} in generation {epoch} was accepted after {newest} began"
        self._acknowledged[partition] = max(offset, self._acknowledged.get(partition, 0))

    def acknowledged(self, partition: int) -> int:
        """The highest offset that was acknowledged so far."""
        return self._acknowledged.get(partition, 0)

    def may_come_late(self, offsets: Mapping[int, int]) -> None:
        """A commit has no answer, or one that does not say that it was not written: it may take effect at any time."""
        self._late.update(offsets.items())

    def joined(self, epoch: int, at_least: int) -> None:
        """A member is in this generation or epoch; a member was in `at_least` before the request."""
        assert epoch >= at_least or self.may_be_replaced, f"epoch {epoch} after {at_least}"

    def found(self, partition: int, offset: int, at_least: int) -> None:
        """OffsetFetch has returned `offset`; `at_least` was acknowledged before the request."""
        if (partition, offset) in self._late:
            return
        assert offset >= at_least, f"offset {offset} of partition {partition}, and {at_least} was acknowledged"


class ConsumerLedger(GroupLedger):
    """The ledger of a group of the consumer protocol: each member has its own epoch, and partitions move one by one."""

    def __init__(self, group: str, is_member: Callable[[str], bool | None]) -> None:
        """`is_member` returns whether the coordinator has a member of this id, None when unknown."""
        super().__init__(group)
        self._is_member = is_member
        self._holders: dict[int, str] = {}
        self._moves: dict[int, int] = {}
        """How often each partition was assigned to another member."""
        self._last_move: dict[tuple[int, str], int] = {}
        """By partition and member: the number of the move by which the member last got it."""

    def owns(self, epoch: int, identity: str, partitions: list[int]) -> None:
        """A member has taken over its assignment, and given up its other partitions."""
        if self._is_member(identity) is False:
            return  # it was removed from the group, and will notice, unless a crash undoes the removal
        self.newest_epoch = max(self.newest_epoch, epoch)
        for partition, holder in list(self._holders.items()):
            if holder == identity and partition not in partitions:
                del self._holders[partition]
        for partition in partitions:
            holder = self._holders.get(partition, identity)
            assert holder == identity or self._is_member(holder) is not True, (
                f"partition {partition} is assigned to {identity} in epoch {epoch} while {holder} has it"
            )
            if holder != identity or partition not in self._holders:
                count = self._moves[partition] = self._moves.get(partition, 0) + 1
                self._last_move[partition, identity] = count
            self._holders[partition] = identity

    def releases(self, identity: str) -> None:
        """A member has given up all partitions."""
        self._holders = {partition: holder for partition, holder in self._holders.items() if holder != identity}

    def when_sent(self, partitions: Iterable[int]) -> dict[int, int]:
        """The number of moves so far, by partition."""
        return {partition: self._moves.get(partition, 0) for partition in partitions}

    def committed(self, partition: int, offset: int, *, identity: str, epoch: int, when_sent: dict[int, int]) -> None:
        """An offset commit was acknowledged; the member must have had the partition when it was sent."""
        own_move = self._last_move.get((partition, identity), 0)
        assert when_sent[partition] <= own_move, (
            f"{identity} in epoch {epoch} has committed {partition}, which another member has"
        )
        self._acknowledged[partition] = max(offset, self._acknowledged.get(partition, 0))
