"""Acts as the broker and the clients of the streams groups of a GroupCoordinator."""

from __future__ import annotations

from barnabas.coord.groups.context import ClientContext
from barnabas.coord.groups.settings import GroupSettings
from barnabas.coord.groups.streams.tasks import Task, Tasks, read_tasks, write_tasks
from barnabas.wire.messages.groups import streams_groups as s
from tests.coord.groups.cluster_driver import ClusterDriver, GroupTopics
from tests.coord.groups.modern.modern_client import ModernClient

V1 = ClientContext("client", "/127.0.0.1", 1)
QUICK = GroupSettings(streams_assignment_interval_ms=0, streams_initial_rebalance_delay_ms=0)


def topic(name, partitions=0, **configs):
    return s.StreamsGroupHeartbeatRequestTopicInfo(
        name=name,
        partitions=partitions,
        topic_configs=[s.StreamsGroupHeartbeatRequestKeyValue(key=key, value=value) for key, value in configs.items()],
    )


def subtopology(name, sources=(), *, repartition=(), sinks=(), changelogs=(), alike=()):
    """`alike` are copartition groups: (indexes into `sources`, indexes into `repartition`)."""
    return s.StreamsGroupHeartbeatRequestSubtopology(
        subtopology_id=name,
        source_topics=list(sources),
        repartition_source_topics=[topic(each) if isinstance(each, str) else each for each in repartition],
        repartition_sink_topics=list(sinks),
        state_changelog_topics=[topic(each) if isinstance(each, str) else each for each in changelogs],
        copartition_groups=[
            s.StreamsGroupHeartbeatRequestCopartitionGroup(
                source_topics=list(places), repartition_source_topics=list(internal)
            )
            for places, internal in alike
        ],
    )


def sent_topology(*subtopologies, epoch=0):
    return s.StreamsGroupHeartbeatRequestTopology(epoch=epoch, subtopologies=list(subtopologies))


def word_count():
    """The topology of the program in `compat/kafka_streams`, without its table."""
    return sent_topology(
        subtopology("0", ["lines"], sinks=["words"]),
        subtopology("1", repartition=["words"], changelogs=["counts"]),
    )


class StreamsDriver(ClusterDriver):
    def __init__(self, cluster=None, settings=QUICK, **config):
        super().__init__(cluster or GroupTopics(lines=3, words=3, counts=3), settings, **config)

    def create_missing(self, group_id="g"):
        """Create missing internal topics, as the broker does after a heartbeat; returns their names."""
        missing = self.coordinator.streams_groups.missing_topics(group_id)
        for each in missing:
            self.cluster.create(each.name, each.partitions)
        self.changed(*(each.name for each in missing))
        return [each.name for each in missing]

    def beat(self, member_id="m1", epoch=0, *, owned=None, topology=None, process_id=None, context=V1, **fields):
        """Send one StreamsGroupHeartbeat; returns the response. A join has the topology `word_count` by default."""
        if epoch == 0:
            fields.setdefault("rebalance_timeout_ms", 5_000)
            owned = owned if owned is not None else Tasks()
            topology = topology or word_count()
            process_id = process_id or f"process-of-{member_id}"
        if owned is not None:
            make = s.StreamsGroupHeartbeatRequestTaskIds
            fields.update(
                active_tasks=write_tasks(owned.active, make),
                standby_tasks=write_tasks(owned.standby, make),
                warmup_tasks=write_tasks(owned.warmup, make),
            )
        fields.setdefault("group_id", "g")
        request = s.StreamsGroupHeartbeatRequest(
            member_id=member_id, member_epoch=epoch, topology=topology, process_id=process_id, **fields
        )
        ticket = f"beat{next(self.tickets)}"
        self.handle(self.coordinator.streams_groups.heartbeat(request, ticket, context, self.at))
        return self.answers.pop(ticket)

    def describe(self, group_id="g", *, wants_description=False):
        return self.coordinator.streams_groups.describe(group_id, wants_description=wants_description)


def given(response):
    """The tasks in a response, or None."""
    if response.active_tasks is None:
        return None
    return Tasks(
        read_tasks(response.active_tasks), read_tasks(response.standby_tasks), read_tasks(response.warmup_tasks)
    )


def statuses(response):
    return {status.status_code for status in response.status}


def tasks(*names):
    """`tasks("0_1")` is partition 1 of subtopology 0."""
    return frozenset(Task(name.partition("_")[0], int(name.partition("_")[2])) for name in names)


class Client(ModernClient):
    """A member of a streams group."""

    def __init__(self, driver, member_id, *, process_id=None, instance_id=None, topology=None):
        self.driver, self.member_id, self.instance_id = driver, member_id, instance_id
        self.process_id = process_id or f"process-of-{member_id}"
        self.topology = topology or word_count()
        self.reset()

    def nothing(self):
        return Tasks()

    def request(self):
        """The fields of the next heartbeat."""
        fields = {"instance_id": self.instance_id, "owned": None}
        if self.epoch == 0:
            fields.update(topology=self.topology, process_id=self.process_id)
        if self.epoch == 0 or self.sends_all or self.owned != self.sent_owned:
            fields["owned"] = self.owned
        return fields

    def given(self, response):
        return given(response)

    def reconcile(self):
        """Revoke and take tasks by the last assignment."""
        if self.target is not None:
            self.owned = self.target


def settle(driver, *clients, rounds=12):
    """Send heartbeats until every member has its target assignment."""
    for _ in range(rounds):
        for client in clients:
            response = client.beat()
            assert not response.error_code, response
            client.reconcile()
        driver.create_missing()
        driver.advance(0.1)
