"""Groups of the consumer protocol: the work of classic groups, shared out by the coordinator (G3; KIP-848).

A partition is nobody's before the one who had it has given it up or was put out of the group; the log never has it at
two members; a commit counts from the one who has the partition.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from barnabas.coord.groups.classic.group import ClassicGroup
from tests.simulation.consumer_member import ConsumerMember
from tests.simulation.group_ledger import ConsumerLedger
from tests.simulation.groups import GROUP, IN, Groups

if TYPE_CHECKING:
    from barnabas.coord.groups.consumer.group import ConsumerGroup
    from tests.simulation.faults import Faults
    from tests.simulation.process import Process


class ConsumerGroups(Groups):
    """A run of this kind."""

    def __init__(self, name: str, *, faults: Faults | None = None, is_told: bool = False) -> None:
        super().__init__(name, faults=faults, is_told=is_told)
        self.ledger: ConsumerLedger = ConsumerLedger(GROUP, self._is_member)

    def _settings(self) -> dict[str, str]:
        return {
            **super()._settings(),
            "group.consumer.min.session.timeout.ms": "6000",
            "group.consumer.session.timeout.ms": "6000",
            "group.consumer.min.heartbeat.interval.ms": "1000",
            "group.consumer.heartbeat.interval.ms": "2000",
            "group.consumer.assignment.interval.ms": "0",
            "group.consumer.min.assignment.interval.ms": "0",
        }

    def start_member(self, process: Process, instance_id: str | None) -> None:
        """Give a process the work of a member."""
        member = ConsumerMember(process, self.ledger, IN, self.topic_ids[IN], instance_id)
        process.member = member  # type: ignore[attr-defined]  # for who looks on
        process.spawn(self.work(process, member))
        process.spawn(member.beat())

    def _group(self) -> ClassicGroup | ConsumerGroup:
        broker = self.world.node.broker
        assert broker is not None
        group = broker.group_coordinators.of_group(GROUP).groups.get(GROUP)
        assert group is not None, "there is no group"
        return group

    def _is_member(self, member_id: str) -> bool | None:
        """Whether the group has this member now; None while there is no broker."""
        broker = self.world.node.broker
        if broker is None:
            return None
        group = broker.group_coordinators.of_group(GROUP).groups.get(GROUP)
        return group is not None and member_id in group.members

    def check_group(self) -> None:
        """Its members are those that live, and have all partitions."""
        group = self._group()
        epoch = group.generation if isinstance(group, ClassicGroup) else group.epoch
        assert str(group.state) == "Stable", f"the group is stuck: {vars(group)}"
        members = [
            process.member
            for process in self._members()
            if not (
                getattr(process.member, "is_kept_out", False) and process.member.instance_id in group.static_members
            )
        ]
        assert all(one.is_stable and one.epoch == epoch for one in members), "a member is not there yet"
        living = {one.member_id for one in members}
        assert set(group.members) == living, f"the members are {list(group.members)}, and {living} live"
        owned = sorted(index for process in self._members() for index in process.member.assigned)
        assert owned == list(range(self.partitions)), f"the members have {owned}"
