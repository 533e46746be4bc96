"""KIP-1071: threads that join, leave, die and return; topics that are created, grow and are deleted; lost requests.

After every step no task runs on two members and no process has a task twice; loading the log gives the state of the
coordinator. In the end, after the network has recovered, every task runs and has its standbys.
One seed is one run, `BARNABAS_EXAMPLES` sets how many are tried, `BARNABAS_SEED` the first.
"""

from __future__ import annotations

from random import Random

from barnabas.coord.groups.modern.states import MEMBER_PREDECESSORS, MemberState
from barnabas.coord.groups.settings import GroupSettings
from barnabas.coord.groups.streams.group import StreamsGroup
from barnabas.coord.groups.streams.states import PREDECESSORS, StreamsGroupState
from barnabas.coord.groups.streams.tasks import Task, Tasks
from barnabas.wire.errors import ErrorCode
from tests.coord.groups.cluster_driver import GroupTopics
from tests.coord.groups.modern.modern_client import Wanderer, last_records
from tests.coord.groups.streams.streams_driver import Client, StreamsDriver, sent_topology, subtopology
from tests.support.volume import for_each_seed, seeds

SEEDS = seeds("BARNABAS_EXAMPLES", 15)
TOPOLOGY = sent_topology(
    subtopology("0", ["lines"], sinks=["words"]),
    subtopology("1", repartition=["words"], changelogs=["counts"]),
    subtopology("2", ["other"], changelogs=["state"]),
)


class StreamsWanderer(Wanderer, Client):
    """A client in a bad network. It takes its time to revoke tasks."""

    def __init__(self, driver, random, index):
        instance_id = self.wander(random, index)
        super().__init__(driver, self.next_id(), instance_id=instance_id, topology=TOPOLOGY)
        self.process_id = f"process{index // 2}"

    def surplus(self):
        return [
            (role, task)
            for role in Tasks._fields
            for task in sorted(getattr(self.owned, role) - getattr(self.target, role))
        ]

    def revoke(self, some):
        for role, task in some:
            self.owned = self.owned._replace(**{role: getattr(self.owned, role) - {task}})


class Run:
    def __init__(self, seed):
        self.random = Random(seed)
        self.cluster = GroupTopics(lines=4, other=2)
        self.standbys = self.random.choice([0, 0, 1])
        settings = GroupSettings(
            streams_assignment_interval_ms=self.random.choice([0, 1_000]),
            streams_initial_rebalance_delay_ms=self.random.choice([0, 3_000]),
            streams_session_timeout_ms=10_000,
            streams_num_standby_replicas=self.standbys,
        )
        self.driver = StreamsDriver(self.cluster, settings)
        self.clients = [
            StreamsWanderer(self.driver, self.random, index) for index in range(self.random.randrange(1, 7))
        ]

    @property
    def group(self):
        group = self.driver.group()
        return group if isinstance(group, StreamsGroup) else None

    def step(self):
        dice = self.random.random()
        group = self.group
        state = group.state if group else None
        members = {key: member.state for key, member in group.members.items()} if group else {}
        if dice < 0.02:
            self.change_topics()
        elif dice < 0.03:
            self.driver.restart()
            state, members = None, {}
        elif dice < 0.04:
            self.driver.append_error = ErrorCode.NOT_ENOUGH_REPLICAS
            self.random.choice(self.clients).step()
            self.driver.append_error = None
        elif dice < 0.1:
            self.driver.create_missing()
        elif dice < 0.2:
            self.driver.advance(self.random.choice([0.1, 0.5, 2.0, 6.0]))
            state = None  # several members may have been removed
        else:
            self.random.choice(self.clients).step()
        self.check(state, members)

    def change_topics(self):
        """They are created, deleted and grow; but not changelogs, which would have to be deleted then, as in Kafka."""
        name = self.random.choice(["lines", "other", "words", "counts", "state"])
        topic = self.cluster.by_name(name)
        if topic is not None and self.random.random() < 0.7:
            del self.cluster.topics[name]
        elif topic is None and name in ("lines", "other"):
            self.cluster.create(name, 3)
        elif topic is not None and name in ("lines", "other"):
            self.cluster.topics[name] = topic._replace(partitions=topic.partitions + 1)
        self.driver.changed(name)

    def check(self, state_before, states_before):
        group = self.group
        if group is None:
            return
        assert group.epoch >= group.assignment_epoch
        assert state_before in (None, group.state) or state_before in PREDECESSORS[group.state]
        runners, copies = {}, {}
        for member in group.members.values():
            for held in (member.assigned, member.revoking):
                for task in held.active:
                    assert task not in runners, "a task runs twice"
                    runners[task] = member.member_id
                for task in held.tasks.copies:
                    copies.setdefault(task, set()).add(member.member_id)
            before = states_before.get(member.member_id, member.state)
            assert before is member.state or before in MEMBER_PREDECESSORS[member.state]
            assert (member.state is MemberState.UNREVOKED) or not member.revoking
        assert (runners, copies) == (group.runners, group.copies)
        self.check_clients(group)

    def check_clients(self, group):
        """No task runs on two members of the group, and no process has a task twice."""
        running, in_process = {}, {}
        for client in self.clients:
            if client.member_id not in group.members or not client.epoch:
                continue
            for task in client.owned.active:
                assert task not in running, f"{task} runs on {running[task]} and {client.member_id}"
                running[task] = client.member_id
            for task in client.owned.active | client.owned.copies:
                others = in_process.setdefault((client.process_id, task), set())
                others.add(client.member_id)
                assert len(others) == 1, f"{task} is twice in {client.process_id}"

    def heal(self):
        self.driver.advance(30.0)  # sessions of dead members have expired
        self.cluster.topics.clear()
        self.cluster.create("lines", 4, 9)
        self.cluster.create("other", 2, 9)
        self.driver.changed("lines", "other", "words", "counts", "state")
        for client in self.clients:
            client.reset()
        for _ in range(40):
            self.driver.advance(1.1)
            for client in self.clients:
                if client.beat().error_code:
                    client.reset()
                client.reconcile()
            self.driver.create_missing()
            self.check(None, {})

    def check_settled(self):
        group = self.group
        assert group.state is StreamsGroupState.STABLE, group
        expected = {Task(name, index) for name, size in (("0", 4), ("1", 4), ("2", 2)) for index in range(size)}
        assert {task for client in self.clients for task in client.owned.active} == expected
        processes = {client.process_id for client in self.clients}
        standbys = [task for client in self.clients for task in client.owned.standby]
        assert len(standbys) == 6 * min(self.standbys, len(processes) - 1)

    def check_replay(self):
        """Loading the log, whole or compacted, gives the state of the coordinator."""
        before = self.group
        self.driver.log = last_records(self.driver.log)
        self.driver.restart()
        after = self.group
        for name in (
            "epoch",
            "assignment_epoch",
            "members",
            "target",
            "runners",
            "copies",
            "static_members",
            "topology",
        ):
            assert getattr(after, name) == getattr(before, name), name


def test_streams_groups_in_a_bad_network():
    for_each_seed(SEEDS, one_run, "BARNABAS_EXAMPLES")


def one_run(seed):
    run = Run(seed)
    for _ in range(400):
        run.step()
    if run.group is not None:
        run.check_replay()
    run.heal()
    run.check_settled()
    run.check_replay()
