"""Groups that change between the protocols while members work: each process uses one or the other (rule G4).

The checks are those of consumer groups, whatever the type of the group is at the moment.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.simulation.classic_member import ClassicMember
from tests.simulation.consumer_groups import ConsumerGroups
from tests.simulation.groups import IN

if TYPE_CHECKING:
    from tests.simulation.groups import Member
    from tests.simulation.process import Process


class Migration(ConsumerGroups):
    """A run of this kind."""

    has_static_members = False

    def _settings(self) -> dict[str, str]:
        return {**super()._settings(), "group.consumer.migration.policy": "bidirectional"}

    def new_member(self, process: Process, instance_id: str | None) -> Member:
        """A member of one of the two protocols, at random."""
        if self.world.random.random() < 0.5:
            return super().new_member(process, instance_id)
        return ClassicMember(process, self.ledger, IN, self.partitions, instance_id)
