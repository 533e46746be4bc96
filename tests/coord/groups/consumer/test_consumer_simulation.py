"""G3: members that join, leave, die and change subscriptions; topics that are created and deleted; lost requests.

After every step no two members hold the same partition; in the end, after the network has recovered, the group is
Stable and every partition has an owner. One seed is one run, `BARNABAS_EXAMPLES` sets how
many are tried, `BARNABAS_SEED` the first.
"""

from __future__ import annotations

from functools import partial
from random import Random

import pytest

from barnabas.coord.groups.consumer.group import ConsumerGroup
from barnabas.coord.groups.consumer.states import PREDECESSORS, ConsumerGroupState
from barnabas.coord.groups.modern.states import MEMBER_PREDECESSORS, MemberState
from barnabas.coord.groups.settings import GroupSettings
from barnabas.wire.errors import ErrorCode
from tests.coord.groups.cluster_driver import GroupTopics
from tests.coord.groups.consumer.consumer_driver import ConsumerDriver
from tests.coord.groups.consumer.wanderer import NAMES, ConsumerWanderer
from tests.coord.groups.modern.modern_client import last_records
from tests.support.volume import for_each_seed, seeds

SEEDS = seeds("BARNABAS_EXAMPLES", 15)


class Run:
    def __init__(self, seed):
        self.random = Random(seed)
        self.cluster = GroupTopics(t=5, u=3)
        interval_ms = self.random.choice([0, 1_000])
        settings = GroupSettings(consumer_assignment_interval_ms=interval_ms, consumer_session_timeout_ms=10_000)
        self.driver = ConsumerDriver(self.cluster, settings)
        self.clients = [
            ConsumerWanderer(self.driver, self.random, index) for index in range(self.random.randrange(1, 6))
        ]
        self.incarnations = dict.fromkeys(NAMES, 0)

    @property
    def group(self):
        group = self.driver.group()
        return group if isinstance(group, ConsumerGroup) else None

    def step(self):
        dice = self.random.random()
        states = {key: member.state for key, member in self.group.members.items()} if self.group else {}
        state_before = self.group.state if self.group else ConsumerGroupState.EMPTY
        if dice < 0.02:
            self.change_topics()
        elif dice < 0.03:
            self.driver.restart()
            states = {}
        elif dice < 0.04:
            self.driver.append_error = ErrorCode.NOT_ENOUGH_REPLICAS
            self.random.choice(self.clients).step()
            self.driver.append_error = None
        elif dice < 0.2:
            self.driver.advance(self.random.choice([0.1, 0.5, 2.0, 6.0]))
        else:
            self.random.choice(self.clients).step()
        self.check(states)
        state = self.group.state if self.group else state_before
        assert state is state_before or state_before in PREDECESSORS[state]

    def change_topics(self):
        name = self.random.choice(NAMES)
        topic = self.cluster.by_name(name)
        if topic is not None and self.random.random() < 0.4:
            del self.cluster.topics[name]
        elif topic is not None:
            self.cluster.topics[name] = topic._replace(partitions=topic.partitions + 1)
        else:
            self.incarnations[name] += 1
            self.cluster.create(name, self.random.randrange(1, 6), self.incarnations[name])
        self.driver.changed(name)

    def check(self, states_before):
        group = self.group
        if group is None:
            return
        assert group.epoch >= group.assignment_epoch
        owners = {}
        for member in group.members.values():
            for owned in (member.assigned, member.revoking):
                for topic_id, partitions in owned.items():
                    for partition in partitions:
                        assert (topic_id, partition) not in owners, "a partition has two owners"
                        owners[topic_id, partition] = member.member_id
            before = states_before.get(member.member_id, member.state)
            assert before is member.state or before in MEMBER_PREDECESSORS[member.state]
            assert (member.state is MemberState.UNREVOKED) or not member.revoking
        assert owners == {(key, index): who for key, held in group.owners.items() for index, who in held.items()}
        self.check_clients(group)

    def check_clients(self, group):
        """No two members of the group hold the same partition."""
        held = {}
        for client in self.clients:
            member = group.members.get(client.member_id)
            if member is None or not client.epoch:
                continue
            for partition in client.partitions:
                assert partition not in held, f"{partition} is held by {held[partition]} and {client.member_id}"
                held[partition] = client.member_id

    def heal(self):
        self.driver.advance(30.0)  # sessions of dead members have expired
        for client in self.clients:
            client.reset()
            client.choose()
        for _ in range(40):
            self.driver.advance(1.1)
            for client in self.clients:
                response = client.beat()
                if response.error_code:
                    client.reset()
                client.reconcile()
            self.check({})

    def check_settled(self):
        group = self.group
        assert group.state is ConsumerGroupState.STABLE, group
        expected = {
            (topic.topic_id, index)
            for topic in map(self.cluster.by_name, group.subscribed_topics())
            if topic is not None
            for index in range(topic.partitions)
        }
        held = [partition for client in self.clients for partition in client.partitions]
        assert sorted(held) == sorted(expected)
        loads = [len(client.partitions) for client in self.clients]
        assert sum(loads) == len(expected)


def test_no_partition_ever_has_two_owners_and_in_the_end_each_has_one():
    for_each_seed(SEEDS, each_has_one_owner, "BARNABAS_EXAMPLES")


def each_has_one_owner(seed):
    run = Run(seed)
    for _ in range(200):
        run.step()
    run.heal()
    run.check_settled()


@pytest.mark.parametrize("compacted", [False, True])
def test_the_log_gives_the_same_group(compacted):
    """A coordinator loaded from the log has the same durable state."""
    for_each_seed(SEEDS[: (len(SEEDS) + 2) // 3], partial(loaded_from_its_log, compacted), "BARNABAS_EXAMPLES")


def loaded_from_its_log(compacted, seed):
    run = Run(seed)
    for _ in range(100):
        run.step()
        live = run.group
        fresh = run.driver.fresh()
        for key, value in last_records(run.driver.log) if compacted else run.driver.log:
            fresh.replay(key, value, run.driver.at)
        loaded = fresh.groups.get("g")
        if live is None:
            assert loaded is None
            continue
        for name in ("epoch", "assignment_epoch", "members", "target", "owners", "regexes", "topic_counts"):
            assert getattr(loaded, name) == getattr(live, name), name
