"""Classic groups: members that join, process records, commit, are killed or paused and join again.

In no generation has a partition two owners, or the group two leaders; offsets are never below acknowledged ones; a
commit of an old generation is refused. In half of the runs the members copy records exactly once, each with its own
transactional id, so that a new owner may only read offsets that no open transaction of the old one can change
(KIP-447). After all faults every record is processed, and the group does not rebalance any more (G1, G2, T11, T12).
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from tests.simulation.broker.log_checks import LogChecks
from tests.simulation.broker.setup import create_topic, visible_values
from tests.simulation.broker.world import ACTIVE_S, World
from tests.simulation.groups.clients import (
    BOTH,
    CLASSIC,
    CONSUMER,
    GROUP,
    IN,
    OUT,
    STILL_S,
    GroupClients,
    group_settings,
)
from tests.simulation.settings import COORDINATORS

if TYPE_CHECKING:
    from barnabas.coord.groups.coordinator import GroupCoordinator
    from tests.simulation.faults import Faults


class Groups(GroupClients):
    """A run of this kind."""

    protocol = CLASSIC

    def __init__(self, name: str, *, faults: Faults | None = None, is_verbose: bool = False) -> None:
        settings = {**COORDINATORS, **group_settings(self.protocol)}
        world = self.world = World(name, settings, faults, is_verbose=is_verbose)
        super().__init__(world, self.protocol)
        self.checks = LogChecks(world)

    def run(self) -> None:
        """Run from the first start of the broker to the last check."""
        world = self.world
        world.node.start()
        for topic in (IN, OUT):
            self.topic_ids[topic] = create_topic(world, topic, self.partitions)
        self.begin()
        world.plan_faults()
        world.run(ACTIVE_S, lambda: self.sources_are_done() and world.clock.now > 1015.0)
        world.settle(self.check_end)
        epoch = self.ledger.newest_epoch
        world.run(STILL_S)
        assert self.ledger.newest_epoch == epoch, "the group does not become stable"
        self.check_end()

    def check_end(self) -> None:
        """Check what must hold some time after all faults have stopped."""
        assert self.world.node.broker is not None, "the broker is down"
        self.checks.check_reloaded()
        self.check_records()

    def coordinator(self) -> GroupCoordinator | None:
        """The coordinator of the group, None while the broker is down."""
        broker = self.world.node.broker
        return None if broker is None else broker.group_coordinators.coordinator_of(GROUP)

    def log_end(self, partition: int) -> int:
        """The end of a partition of the input."""
        assert self.world.node.broker is not None
        return self.world.node.broker.partitions.get(IN, partition).log.log_end_offset

    def visible(self, topic: str) -> Counter[bytes]:
        """All values of a topic under read_committed."""
        return visible_values(self.world, topic, self.partitions, lambda _index, _found: None)


class ConsumerGroups(Groups):
    """Groups of the consumer protocol (rule G3, KIP-848).

    A partition has no new owner before the old one has revoked it or was removed from the group; the log never assigns
    it to two members; only commits of its owner are accepted.
    """

    protocol = CONSUMER


class Migration(Groups):
    """Groups that change between the protocols while members work: each process uses one or the other (rule G4).

    The checks are the same as for consumer groups, whatever type the group has at the moment.
    """

    protocol = BOTH
