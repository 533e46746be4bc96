"""G1, G2: members that join, sync, send heartbeats, leave and die at random; invariants hold after every step.

One seed is one run. The members know only what responses contain, as real clients do. `BARNABAS_EXAMPLES` sets
how many seeds are tried, `BARNABAS_SEED` the first.
"""

from __future__ import annotations

from random import Random

from barnabas.coord.groups.classic.states import GroupState
from barnabas.coord.machine import Moment
from barnabas.wire.errors import ErrorCode
from tests.coord.groups.group_driver import OLD, Driver
from tests.support.volume import for_each_seed, seeds

SEEDS = seeds("BARNABAS_EXAMPLES", 15)
RETRY = {ErrorCode.MEMBER_ID_REQUIRED, ErrorCode.REBALANCE_IN_PROGRESS}


class Member:
    """A client of the classic protocol: one request at a time, state only from the answers."""

    def __init__(self, driver, random, index):
        self.driver, self.random = driver, random
        self.instance_id = f"i{index}" if index % 3 == 0 else None
        self.context = {"context": OLD} if index % 4 == 1 else {}
        self.names = random.choice([("a", "b"), ("b", "a"), ("b",), ("a", "b", "c")])
        self.reset()

    def reset(self):
        self.member_id, self.generation, self.ticket, self.phase, self.leads = "", -1, None, "join", None

    def vanish(self):
        """The process dies, and a new one starts."""
        self.reset()

    def step(self):
        if self.ticket is not None:
            self.take_answer()
        elif self.phase == "join":
            options = {"instance_id": self.instance_id, "session_ms": 6_000, "rebalance_ms": 8_000, "settle": False}
            self.ticket = self.driver.join(
                self.member_id, names=self.names, metadata=self.random.choice([b"x", b"y"]), **options, **self.context
            )
        elif self.phase == "sync":
            assignments = {key: f"{self.generation}:{key}".encode() for key in self.leads or ()}
            self.ticket = self.driver.sync(self.member_id, self.generation, assignments, instance_id=self.instance_id)
        elif self.random.random() < 0.6:
            self.take_error(self.driver.heartbeat(self.member_id, self.generation, instance_id=self.instance_id))
        else:
            error = self.driver.commit(
                self.random.randrange(100),
                member_id=self.member_id,
                generation=self.generation,
                instance_id=self.instance_id,
                partition=self.random.randrange(3),
            )
            self.take_error(error)

    def take_answer(self):
        response = self.driver.answers.get(self.ticket)
        if response is None:
            return
        self.ticket = None
        if response.error_code:
            if response.error_code == ErrorCode.MEMBER_ID_REQUIRED:
                self.member_id = response.member_id
            self.take_error(response.error_code)
        elif self.phase == "join":
            assert response.generation_id >= self.generation, "generations only grow"
            self.member_id, self.generation, self.phase = response.member_id, response.generation_id, "sync"
            self.leads = (
                [member.member_id for member in response.members] if response.leader == self.member_id else None
            )
        else:
            # a member of this generation has its assignment, or none if the leader did not know the member
            assignment = response.assignment.decode().split(":", 1)
            assert assignment == [str(self.generation), assignment[-1]] or assignment == [""]
            self.phase = "stable"

    def take_error(self, error):
        if error == 0:
            return
        self.phase = "join"
        if error not in RETRY:
            self.reset()


def check(driver):
    group = driver.group()
    if group is None:
        return
    assert group.leader in group.members if group.members else True
    assert set(group.static_members.values()) == {m.member_id for m in group.members.values() if m.is_static}
    assert not group.pending_joins & set(group.members)
    if group.state is GroupState.EMPTY:
        assert not group.members
    if group.state in (GroupState.COMPLETING_REBALANCE, GroupState.STABLE):
        assert group.members
        assert all(group.protocol in member.protocol_names() for member in group.members.values())
        assert all(member.join_ticket is None for member in group.members.values())
    if group.state is GroupState.STABLE:
        assert all(member.sync_ticket is None for member in group.members.values())
        generations = {m.assignment.split(b":")[0] for m in group.members.values() if m.assignment}
        assert generations <= {str(group.generation).encode()}


def check_replay(driver):
    """Loading the log gives the state of the coordinator."""
    loaded = driver.fresh()
    for key, value in driver.log:
        loaded.replay(key, value, Moment(0.0, 0))
    assert loaded.offsets.store == driver.coordinator.offsets.store
    assert loaded.groups.keys() == driver.coordinator.groups.keys()
    for group_id, live in driver.coordinator.groups.items():
        # An empty group whose record cannot be written is not written again, as in Kafka; the next generation is.
        if live.state is GroupState.STABLE or (live.state is GroupState.EMPTY and not driver.has_failed):
            replayed = loaded.groups[group_id]
            for name in ("state", "generation", "protocol", "leader"):
                assert getattr(replayed, name) == getattr(live, name), name
            assert {key: member.assignment for key, member in replayed.members.items()} == {
                key: member.assignment for key, member in live.members.items()
            }
            assert replayed.static_members == live.static_members


def test_promises_hold_whatever_members_do():
    for_each_seed(SEEDS, members_do_anything, "BARNABAS_EXAMPLES")


def members_do_anything(seed):
    random = Random(seed)
    driver = Driver(initial_rebalance_delay_ms=random.choice([0, 500, 3_000]), max_size=random.choice([3, 100]))
    members = [Member(driver, random, index) for index in range(random.randrange(1, 6))]
    for _ in range(300):
        member = random.choice(members)
        dice = random.random()
        if dice < 0.80:
            member.step()
        elif dice < 0.95:
            driver.advance(random.choice([0, 0.1, 1, 3]))
        elif dice < 0.97:
            member.vanish()
        elif dice < 0.99:
            if member.member_id and member.ticket is None:
                driver.leave((member.member_id, member.instance_id))
                member.reset()
        elif random.random() < 0.5:
            driver.append_error = None if driver.append_error else ErrorCode.KAFKA_STORAGE_ERROR
            driver.has_failed = True
        else:
            driver.restart()
            for simulated in members:
                simulated.ticket = None
                simulated.generation = -1  # what was not in the log when the broker stopped is lost
                simulated.phase = "join" if simulated.phase == "sync" else simulated.phase
        driver.settle()
        check(driver)
        if driver.append_error is None:
            check_replay(driver)


def test_members_that_keep_trying_end_up_stable_together():
    for_each_seed(SEEDS, members_keep_trying, "BARNABAS_EXAMPLES")


def members_keep_trying(seed):
    random = Random(seed)
    driver = Driver(initial_rebalance_delay_ms=random.choice([0, 500]))
    members = [Member(driver, random, index) for index in range(random.randrange(1, 6))]
    for member in members:
        member.names = ("a", "b")
    for _ in range(100):
        random.choice(members).step()
        if random.random() < 0.1:
            random.choice(members).vanish()
    for _ in range(200):
        for member in members:
            member.step()
        driver.advance(0.5)
    assert driver.state() is GroupState.STABLE
    assert {member.phase for member in members} == {"stable"}
    assert {member.generation for member in members} == {driver.group().generation}
    assert set(driver.group().members) == {member.member_id for member in members}
