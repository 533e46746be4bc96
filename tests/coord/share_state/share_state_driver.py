"""Acts as the broker of a ShareCoordinator, with a log that can be pruned."""

from __future__ import annotations

from barnabas.coord.share_state.config import ShareStateConfig
from barnabas.coord.share_state.coordinator import ShareCoordinator
from barnabas.coord.share_state.key import SharePartitionKey
from barnabas.wire.messages.groups.share_state import (
    InitializeShareGroupStateRequestPartitionData,
    ReadShareGroupStateRequestPartitionData,
    WriteShareGroupStateRequestPartitionData,
    WriteShareGroupStateRequestStateBatch,
)
from tests.coord.coordinator_driver import CoordinatorDriver

TOPIC = bytes(15) + b"\x07"
KEY = SharePartitionKey("g", TOPIC, 0)


def key(partition=0, group="g", topic=TOPIC):
    return SharePartitionKey(group, topic, partition)


class Driver(CoordinatorDriver):
    def __init__(self, **config):
        super().__init__()
        self.config = ShareStateConfig(**config)
        self.log = {}
        self.end = 0
        self.topics = {TOPIC: 4}
        self.coordinator = self.fresh()
        self.handle(self.coordinator.loaded(self.at))

    def fresh(self):
        return ShareCoordinator(self.config, lambda topic_id: self.topics.get(topic_id, 0))

    def append(self, record_key, value):
        self.log[self.end] = (record_key, value)
        self.coordinator.replay(record_key, value, self.at, self.end)
        self.end += 1

    def handle(self, result):
        applied = super().handle(result)
        prune_to = getattr(applied, "prune_to", None)
        if prune_to is not None:
            self.log = {offset: record for offset, record in self.log.items() if offset >= prune_to}
        return applied

    def loaded_again(self):
        """A new coordinator, loaded from the log."""
        coordinator = self.fresh()
        for offset, (record_key, value) in self.log.items():
            coordinator.replay(record_key, value, self.at, offset)
        return coordinator

    def restart(self):
        self.coordinator = self.loaded_again()
        self.handle(self.coordinator.loaded(self.at))

    def state(self, share_key=KEY):
        return self.coordinator.states.get(share_key)

    def _send(self, event):
        ticket = next(self.tickets)
        self.handle(event(ticket))
        return self.answers[ticket]

    # ---- requests; each returns the partition's response

    def initialize(self, share_key=KEY, state_epoch=0, start_offset=0):
        request = InitializeShareGroupStateRequestPartitionData(
            partition=share_key.partition, state_epoch=state_epoch, start_offset=start_offset
        )
        return self._send(lambda ticket: self.coordinator.initialize(share_key, request, ticket, self.at))

    def write(self, *batches, share_key=KEY, state_epoch=0, leader_epoch=0, start_offset=0, complete=-1):
        request = WriteShareGroupStateRequestPartitionData(
            partition=share_key.partition,
            state_epoch=state_epoch,
            leader_epoch=leader_epoch,
            start_offset=start_offset,
            delivery_complete_count=complete,
            state_batches=[
                WriteShareGroupStateRequestStateBatch(
                    first_offset=first, last_offset=last, delivery_state=state, delivery_count=deliveries
                )
                for first, last, state, deliveries in batches
            ],
        )
        return self._send(lambda ticket: self.coordinator.write(share_key, request, ticket, self.at))

    def read(self, share_key=KEY, leader_epoch=0):
        request = ReadShareGroupStateRequestPartitionData(partition=share_key.partition, leader_epoch=leader_epoch)
        return self._send(lambda ticket: self.coordinator.read(share_key, request, ticket, self.at))

    def summary(self, share_key=KEY):
        return self._send(lambda ticket: self.coordinator.read_summary(share_key, ticket))

    def delete(self, share_key=KEY):
        return self._send(lambda ticket: self.coordinator.delete(share_key, ticket))


def facts(state, *, with_fence=True):
    """The attributes of a state, for comparison."""
    names = [name for name in type(state).__slots__ if with_fence or name != "leader_epoch_fence"]
    return {name: getattr(state, name) for name in names}
