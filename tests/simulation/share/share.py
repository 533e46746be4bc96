"""Share groups: members that acquire records, acknowledge most of them, and are killed with some acquired (rule G5).

The checks during the run are in `ledger`. In the end every record is accepted, rejected, or archived after as
many deliveries as the limit, and none was skipped.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from barnabas.coord.share_partitions.states import RecordState
from barnabas.coord.share_state.key import SharePartitionKey
from tests.simulation.broker.log_checks import LogChecks
from tests.simulation.broker.setup import ask_directly, create_topic
from tests.simulation.broker.world import ACTIVE_S, World
from tests.simulation.settings import COORDINATORS
from tests.simulation.share.clients import GROUP, QUEUE, SETTINGS, ShareClients, group_config
from tests.simulation.share.ledger import Locked, ShareLedger

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.simulation.faults import Faults


class Share(ShareClients):
    """A run of this kind."""

    def __init__(self, name: str, *, faults: Faults | None = None, is_verbose: bool = False) -> None:
        world = self.world = World(name, {**COORDINATORS, **SETTINGS}, faults, is_verbose=is_verbose)
        super().__init__(world)
        self.ledger = ShareLedger(world.clock, self.limit)
        world.network.observer = self.ledger
        world.node.at_crash.append(self.ledger.broker_crashes)
        world.node.after_turn.append(self._report_locks)
        self.checks = LogChecks(world)

    def run(self) -> None:
        """Run from the first start of the broker to the last check."""
        world = self.world
        world.node.start()
        self.topic_id = create_topic(world, QUEUE, self.partitions)
        for name, value in self.configs().items():
            self._set_config(name, value)
        self.begin()
        world.plan_faults()
        world.run(ACTIVE_S, lambda: self.sources_are_done() and world.clock.now > 1012.0)
        world.settle(self.check_end, 3.0)

    def _set_config(self, name: str, value: str) -> None:
        response = ask_directly(self.world, group_config(name, value), 1)
        assert response.responses[0].error_code == 0, response

    def check_end(self) -> None:
        """Check what must hold some time after all faults have stopped."""
        assert self.sources_are_done(), "a source is not done"
        self.checks.check_reloaded()
        unfinished = self._unfinished()
        assert not unfinished, f"not finished: {unfinished}"
        broker = self.world.node.broker
        assert broker is not None
        for partition in range(self.partitions):
            end = broker.partitions.get(QUEUE, partition).log.log_end_offset
            skipped = self.checks.skipped(QUEUE, partition, is_read_committed=self.is_read_committed)
            expected = set(range(end)) - skipped
            lost = [offset for offset in expected if not self.ledger.is_accounted_for((partition, offset))]
            assert not lost, f"archived without a reason: {lost} of partition {partition}"

    def _unfinished(self) -> list[str]:
        """Partitions with records that are not finished."""
        broker = self.world.node.broker
        if broker is None:
            return ["the broker is down"]
        unfinished = []
        for partition in range(self.partitions):
            end = broker.partitions.get(QUEUE, partition).log.log_end_offset
            state = broker.share_partitions.find(SharePartitionKey(GROUP, self.topic_id, partition))
            if end and (state is None or state.state is None or state.state.start_offset < end):
                unfinished.append(f"{partition}: {end} records, {state and state.state and state.state.runs()}")
        return unfinished

    def _report_locks(self) -> None:
        """Report locked records to the ledger while responses are withheld: some of these are never sent."""
        if self.ledger.has_withheld:
            self.ledger.turn_ends(self._locked())

    def _locked(self) -> Iterator[Locked]:
        broker = self.world.node.broker
        assert broker is not None
        for partition in range(self.partitions):
            live = broker.share_partitions.find(SharePartitionKey(GROUP, self.topic_id, partition))
            for run in live.state.runs() if live is not None and live.state is not None else ():
                if run.state is RecordState.ACQUIRED:
                    for offset in range(run.first, run.last + 1):
                        yield Locked((partition, offset), run.member_id, run.delivery_count)
