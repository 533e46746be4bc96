"""KIP-932: random runs of share groups.

After every step loading the log gives the state of the coordinator, and members have only partitions with state; in the
end every partition is read. `BARNABAS_SEEDS` sets how many are run, `BARNABAS_SEED` the first.
"""

from __future__ import annotations

import random

from barnabas.coord.groups.settings import GroupSettings
from barnabas.coord.groups.share.states import KEPT_PREDECESSORS, PREDECESSORS, KeptState, ShareGroupState
from barnabas.wire.errors import ErrorCode as E
from tests.coord.groups.cluster_driver import GroupTopics
from tests.coord.groups.share.share_group_driver import ShareDriver, facts, given
from tests.support.volume import for_each_seed, seeds

SEEDS = seeds("BARNABAS_SEEDS", 5)
STEPS = 120


class ShareGroupWorld:
    """One coordinator, its topics, and members that may be slow, die or return."""

    def __init__(self, seed):
        self.dice = random.Random(seed)
        interval_ms = self.dice.choice([0, 1_000])
        settings = GroupSettings(share_assignment_interval_ms=interval_ms, share_session_timeout_ms=20_000)
        self.driver = ShareDriver(GroupTopics(a=2, b=1), settings, share_max_size=5)
        self.members = {}
        self.unheard = set()
        """Members whose last heartbeat failed."""
        self.incarnation = 0
        self.seen = None
        """The group's state after the last step, and by partition what was kept of it."""

    def step(self):
        often = [self.beat] * 3 + [self.join] * 2
        seldom = [self.leave, self.die, self.wait, self.change_topics, self.restart, self.trouble, self.administer]
        operation = self.dice.choice(often + seldom)
        operation()
        self.check()
        self.check_steps()

    # ---- events

    def join(self):
        member_id = f"m{self.dice.randrange(7)}"
        topics = self.dice.sample(["a", "b", "c"], self.dice.randrange(1, 4))
        self.take(member_id, self.driver.beat(member_id, 0, topics), topics)

    def beat(self):
        if not self.members:
            return
        member_id = self.dice.choice(sorted(self.members))
        epoch, topics, _ = self.members[member_id]
        subscribed = list(topics) if member_id in self.unheard else None
        if self.dice.random() < 0.2:
            subscribed = topics = self.dice.sample(["a", "b", "c"], self.dice.randrange(1, 4))
        self.take(member_id, self.driver.beat(member_id, epoch, subscribed), topics)

    def take(self, member_id, response, topics):
        if response.error_code in (E.FENCED_MEMBER_EPOCH, E.UNKNOWN_MEMBER_ID, E.GROUP_ID_NOT_FOUND):
            self.members.pop(member_id, None)
        elif response.error_code:
            if member_id in self.members:  # as clients do: after an error all fields are sent again
                epoch, _, has = self.members[member_id]
                self.members[member_id] = (epoch, topics, has)
                self.unheard.add(member_id)
        else:
            self.unheard.discard(member_id)
            has = given(self.driver, response) if response.assignment is not None else self.members[member_id][2]
            self.members[member_id] = (response.member_epoch, topics, has)

    def leave(self):
        if self.members:
            member_id = self.dice.choice(sorted(self.members))
            self.driver.beat(member_id, -1)
            del self.members[member_id]

    def die(self):
        if self.members:
            del self.members[self.dice.choice(sorted(self.members))]

    def wait(self):
        self.driver.advance(self.dice.choice([0.3, 1, 5, 25]))

    def change_topics(self):
        name = self.dice.choice(["a", "b", "c"])
        cluster = self.driver.cluster
        topic = cluster.by_name(name)
        if topic is None:
            self.incarnation += 1
            cluster.create(name, self.dice.randrange(1, 4), incarnation=self.incarnation)
        elif self.dice.random() < 0.3:
            del cluster.topics[name]
        else:
            cluster.topics[name] = topic._replace(partitions=topic.partitions + 1)
        self.driver.changed(name)

    def restart(self):
        self.driver.restart()

    def trouble(self):
        """The share coordinator, or the log, fails for one request."""
        if self.dice.random() < 0.5:
            self.driver.task_error = E.COORDINATOR_NOT_AVAILABLE
        else:
            self.driver.append_error = E.NOT_ENOUGH_REPLICAS
        self.dice.choice([self.join, self.beat])()
        self.driver.task_error = self.driver.append_error = None

    def administer(self):
        operation = self.dice.randrange(3)
        if operation == 0:
            self.driver.alter({0: self.dice.randrange(9)}, topic="a")
        elif operation == 1:
            self.driver.delete_offsets("a", "b")
        else:
            self.driver.delete_group()

    # ---- invariants

    def check(self):
        driver = self.driver
        group = driver.group()
        loaded = driver.fresh()
        for key, value in driver.log:
            loaded.replay(key, value, driver.at)
        assert set(loaded.groups) == set(driver.coordinator.groups)
        if group is None:
            return
        assert facts(loaded.groups["g"]) == facts(group)
        assert len(group.members) <= 5
        assert group.target_epoch <= group.epoch
        known = group.state_partitions.initialized
        for member in group.members.values():
            assert member.previous_epoch <= member.epoch <= group.epoch
            for topic_id, partitions in member.assigned.items():
                topic = driver.cluster.by_id(topic_id)
                if topic is not None:
                    assert partitions <= known[topic_id], "only what state is kept of is given out"
        for topic_id, partitions in known.items():
            for partition in partitions:
                assert ("g", topic_id, partition) in driver.states

    def check_steps(self):
        """Every transition is in the tables of states; one request may be two transitions."""
        group = self.driver.group()
        state = ShareGroupState.DEAD if group is None else group.state
        states = {} if group is None else kept_states(group.state_partitions)
        if self.seen is not None:
            before, kept_before = self.seen
            assert state is before or before is ShareGroupState.DEAD or before in reachable(PREDECESSORS, state)
            for place in states.keys() | kept_before.keys():
                now = states.get(place, KeptState.NONE)
                then = kept_before.get(place, KeptState.NONE)
                assert now is then or then in reachable(KEPT_PREDECESSORS, now)
        self.seen = state, states

    def settle(self):
        """Live members continue; the sessions of the others expire."""
        for _ in range(6):
            self.driver.advance(5)
            for member_id in sorted(self.members):
                epoch, topics, _ = self.members[member_id]
                subscribed = topics if member_id in self.unheard else None
                self.take(member_id, self.driver.beat(member_id, epoch, subscribed), topics)
            self.check()

    def check_settled(self):
        group = self.driver.group()
        alive = set() if group is None else set(group.members)
        assert alive == set(self.members)
        cluster = self.driver.cluster
        expected = {
            (topic.name, index)
            for name in {name for _, topics, _ in self.members.values() for name in topics}
            if (topic := cluster.by_name(name)) is not None
            for index in range(topic.partitions)
        }
        has = [parts for _, _, parts in self.members.values()]
        assert set().union(*has) == expected if has else True
        for _, topics, parts in self.members.values():
            assert {name for name, _ in parts} <= set(topics)


def reachable(predecessors, state):
    """The states from which one or two steps lead to `state`: a request is answered after both."""
    near = predecessors[state]
    return near.union(*(predecessors[near_state] for near_state in near))


def kept_states(partitions):
    """By topic id and partition (-1: a topic whose state is being deleted) the state by the group's record."""
    states = {(topic_id, -1): KeptState.DELETING for topic_id in partitions.deleting}
    for state, listed in (
        (KeptState.INITIALIZED, partitions.initialized),
        (KeptState.INITIALIZING, partitions.initializing),
    ):
        states.update({(topic_id, index): state for topic_id, indexes in listed.items() for index in indexes})
    return states


def test_random_runs():
    for_each_seed(SEEDS, one_run, "BARNABAS_SEEDS")


def one_run(seed):
    world = ShareGroupWorld(seed)
    for _ in range(STEPS):
        world.step()
    world.settle()
    world.check_settled()


def test_the_tables_know_every_state():
    assert set(PREDECESSORS) == set(ShareGroupState)
    assert set(KEPT_PREDECESSORS) == set(KeptState)
