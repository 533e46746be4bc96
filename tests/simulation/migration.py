"""Groups that change between the protocols while members work: each life of a process speaks one or the other (G4).

What holds of consumer groups holds of these, whatever their type is at the moment.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.simulation.classic_member import ClassicMember
from tests.simulation.consumer_groups import ConsumerGroups
from tests.simulation.groups import IN

if TYPE_CHECKING:
    from tests.simulation.process import Process


class Migration(ConsumerGroups):
    """A run of this kind."""

    has_static_members = False

    def _settings(self) -> dict[str, str]:
        return {**super()._settings(), "group.consumer.migration.policy": "bidirectional"}

    def start_member(self, process: Process, instance_id: str | None) -> None:
        """Give a process the work of a member, of either protocol."""
        if self.world.random.random() < 0.5:
            super().start_member(process, instance_id)
            return
        member = ClassicMember(process, self.ledger, IN, self.partitions, instance_id)
        process.member = member  # type: ignore[attr-defined]  # for who looks on
        process.spawn(self.work(process, member))
        process.spawn(member.beat())
