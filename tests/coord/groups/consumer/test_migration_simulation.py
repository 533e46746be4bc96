"""Random runs of groups with members of both protocols, with upgrades and downgrades (rule G4).

Members join, leave, die, are slow, or return as static ones with the other protocol; the coordinator restarts from its
log, and appends fail. After every step no two members of the group hold the same partition; in the end each partition
is held by one member, in a group of the type that follows from its members. A failure names its seed:
`BARNABAS_SEEDS` says how many are run, `BARNABAS_SEED` which is the first.
"""

from __future__ import annotations

from random import Random

from barnabas.coord.groups.assignors import uniform
from barnabas.coord.groups.assignors.spec import MemberSpec
from barnabas.coord.groups.classic.group import ClassicGroup
from barnabas.coord.groups.classic.states import GroupState
from barnabas.coord.groups.consumer.group import ConsumerGroup
from barnabas.coord.groups.consumer.states import ConsumerGroupState
from barnabas.coord.groups.settings import GroupSettings
from barnabas.wire.errors import ErrorCode
from barnabas.wire.messages.groups.consumer_protocol import ConsumerProtocolSubscription
from tests.coord.groups.cluster_driver import GroupTopics, topic_id
from tests.coord.groups.consumer.consumer_driver import Client, ConsumerDriver
from tests.coord.groups.consumer.migrating import EAGER, assignment, read, subscription
from tests.support.volume import for_each_seed, seeds

SEEDS = seeds("BARNABAS_SEEDS", 15)
PARTITIONS = 6
TOPIC = topic_id("t")
INSTANCES = ["i1", "i2"]


class ClassicWanderer:
    """A member of the classic protocol, eager or cooperative, that also leads when it has to."""

    def __init__(self, run, instance_id):
        self.driver, self.protocol, self.instance_id = run.driver, run.protocol, instance_id
        self.owned = frozenset()
        self.lose()

    def lose(self):
        """It is not a member any more: it drops its partitions and joins again."""
        self.member_id, self.generation, self.ticket, self.wish = "", -1, None, "join"
        self.owned = frozenset()

    def step(self):
        if self.ticket is not None:
            response = self.driver.answers.pop(self.ticket, None)
            if response is not None:
                self.ticket = None
                self.take(response)
        elif self.wish == "join":
            if self.protocol == EAGER:
                self.owned = frozenset()
            metadata = subscription(["t"], {"t": self.owned} if self.owned else {})
            self.ticket = self.driver.join(
                self.member_id,
                names=(self.protocol,),
                metadata=metadata,
                instance_id=self.instance_id,
                rebalance_ms=5_000,
            )
        elif self.wish == "sync":
            self.ticket = self.driver.sync(self.member_id, self.generation, self.given, instance_id=self.instance_id)
        else:
            self.refused(self.driver.heartbeat(self.member_id, self.generation, instance_id=self.instance_id))

    def take(self, response):
        if response.error_code == ErrorCode.MEMBER_ID_REQUIRED:
            self.member_id = response.member_id
        elif response.error_code:
            self.refused(response.error_code)
        elif self.wish == "join":
            self.member_id, self.generation, self.wish = response.member_id, response.generation_id, "sync"
            leads = response.leader == response.member_id and not response.skip_assignment
            self.given = self.assign(response.members) if leads else {}
        else:
            before, self.owned = self.owned, frozenset(read(response.assignment).get("t", ()))
            self.wish = "join" if before - self.owned else "heartbeat"

    def assign(self, members):
        """The assignment by a leader: even and sticky, without partitions that another member still has (KIP-429)."""
        owned = {}
        for member in members:
            embedded, _ = ConsumerProtocolSubscription.codec(3).parse(bytes(member.metadata), 2)
            owned[member.member_id] = frozenset(
                index for topic in embedded.owned_partitions for index in topic.partitions
            )
        specs = {key: MemberSpec(frozenset({TOPIC}), {TOPIC: mine} if mine else {}) for key, mine in owned.items()}
        shares = {
            key: share.get(TOPIC, frozenset()) for key, share in uniform.assign(specs, {TOPIC: PARTITIONS}).items()
        }
        for key, share in shares.items():
            others = frozenset().union(*(mine for other, mine in owned.items() if other != key))
            shares[key] = share - others
        return {key: assignment({"t": sorted(share)}) for key, share in shares.items()}

    def refused(self, error):
        if error == ErrorCode.REBALANCE_IN_PROGRESS:
            self.wish = "join"
        elif error == ErrorCode.ILLEGAL_GENERATION:
            self.owned, self.generation, self.wish = frozenset(), -1, "join"
        elif error in (ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.FENCED_INSTANCE_ID):
            self.lose()
        else:
            assert error in (0, ErrorCode.COORDINATOR_NOT_AVAILABLE), ErrorCode(error)

    def leave(self):
        if self.instance_id is None and self.member_id:
            self.driver.leave(self.member_id)

    @property
    def held(self):
        return self.owned


class ConsumerWanderer(Client):
    """A member of the consumer protocol."""

    def __init__(self, run, instance_id):
        run.count += 1
        super().__init__(run.driver, f"consumer-{run.count}", instance_id=instance_id)

    def step(self):
        response = self.beat()
        if response.error_code in (
            ErrorCode.UNKNOWN_MEMBER_ID,
            ErrorCode.FENCED_MEMBER_EPOCH,
            ErrorCode.GROUP_ID_NOT_FOUND,
        ):
            self.reset()
        else:
            allowed = (0, ErrorCode.COORDINATOR_NOT_AVAILABLE, ErrorCode.UNRELEASED_INSTANCE_ID)
            assert response.error_code in allowed, response
            self.reconcile()

    def leave(self):
        if self.epoch > 0:
            fields = {} if self.instance_id is None else {"instance_id": self.instance_id}
            self.driver.beat(self.member_id, -2 if fields else -1, **fields)

    @property
    def held(self):
        return frozenset(self.owned.get(TOPIC, ())) if self.epoch > 0 else frozenset()


class Run:
    def __init__(self, seed):
        self.random = Random(seed)
        settings = GroupSettings(consumer_assignment_interval_ms=0, consumer_session_timeout_ms=10_000)
        self.driver = ConsumerDriver(GroupTopics(t=PARTITIONS), settings, initial_rebalance_delay_ms=500)
        self.protocol = self.random.choice([EAGER, "cooperative-sticky"])
        self.count = 0
        self.live = []

    def come(self):
        free = [static_id for static_id in INSTANCES if static_id not in {client.instance_id for client in self.live}]
        instance_id = self.random.choice([None, None, *free])
        kind = self.random.choice([ClassicWanderer, ConsumerWanderer])
        self.live.append(kind(self, instance_id))

    def step(self):
        before = type(self.driver.group())
        self.act()
        if type(self.driver.group()) is not before and self.random.random() < 0.3:
            self.restart()
        self.check()

    def restart(self):
        self.driver.restart()
        for client in self.live:
            client.ticket = None  # its connection and request are lost

    def act(self):
        dice = self.random.random()
        if len(self.live) < 2 or (dice < 0.03 and len(self.live) < 6):
            self.come()
        elif dice < 0.06:
            client = self.random.choice(self.live)
            self.live.remove(client)
            if self.random.random() < 0.7:
                client.leave()
        elif dice < 0.07:
            self.restart()
        elif dice < 0.09:
            self.driver.append_error = ErrorCode.NOT_ENOUGH_REPLICAS
            self.random.choice(self.live).step()
            self.driver.append_error = None
        elif dice < 0.2:
            self.driver.advance(self.random.choice([0.1, 0.3, 1.0]))
        else:
            self.random.choice(self.live).step()

    def counted(self):
        """The clients that are members of the group; the others have not been told of their removal."""
        group = self.driver.group()
        members = group.members if isinstance(group, (ClassicGroup, ConsumerGroup)) else {}
        return [client for client in self.live if client.member_id in members]

    def check(self):
        held = {}
        for client in self.counted():
            for partition in client.held:
                assert partition not in held, (
                    f"{partition} is held by {held[partition].member_id} and {client.member_id}"
                )
                held[partition] = client

    def heal(self):
        """Continue until nothing changes and the sessions of dead members have expired."""
        for _ in range(120):
            self.driver.advance(0.3)
            for client in self.live:
                client.step()
                self.check()

    def check_settled(self):
        group = self.driver.group()
        has_consumers = any(isinstance(client, ConsumerWanderer) for client in self.live)
        assert isinstance(group, ConsumerGroup if has_consumers else ClassicGroup), group
        assert group.state is (ConsumerGroupState.STABLE if has_consumers else GroupState.STABLE), group
        assert len(self.counted()) == len(group.members) == len(self.live)
        assert sorted(index for client in self.live for index in client.held) == list(range(PARTITIONS)), group

    def check_log(self):
        """Loading the log gives the same group."""
        before = self.driver.group()
        self.driver.restart()
        after = self.driver.group()
        assert type(after) is type(before)
        assert after.state is before.state
        if isinstance(before, ConsumerGroup):
            assert (after.epoch, after.members, after.target) == (before.epoch, before.members, before.target)
        else:
            assignments = {key: member.assignment for key, member in before.members.items()}
            assert {key: member.assignment for key, member in after.members.items()} == assignments
            assert (after.generation, after.leader) == (before.generation, before.leader)


def test_a_group_of_both_protocols_never_shares_a_partition_twice_and_settles():
    for_each_seed(SEEDS, one_run, "BARNABAS_SEEDS")


def one_run(seed):
    run = Run(seed)
    for _ in range(400):
        run.step()
    run.heal()
    run.check_settled()
    run.check_log()
