"""Groups of the consumer protocol (rule G3, KIP-848).

A partition has no new owner before the old one has revoked it or was removed from the group; the log never assigns it
to two members; only commits of its owner are accepted.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from barnabas.coord.groups.classic.group import ClassicGroup
from tests.simulation.consumer_member import ConsumerMember
from tests.simulation.group_ledger import ConsumerLedger
from tests.simulation.groups import GROUP, IN, Groups
from tests.simulation.settings import short_sessions

if TYPE_CHECKING:
    from barnabas.coord.groups.consumer.group import ConsumerGroup
    from tests.simulation.faults import Faults
    from tests.simulation.groups import Member
    from tests.simulation.process import Process


class ConsumerGroups(Groups):
    """A run of this kind."""

    def __init__(self, name: str, *, faults: Faults | None = None, is_verbose: bool = False) -> None:
        super().__init__(name, faults=faults, is_verbose=is_verbose)
        self.ledger: ConsumerLedger = ConsumerLedger(GROUP, self._is_member)

    def _settings(self) -> dict[str, str]:
        return {**super()._settings(), **short_sessions("consumer")}

    def new_member(self, process: Process, instance_id: str | None) -> Member:
        """A member of the consumer protocol."""
        return ConsumerMember(process, self.ledger, IN, self.topic_ids[IN], instance_id)

    def _group(self) -> ClassicGroup | ConsumerGroup:
        broker = self.world.node.broker
        assert broker is not None
        group = broker.group_coordinators.coordinator_of(GROUP).groups.get(GROUP)
        assert group is not None, "there is no group"
        return group

    def _is_member(self, member_id: str) -> bool | None:
        """Whether the group has this member now; None while the broker is down."""
        broker = self.world.node.broker
        if broker is None:
            return None
        group = broker.group_coordinators.coordinator_of(GROUP).groups.get(GROUP)
        return group is not None and member_id in group.members

    def check_group(self) -> None:
        """Check that the group is stable, and that its members are the running processes and have all partitions."""
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
        assert all(one.is_stable and one.epoch == epoch for one in members), "a member has not reached the group epoch"
        living = {one.member_id for one in members}
        assert set(group.members) == living, f"the members are {list(group.members)}, the running ones {living}"
        owned = sorted(index for process in self._members() for index in process.member.assigned)
        assert owned == list(range(self.partitions)), f"the members have partitions {owned}"
