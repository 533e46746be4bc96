"""Acts as the broker, the share coordinator and the members of the share groups of a GroupCoordinator.

Tasks are run immediately, or kept in `driver.tasks` until `run_task`; with `driver.task_error` they fail.
"""

from __future__ import annotations

from barnabas.coord.groups.context import ClientContext
from barnabas.coord.groups.settings import GroupSettings
from barnabas.coord.groups.share.tasks import InitializeStates
from barnabas.wire.messages.groups import share_groups as s
from tests.coord.groups.cluster_driver import ClusterDriver, GroupTopics

V1 = ClientContext("client", "/127.0.0.1", 1)


class ShareDriver(ClusterDriver):
    def __init__(self, cluster=None, settings=None, **config):
        self.states = {}
        self.tasks = []
        self.is_holding = False
        self.task_error = None
        settings = settings or GroupSettings(share_assignment_interval_ms=0)
        super().__init__(cluster or GroupTopics(t=4), settings, **config)

    def handle(self, result):
        super().handle(result)
        failed = self.append_error is not None and bool(result.records)
        if not failed and getattr(result, "task", None) is not None:
            self.tasks.append(result)
            if not self.is_holding:
                self.run_task()
        for parked in () if failed else getattr(result, "resumed", ()):
            self.handle(self.coordinator.share_groups.heartbeat(*parked, self.at))

    def run_task(self):
        """Run the oldest task, as the share coordinator would, and report its outcome."""
        result = self.tasks.pop(0)
        task = result.task
        failures = {}
        for topic_id, partitions in task.partitions.items():
            for partition in partitions:
                about = (task.group_id, topic_id, partition)
                if self.task_error is not None:
                    failures.setdefault(topic_id, {})[partition] = self.task_error
                elif isinstance(task, InitializeStates):
                    self.states[about] = (task.state_epoch, partitions[partition])
                else:
                    self.states.pop(about, None)
        self.handle(self.coordinator.share_groups.task_ended(result, failures, self.at))

    # ---- requests

    def send(self, member_id="m1", epoch=0, topics=None, *, group_id="g", context=V1, rack_id=None):
        """Send one ShareGroupHeartbeat; returns its ticket."""
        request = s.ShareGroupHeartbeatRequest(
            group_id=group_id, member_id=member_id, member_epoch=epoch, subscribed_topic_names=topics, rack_id=rack_id
        )
        ticket = f"beat{next(self.tickets)}"
        self.handle(self.coordinator.share_groups.heartbeat(request, ticket, context, self.at))
        return ticket

    def beat(self, *arguments, **fields):
        """Send one ShareGroupHeartbeat; returns the response."""
        return self.answers.pop(self.send(*arguments, **fields))

    def join(self, member_id="m1", *topics, **fields):
        """Join a member; returns the response."""
        return self.beat(member_id, 0, list(topics) or ["t"], **fields)

    def alter(self, offsets, *, topic="t", group_id="g"):
        partitions = [
            s.AlterShareGroupOffsetsRequestPartition(partition_index=index, start_offset=offset)
            for index, offset in offsets.items()
        ]
        requested = s.AlterShareGroupOffsetsRequestTopic(topic_name=topic, partitions=partitions)
        request = s.AlterShareGroupOffsetsRequest(group_id=group_id, topics=[requested])
        ticket = f"alter{next(self.tickets)}"
        self.handle(self.coordinator.share_groups.alter_offsets(request, ticket, self.at))
        return self.answers.get(ticket)

    def delete_offsets(self, *topics, group_id="g"):
        requested = [s.DeleteShareGroupOffsetsRequestTopic(topic_name=name) for name in topics]
        request = s.DeleteShareGroupOffsetsRequest(group_id=group_id, topics=requested)
        ticket = f"delete{next(self.tickets)}"
        self.handle(self.coordinator.share_groups.delete_offsets(request, ticket))
        return self.answers.get(ticket)

    def delete_group(self, group_id="g"):
        ticket = f"delete{next(self.tickets)}"
        self.handle(self.coordinator.delete_group(group_id, ticket))
        return self.answers.get(ticket)


def given(driver, response):
    """The assignment in a response: {(topic, partition)}, without deleted topics; or None."""
    if response.assignment is None:
        return None
    entries = [(driver.cluster.by_id(entry.topic_id), entry) for entry in response.assignment.topic_partitions]
    return {(topic.name, index) for topic, entry in entries if topic is not None for index in entry.partitions}


def facts(group):
    """The durable state of a group, to compare."""
    return (
        group.group_id,
        group.epoch,
        group.metadata_hash,
        group.members,
        group.target_epoch,
        group.target_timestamp_ms,
        group.target,
        group.state_partitions,
    )
