"""The leader of the metadata quorum, as far as this node knows, and the addresses of its controllers.

The observer learns the leader from `CurrentLeader` in the answers of the controllers; the channel to the controller
follows it. The epoch is never lowered (R25). While no leader is known, the addresses in
controller.quorum.bootstrap.servers, in controller.quorum.voters and of the voters in the metadata are asked one after
the other. Source: Kafka's `KafkaRaftClient`, `RaftControllerNodeProvider`.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Final, TypeAlias

from barnabas.broker.event_loop.guarded import call_guarded

if TYPE_CHECKING:
    from barnabas.wire.messages.records.raft_records import VotersRecord

logger = logging.getLogger("kafka.raft.KafkaRaftClient")

Address: TypeAlias = "tuple[str, int]"

NO_LEADER: Final = -1


class QuorumLeader:
    """The leader of the metadata quorum and its epoch."""

    def __init__(self, bootstrap: Sequence[Address], voters: Mapping[int, Address]) -> None:
        """`bootstrap` are addresses of controllers with unknown ids, `voters` addresses by id."""
        self.epoch = 0
        """The newest known epoch of a leader."""
        self.leader_id = NO_LEADER
        """The node that leads the epoch, `NO_LEADER` while it is not known."""
        self.on_change: list[Callable[[], None]] = []
        """Called when there is another leader, or none."""
        self._bootstrap = list(bootstrap)
        self._endpoints = dict(voters)
        self._next = 0

    def leader_address(self) -> Address | None:
        """The address of the leader, None while it is not known."""
        return self._endpoints.get(self.leader_id)

    def address(self) -> Address | None:
        """The address to ask for metadata: the leader's, else another controller's, changed by each `failed`."""
        leader = self.leader_address()
        if leader is not None:
            return leader
        candidates = self._candidates()
        return candidates[self._next % len(candidates)] if candidates else None

    def _candidates(self) -> list[Address]:
        return list(dict.fromkeys([*self._bootstrap, *self._endpoints.values()]))

    def failed(self) -> None:
        """The node at `address` cannot be reached, or leads no more: ask another one."""
        self._next += 1
        if self.leader_id != NO_LEADER:
            logger.info("Controller %d, the leader of epoch %d, does not answer", self.leader_id, self.epoch)
            self._set(NO_LEADER, self.epoch)

    def saw_epoch(self, epoch: int) -> None:
        """A batch of an epoch was seen in the log."""
        if epoch > self.epoch:
            self._set(NO_LEADER, epoch)

    def learned(self, leader_id: int, epoch: int, endpoints: Iterable[tuple[int, str, int]] = ()) -> bool:
        """A controller reports the leader and addresses of nodes; False if that is older than the known state."""
        for node_id, host, port in endpoints:
            if host and port:
                self._endpoints[node_id] = (host, port)
        if epoch < self.epoch:
            return False
        if epoch > self.epoch or (leader_id != NO_LEADER and leader_id != self.leader_id):
            self._set(max(leader_id, NO_LEADER), epoch)
        return True

    def voters(self, record: VotersRecord | None) -> None:
        """The voters in the metadata: their addresses are asked as well."""
        for voter in () if record is None else record.voters:
            for endpoint in voter.endpoints[:1]:
                self._endpoints[voter.voter_id] = (endpoint.host, endpoint.port)

    def _set(self, leader_id: int, epoch: int) -> None:
        if leader_id != NO_LEADER:
            logger.info("Controller %d leads the metadata quorum in epoch %d", leader_id, epoch)
        self.leader_id, self.epoch = leader_id, epoch
        for follower in self.on_change:
            call_guarded("A callback after a change of the controller", follower)
