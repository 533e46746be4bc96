"""A consumer of a group: reads the partitions that are assigned to it, and commits the processed records.

The caller marks records with `processed`; `before_commit` is called before offsets are committed, which happens every
five seconds, before a rebalance and at the end. So a record is committed only after it was processed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from time import monotonic

from barnabas.client.cluster import Cluster
from barnabas.client.errors import ClientError
from barnabas.client.groups.consumer_groups import committed_offsets
from barnabas.client.groups.member import CLOSE_S, GroupMember
from barnabas.client.offsets import TopicPartition
from barnabas.client.reader import WAIT_S, Reader
from barnabas.wire.batches.records import Record
from barnabas.wire.errors import KafkaError

COMMIT_S = 5.0
TICK_S = 0.5
RECORDS_OF_A_LOOK = 1024

Resolve = Callable[[Cluster, Sequence[TopicPartition]], Mapping[TopicPartition, int]]
"""The offsets of partitions: where those without a committed offset begin, or where reading ends."""


class GroupConsumer:
    """Reads as a member of a group. `member` has connections of its own; `note` gets a sentence for each rebalance."""

    def __init__(
        self,
        cluster: Cluster,
        member: GroupMember,
        starts: Resolve,
        ends: Resolve | None = None,
        *,
        uses_committed: bool = True,
        committed_only: bool = False,
        before_commit: Callable[[], None] = lambda: None,
        note: Callable[[str], None] = lambda _sentence: None,
        on_rebalance: Callable[[str, list[TopicPartition]], None] | None = None,
    ) -> None:
        self.cluster = cluster
        self.member = member
        self.starts = starts
        self.ends = ends
        self.uses_committed = uses_committed
        self.before_commit = before_commit
        self.note = note
        self.on_rebalance = self._say_rebalance if on_rebalance is None else on_rebalance
        self.reader = Reader(cluster, {}, committed_only=committed_only, on_note=note)
        self.read = 0
        self._processed: dict[TopicPartition, int] = {}
        self._committed: dict[TopicPartition, int] = {}
        self._commit_at = 0.0
        self._tick_at = 0.0

    def records(self, on_idle: Callable[[], None]) -> Iterator[tuple[TopicPartition, Record]]:
        """Yield records without end, or until the ends of all partitions of this member.

        `on_idle` is called before each wait and may raise to end it. Errors: KafkaError, NotFound, TimedOut.
        """
        while True:
            if self.member.must_join:
                self._rebalance(on_idle)
            yield from self._fetched()
            if self.member.must_join:
                continue
            if self.ends is not None and self.reader.is_done:
                return
            on_idle()
            self._look()
            self.reader.wait(WAIT_S)

    def _fetched(self) -> Iterator[tuple[TopicPartition, Record]]:
        """The records that have arrived, up to a rebalance."""
        for fetched in self.reader.poll(0.0):
            self.reader.current = fetched
            partition = fetched.partition
            for record in fetched.records():
                yield partition, record
                self.read += 1
                if self.read % RECORDS_OF_A_LOOK == 0:
                    self._look()
                    if self.member.must_join:
                        return
            self._processed[partition] = fetched.next_offset if fetched.end is None else min(
                fetched.next_offset, fetched.end
            )  # fmt: skip

    def processed(self, partition: TopicPartition, offset: int) -> None:
        """Everything before `offset` is processed."""
        self._processed[partition] = offset

    def close(self, commit: bool = True) -> None:
        """Commit the processed records, if wanted, and leave the group; failures are noted, not raised."""
        try:
            if commit and self._processed and not self.member.must_join:
                self._commit(CLOSE_S)
        except ClientError as error:
            self.note(f"not committed: {error}; these records may be read again")
        finally:
            self._leave()

    def _leave(self) -> None:
        try:
            self.member.leave()
        except (KafkaError, ClientError) as error:
            self.note(f"group {self.member.group}: {error}")

    # --- between records

    def _look(self) -> None:
        """Heartbeats and commits, when it is time."""
        now = monotonic()
        if now < self._tick_at:
            return
        self._tick_at = now + TICK_S
        self.member.tick()
        if not self.member.must_join and now >= self._commit_at:
            self._commit_at = now + COMMIT_S
            self._commit()

    def _commit(self, timeout_s: float | None = None) -> None:
        """Commit the offsets that have changed; a member that lost its partitions says so and joins again."""
        changed = {partition: at for partition, at in self._processed.items() if self._committed.get(partition) != at}
        if not changed:
            return
        self.before_commit()
        try:
            self.member.commit(changed, timeout_s)
        except KafkaError as error:
            self.note(f"not committed: {error}; these records may be read again")
            self.member.must_join = True
            return
        self._committed |= changed

    def _rebalance(self, on_idle: Callable[[], None]) -> None:
        """Give up all partitions and join: the eager protocol, as of `range` and `roundrobin`."""
        if self.reader.positions:
            self._commit()
            self.on_rebalance("revoked", list(self.reader.positions))
        self.reader.assign({})
        self._processed, self._committed = {}, {}
        while True:
            partitions = self.member.join(on_idle)
            starts = self._positions(partitions)
            if not self.member.must_join:
                break
        self.reader.assign(starts, None if self.ends is None else self.ends(self.cluster, partitions))
        self.on_rebalance("assigned", partitions)
        self._commit_at = monotonic() + COMMIT_S

    def _say_rebalance(self, verb: str, partitions: list[TopicPartition]) -> None:
        generation = f" (generation {self.member.generation})" if verb == "assigned" else ""
        self.note(f"group {self.member.group}: {_named(partitions)} {verb}{generation}")

    def _positions(self, partitions: Sequence[TopicPartition]) -> dict[TopicPartition, int]:
        """The offsets to begin at: committed offsets, else the ones of `starts`."""
        if not partitions:
            return {}
        committed = committed_offsets(self.cluster, self.member.group) if self.uses_committed else {}
        known = {partition: committed[partition] for partition in partitions if partition in committed}
        self._committed = dict(known)
        missing = [partition for partition in partitions if partition not in known]
        return known | dict(self.starts(self.cluster, missing)) if missing else known


def _named(partitions: Sequence[TopicPartition]) -> str:
    """`no partitions`, `t-0, t-1`, or `t-0, t-1 and 8 more`."""
    names = [f"{topic}-{index}" for topic, index in partitions]
    if not names:
        return "no partitions"
    return ", ".join(names) if len(names) <= 6 else f"{', '.join(names[:4])} and {len(names) - 4} more"
