"""G1, G2: groups of real clients of several libraries whose members join, leave and crash, and whose broker crashes.

Every member is a process (`group_member.py`) that writes a diary. Each record is read; no committed record is read
again by the stable group; each partition has one owner.
"""

from __future__ import annotations

import pytest

confluent_kafka = pytest.importorskip("confluent_kafka")
from tests.clients.groups.live_group import (  # noqa: E402
    DEADLINE_S,
    LONG_SESSION_MS,
    PARTITIONS,
    live_groups,
)
from tests.support.waiting import wait_for  # noqa: E402

LIBRARIES = ["confluent-kafka", "kafka-python", "aiokafka"]

pytestmark = pytest.mark.timeout(600)


@pytest.fixture
def start_group(topic_name, tmp_path):
    """A factory of groups on a given broker; their processes are stopped after the test."""
    with live_groups(lambda: topic_name("group"), tmp_path) as start:
        yield start


@pytest.mark.soak
def test_five_members_in_three_libraries_survive_joins_leaves_kills_and_restarts(start_broker, start_group):
    """Every record is read, every offset kept."""
    server = start_broker()
    group = start_group(server)
    first = group.join("confluent-kafka")
    group.settle()
    group.produce(300)
    second = group.join("kafka-python")
    group.join("aiokafka")
    group.join("confluent-kafka")
    group.join("kafka-python")
    group.settle()
    group.produce(300)
    group.wait_read()
    group.drop(second, "leave")
    group.produce(300)
    group.settle()
    group.drop(first, "kill")  # it was the leader: another member becomes leader after its session timeout
    group.produce(300)
    group.settle()
    group.join("confluent-kafka")
    group.join("aiokafka")
    group.settle()
    group.wait_read()
    group.wait_committed()
    before = {member.member_id for member in group.described().members}
    server.kill9()
    server.restart()
    group.produce(300)
    group.settle()
    assert {member.member_id for member in group.described().members} & before, "members survive the crash"
    group.wait_read()
    group.wait_committed()
    server.stop()
    server.restart()
    group.wait_committed()
    group.produce(300)
    group.wait_read()
    group.wait_committed()
    read = sum(group.values().values())
    for member in list(group.live):
        group.drop(member, "leave")
    wait_for(lambda: group.described().group_state == "Empty", "empty", DEADLINE_S)
    group.join("kafka-python")
    group.settle()
    assert sum(group.values().values()) == read, "committed records are not read again"


@pytest.mark.parametrize("library", LIBRARIES)
def test_members_of_one_library_share_and_reassign_partitions(broker, start_group, library):
    group = start_group(broker)
    group.produce(120)
    first = group.join(library, session_ms=LONG_SESSION_MS)
    group.settle()
    second = group.join(library, session_ms=LONG_SESSION_MS)
    group.settle()
    assert len(first.owned()) == len(second.owned()) == PARTITIONS // 2
    group.drop(first, "leave")
    group.settle()
    assert second.owned() == set(range(PARTITIONS))
    group.produce(120)
    group.wait_read()
    group.wait_committed()


@pytest.mark.soak
def test_cooperative_members_keep_partitions_that_do_not_move(broker, start_group):
    """KIP-429, cooperative-sticky: when a second member joins, the first one loses only the partitions that move."""
    group = start_group(broker)
    first = group.join(strategy="cooperative-sticky")
    group.settle()
    second = group.join(strategy="cooperative-sticky")
    group.settle()
    revoked = [set(event["partitions"]) for event in first.events("revoked") if event["partitions"]]
    assert revoked == [second.owned()]
    assert first.events("lost") == []
    third = group.join(strategy="cooperative-sticky")
    group.settle()
    assert {len(member.owned()) for member in (first, second, third)} == {2}
    group.produce(120)
    group.wait_read()
    partitions = first.owned()
    group.drop(second, "kill")
    group.settle()
    assert partitions <= first.owned()
    group.produce(120)
    group.wait_read()
    group.wait_committed()


def test_a_restarted_static_member_causes_no_rebalance(broker, start_group):
    """KIP-345: the member is killed and rejoins within its session timeout, with a new member id."""
    group = start_group(broker)
    other = group.join(instance="other", session_ms=LONG_SESSION_MS)
    group.settle()
    restarted = group.join(instance="restarted", session_ms=LONG_SESSION_MS)
    group.settle()
    owned, changes = restarted.owned(), len(other.events("assigned", "revoked"))
    before = group.members_by_instance()
    group.drop(restarted, "kill")
    back = group.join(instance="restarted", session_ms=LONG_SESSION_MS)
    wait_for(lambda: back.owned() == owned, lambda: f"{back.owned()} is not {owned}", DEADLINE_S)
    after = group.members_by_instance()
    assert after["restarted"] != before["restarted"]
    assert after["other"] == before["other"]
    assert len(other.events("assigned", "revoked")) == changes
    group.produce(120)
    group.wait_read()


def test_of_two_members_with_one_instance_id_the_first_is_fenced(broker, start_group):
    """G1: error 82, FENCED_INSTANCE_ID."""
    group = start_group(broker)
    first = group.join(instance="same", session_ms=LONG_SESSION_MS)
    group.settle()
    group.live.remove(first)
    group.join(instance="same", session_ms=LONG_SESSION_MS)
    fatal = wait_for(lambda: [event for event in first.events("error") if event["fatal"]], "fenced", DEADLINE_S)
    assert "fenced" in fatal[0]["texts"][0]
    group.settle()
    group.produce(60)
    group.wait_read()
