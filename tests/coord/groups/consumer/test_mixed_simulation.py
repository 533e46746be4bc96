"""G4: members of both protocols in a group that changes its type, with lost responses, crashes and restarts.

After every step no two members of the group hold the same partition; in the end, after the network has recovered, the
group is Stable, whatever its type, and every partition has an owner. One seed is one run, `BARNABAS_EXAMPLES` sets how
many are tried, `BARNABAS_SEED` the first.
"""

from __future__ import annotations

from random import Random

from barnabas.coord.groups.classic.group import ClassicGroup
from barnabas.coord.groups.classic.states import GroupState
from barnabas.coord.groups.consumer.group import ConsumerGroup
from barnabas.coord.groups.consumer.states import ConsumerGroupState
from barnabas.coord.groups.settings import GroupSettings
from barnabas.wire.errors import ErrorCode
from barnabas.wire.messages.groups.consumer_protocol import ConsumerProtocolSubscription
from tests.coord.groups.cluster_driver import GroupTopics
from tests.coord.groups.consumer.consumer_driver import ConsumerDriver, given
from tests.coord.groups.consumer.migrating import EAGER, assignment, classic_group, new_driver, read, subscription
from tests.coord.groups.consumer.wanderer import ConsumerWanderer
from tests.support.volume import for_each_seed, seeds

SEEDS = seeds("BARNABAS_EXAMPLES", 10)
NAMES = ("t", "u")


class MixedWanderer(ConsumerWanderer):
    """A member of the consumer protocol."""

    def choose(self):
        super().choose()
        self.topics = self.random.sample(NAMES, self.random.randrange(1, 3))
        self.regex = self.random.choice([None, None, "t|u", ""])
        self.assignor = None


class ClassicWanderer:
    """A member of the classic protocol, eager: it revokes all partitions before it joins."""

    def __init__(self, driver, random, index):
        self.driver, self.random, self.index = driver, random, index
        self.instance_id = f"c{index}" if index % 2 else None
        self.choose()
        self.reset()

    def choose(self):
        self.topics = self.random.sample(NAMES, self.random.randrange(1, 3))

    def reset(self):
        self.member_id, self.generation, self.owned, self.ticket, self.leads = "", -1, {}, None, None
        self.phase = "join"

    vanish = reset

    @property
    def epoch(self):
        return self.generation if self.phase == "stable" else 0

    @property
    def partitions(self):
        return {(key, index) for key, indexes in self.owned.items() for index in indexes}

    def leave(self):
        if self.member_id:
            self.driver.leave((self.member_id, self.instance_id))
        self.reset()

    def step(self):
        dice = self.random.random()
        if dice < 0.02:
            self.vanish()
        elif dice < 0.04:
            self.leave()
        elif dice < 0.06 and self.phase == "stable":
            self.choose()
            self.phase = "join"
        else:
            self.go_on(loses=self.random.random() < 0.1)

    def go_on(self, *, loses=False):
        """Send the next request; if the response is lost, start again with JoinGroup."""
        if self.phase == "join":
            self.owned = {}
            options = {"names": (EAGER,), "metadata": subscription(self.topics), "instance_id": self.instance_id}
            self.ticket = self.driver.join(self.member_id, session_ms=10_000, rebalance_ms=6_000, **options)
            self.phase = "joining"
        elif self.phase == "sync":
            self.ticket = self.driver.sync(self.member_id, self.generation, self.shares(), instance_id=self.instance_id)
            self.phase = "syncing"
        elif self.phase == "stable":
            self.fail(self.driver.heartbeat(self.member_id, self.generation, instance_id=self.instance_id))
        if self.ticket in self.driver.answers:
            response = self.driver.answers.pop(self.ticket)
            self.ticket = None
            if loses:
                self.phase = "join"
            else:
                self.take(response)

    def take(self, response):
        if response.error_code:
            if response.error_code == ErrorCode.MEMBER_ID_REQUIRED:
                self.member_id = response.member_id
            self.fail(response.error_code)
        elif self.phase == "joining":
            self.member_id, self.generation, self.phase = response.member_id, response.generation_id, "sync"
            self.leads = response.members if response.leader == response.member_id else None
        else:
            known = self.driver.cluster.by_name
            self.owned = {known(topic).topic_id: indexes for topic, indexes in read(response.assignment).items()}
            self.phase = "stable"

    def fail(self, error):
        if error == ErrorCode.NONE:
            return
        if error in (ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.ILLEGAL_GENERATION, ErrorCode.FENCED_INSTANCE_ID):
            self.reset()
        else:
            retries = (
                ErrorCode.REBALANCE_IN_PROGRESS,
                ErrorCode.MEMBER_ID_REQUIRED,
                ErrorCode.COORDINATOR_NOT_AVAILABLE,
            )
            assert error in retries, ErrorCode(error)
            self.phase = "join"

    def shares(self):
        """The assignment by a leader: each partition to a subscriber of its topic, in turns."""
        shares = {member.member_id: {} for member in self.leads or ()}
        for name in NAMES:
            readers = [member.member_id for member in self.leads or () if name in _topics(member.metadata)]
            for index in range(self.driver.cluster.by_name(name).partitions if readers else 0):
                shares[readers[index % len(readers)]].setdefault(name, []).append(index)
        return {member_id: assignment(partitions) for member_id, partitions in shares.items()}


def _generation(group, member_id):
    return group.generation if isinstance(group, ClassicGroup) else group.members[member_id].epoch


def _topics(metadata):
    return ConsumerProtocolSubscription.decode(bytes(metadata)[2:], 3).topics


class Run:
    def __init__(self, seed):
        self.random = random = Random(seed)
        self.cluster = GroupTopics(t=4, u=3)
        settings = GroupSettings(
            consumer_assignment_interval_ms=random.choice([0, 1_000]), consumer_session_timeout_ms=10_000
        )
        self.driver = ConsumerDriver(self.cluster, settings)
        self.consumers = [MixedWanderer(self.driver, random, index) for index in range(random.randrange(1, 4))]
        self.classics = [ClassicWanderer(self.driver, random, index) for index in range(random.randrange(1, 4))]

    @property
    def clients(self):
        return [*self.consumers, *self.classics]

    def step(self):
        dice = self.random.random()
        if dice < 0.01:
            topic = self.cluster.by_name(self.random.choice(NAMES))
            self.cluster.topics[topic.name] = topic._replace(partitions=topic.partitions + 1)
            self.driver.changed(topic.name)
        elif dice < 0.02:
            self.driver.restart()
        elif dice < 0.03:
            self.driver.append_error = ErrorCode.NOT_ENOUGH_REPLICAS
            self.random.choice(self.clients).step()
            self.driver.append_error = None
        elif dice < 0.05:  # all members of one protocol leave, and the group may change its type
            for client in self.random.choice([self.consumers, self.classics]):
                client.leave()
        elif dice < 0.2:
            self.driver.advance(self.random.choice([0.1, 0.5, 2.0, 4.0]))
        else:
            self.random.choice(self.clients).step()
        self.check()

    def check(self):
        group = self.driver.group()
        held = {}
        for client in self.clients:
            if group is None or client.member_id not in group.members or not client.epoch:
                continue
            if isinstance(client, ClassicWanderer) and client.epoch != _generation(group, client.member_id):
                continue  # a static member that has missed a rebalance: its next request is refused
            for partition in client.partitions:
                assert partition not in held, f"{partition} is held by {held[partition]} and {client.member_id}"
                held[partition] = client.member_id

    def heal(self, clients):
        for client in self.clients:
            if client not in clients:
                client.leave()
        self.driver.advance(30.0)
        for client in clients:
            client.reset()
            client.choose()
        for _ in range(60):
            self.driver.advance(1.1)
            for client in clients:
                if isinstance(client, ClassicWanderer):
                    client.go_on()
                elif client.beat().error_code:
                    client.reset()
                else:
                    client.reconcile()
            self.check()

    def check_settled(self, clients):
        group = self.driver.group()
        assert group.state in (ConsumerGroupState.STABLE, GroupState.STABLE), group
        held = sorted(partition for client in clients for partition in client.partitions)
        read_by = {name for client in clients for name in client.topics}
        if any(getattr(client, "regex", None) == "t|u" for client in clients):
            read_by |= {"t", "u"}
        topics = [self.cluster.by_name(name) for name in read_by]
        assert held == sorted((topic.topic_id, index) for topic in topics for index in range(topic.partitions))


def _run(seed):
    run = Run(seed)
    for _ in range(250):
        run.step()
    return run


def test_members_of_both_protocols_never_share_a_partition_and_settle_together():
    for_each_seed(SEEDS, all_settle, "BARNABAS_EXAMPLES")


def all_settle(seed):
    run = _run(seed)
    run.heal(run.clients)
    run.check_settled(run.clients)
    assert isinstance(run.driver.group(), ConsumerGroup)


def test_and_classic_members_alone_end_in_a_classic_group():
    for_each_seed(SEEDS[: (len(SEEDS) + 1) // 2], classic_members_settle, "BARNABAS_EXAMPLES")


def classic_members_settle(seed):
    run = _run(seed)
    run.heal(run.classics)
    run.check_settled(run.classics)
    assert isinstance(run.driver.group(), ClassicGroup)


def test_what_a_classic_member_still_reads_is_not_given_away_by_a_downgrade_and_an_upgrade_in_a_row():
    driver = new_driver()
    (client,) = classic_group(driver, 1)
    driver.beat("new")
    driver.beat("new", -1)
    assert isinstance(driver.group(), ClassicGroup)
    response = driver.beat("again")
    assert isinstance(driver.group(), ConsumerGroup)
    assert given(response) == {}
    assert len(client.partitions) == 6
