"""Kafka Streams 4.3.1: word count under both guarantees, killed, restarted and scaled, by the program in `compat`."""

from __future__ import annotations

import os
import random
import time

import pytest

from compat.kafka_streams.application import DEADLINE_S, Application
from tests.clients.kafka.exchange import Directory
from tests.support.jvm.kafka_tools import run_tool
from tests.support.processes.brokers_of_run import BrokersOfRun
from tests.support.waiting import wait_for

SEED = int(os.environ.get("BARNABAS_SEED", str(random.SystemRandom().randrange(2**32))))
pytestmark = [pytest.mark.jvm, pytest.mark.timeout(600)]
KILLS = int(os.environ.get("BARNABAS_KILLS", "1"))
AT_LEAST_ONCE = "processing.guarantee=at_least_once"
EXACTLY_ONCE = "processing.guarantee=exactly_once_v2"


FAST_SESSIONS = {
    "offsets.topic.num.partitions": "3",
    "transaction.state.log.num.partitions": "3",
    "group.streams.initial.rebalance.delay.ms": "0",
    "group.streams.min.session.timeout.ms": "6000",
    "group.streams.session.timeout.ms": "6000",
    "group.streams.min.heartbeat.interval.ms": "500",
    "group.streams.heartbeat.interval.ms": "500",
}
"""Short sessions, so that killed members are detected soon; in the streams protocol the broker sets the timeouts."""


@pytest.fixture
def chance():
    print(f"replay with BARNABAS_SEED={SEED}")
    return random.Random(SEED)


@pytest.fixture(scope="module")
def streams_broker(tmp_path_factory, request):
    """One broker for the tests that do not kill it."""
    brokers = BrokersOfRun(request.config)
    server = brokers.start(tmp_path_factory.mktemp("streams"), FAST_SESSIONS)
    yield server
    brokers.stop(server)


@pytest.fixture
def application(topic_name, tmp_path):
    apps = []

    def make(server, *settings, **options):
        apps.append(Application(server.clients, topic_name("words"), tmp_path, *settings, **options))
        return apps[-1]

    yield make
    for app in apps:
        app.close()


PROTOCOLS = {"classic": ["consumer.session.timeout.ms=6000"], "streams": ["group.protocol=streams"]}
"""The settings that have an application use one protocol or the other."""


@pytest.fixture(params=list(PROTOCOLS))
def protocol(request):
    return PROTOCOLS[request.param]


@pytest.mark.parametrize(
    "guarantee",
    [
        pytest.param(EXACTLY_ONCE, id="exactly_once_v2"),
        pytest.param(AT_LEAST_ONCE, id="at_least_once", marks=pytest.mark.soak),
    ],
)
def test_word_count(streams_broker, application, chance, protocol, guarantee):
    words = application(streams_broker, guarantee, *protocol)
    words.write(200, chance)
    instance = words.start().running()
    words.check_exactly_once()  # nothing is killed, so the counts are exact with at-least-once too
    words.write(100, chance)
    words.check_exactly_once()
    stored = dict(entry.split("=") for entry in instance.ask("store"))
    assert stored == {word: str(count) for word, count in words.written.items()}
    instance.close()


@pytest.mark.soak
def test_exactly_once_through_kills_of_the_application(streams_broker, application, chance, protocol):
    """T12: restored from the state directory, and from the changelog topics alone."""
    words = application(streams_broker, EXACTLY_ONCE, *protocol)
    for kill in range(KILLS):
        instance = words.start(state=f"state-{kill // 2}").running()
        words.write(100, chance)
        time.sleep(chance.uniform(0, 1))  # at any moment of processing
        instance.kill9()
    words.start(state="another").running()
    words.check_exactly_once()


@pytest.mark.soak
def test_at_least_once_through_kills_of_the_application(streams_broker, application, chance, protocol):
    words = application(streams_broker, AT_LEAST_ONCE, *protocol)
    instance = words.start().running()
    words.write(100, chance)
    time.sleep(chance.uniform(0, 1))
    instance.kill9()
    words.start(state="another").running()
    words.wait_counted()


@pytest.mark.soak
def test_exactly_once_through_kills_of_the_broker(start_broker, application, chance, protocol):
    """T4, T12."""
    server = start_broker(config=FAST_SESSIONS)
    words = application(server, EXACTLY_ONCE, *protocol)
    words.start().running()
    for _ in range(KILLS):
        words.write(100, chance)
        time.sleep(chance.uniform(0, 1))  # at any moment of processing
        server.kill9()
        server.restart()
    words.check_exactly_once()


@pytest.mark.soak
def test_one_two_one_instances(streams_broker, application, chance, protocol):
    """Two threads each. Each task has one owner; tasks of a closed instance continue from its committed offsets."""
    settings = [EXACTLY_ONCE, "num.stream.threads=2", *protocol]
    words = application(streams_broker, *settings, partitions=4)
    first = words.start().running()
    words.write(100, chance)
    wait_for(lambda: len(first.tasks()[0]) == 8, "the first has no tasks", DEADLINE_S)
    everything = first.tasks()[0]
    second = words.start(state="two").running()

    def is_shared():
        ours, theirs = first.tasks()[0], second.tasks()[0]
        return len(ours) == len(theirs) == 4 and ours | theirs == everything

    wait_for(is_shared, "the tasks are not shared", DEADLINE_S)
    words.write(100, chance)
    words.wait_counted()
    first.close()
    wait_for(lambda: second.tasks()[0] == everything, "the second does not get all tasks", DEADLINE_S)
    words.write(100, chance)
    words.check_exactly_once()


@pytest.mark.soak
def test_standby_tasks(start_broker, application, chance, protocol):
    """A task and its standby are on different instances. In the streams protocol the broker sets their number."""
    server = start_broker(config={**FAST_SESSIONS, "group.streams.num.standby.replicas": "1"})
    words = application(server, EXACTLY_ONCE, "num.standby.replicas=1", *protocol)
    instances = [words.start(state="one").running(), words.start(state="two").running()]
    words.write(100, chance)

    def has_standbys():
        (a, a_standby), (b, b_standby) = (instance.tasks() for instance in instances)
        stateful = {task for task in a | b if task.startswith("1_")}
        return len(a | b) == 4 and not a & b and a_standby == b & stateful and b_standby == a & stateful

    wait_for(has_standbys, "no standby tasks", DEADLINE_S)
    words.check_exactly_once()


@pytest.mark.soak
def test_every_instance_knows_all_assignments(streams_broker, application, protocol):
    """Interactive queries: each instance knows the partitions of all instances."""
    words = application(streams_broker, *protocol)
    first = words.start("application.server=here:1", state="one").running()
    second = words.start("application.server=there:2", state="two").running()
    everything = {f"{words.name}-by-word-repartition-{index}" for index in range(2)}

    def agree():
        answers = [
            {host.split(",")[0]: set(host.split(",")[1:]) for host in who.ask("hosts")} for who in (first, second)
        ]
        if answers[0] != answers[1] or answers[0].keys() != {"here:1", "there:2"}:
            return False
        here, there = answers[0].values()
        return here and there and not here & there and everything <= here | there

    wait_for(agree, "they do not agree on who has what", DEADLINE_S)


@pytest.mark.soak
def test_shutdown_of_the_whole_application(streams_broker, application, chance, protocol):
    words = application(streams_broker, EXACTLY_ONCE, *protocol)
    instances = [words.start(state="one").running(), words.start(state="two").running()]
    words.write(50, chance)
    words.check_exactly_once()
    words.write_line("!shutdown")
    for instance in instances:
        instance.wait_for_line("STATE ERROR")


def tool(server, *arguments):
    """Run kafka-streams-groups.sh and return its output."""
    config = server.clients.write(server.log_dir.with_name(f"{server.log_dir.name}.client.properties"))
    common = ("--bootstrap-server", server.bootstrap, "--command-config", str(config))
    options = server.clients.java_options()
    done = run_tool("streams.StreamsGroupCommand", *common, *arguments, options=options)
    return done.out + done.errors


@pytest.mark.soak
def test_kafka_streams_groups_tool(streams_broker, application, chance):
    """List, describe, members, offsets, reset and delete, with Kafka's own tool."""
    words = application(streams_broker, *PROTOCOLS["streams"])
    instance = words.start().running()
    words.write(60, chance)
    words.wait_counted()
    group = ["--group", words.name]
    assert words.name in tool(streams_broker, "--list")
    listed = tool(streams_broker, "--list", "--state", "stable")
    assert [words.name, "Stable"] in [line.split() for line in listed.splitlines()]
    assert "Stable" in tool(streams_broker, "--describe", *group, "--state", "--verbose")
    members = tool(streams_broker, "--describe", *group, "--members", "--verbose")
    assert "ACTIVE" in members
    assert "0:[0,1]" in members.replace(" ", "")
    offsets = tool(streams_broker, "--describe", *group, "--offsets", "--verbose")
    rows = [line.split() for line in offsets.splitlines() if f"{words.name}-lines" in line]
    assert len(rows) == 2
    assert sum(int(row[3]) for row in rows) == 60
    assert "non-empty" in tool(streams_broker, "--delete", *group).lower().replace("not empty", "non-empty")
    instance.close()
    wait_for(lambda: "Empty" in tool(streams_broker, "--describe", *group, "--state"), "it is never empty", DEADLINE_S)
    reset = tool(streams_broker, "--reset-offsets", *group, "--all-input-topics", "--to-earliest", "--execute")
    assert f"{words.name}-lines" in reset
    assert "successful" in tool(streams_broker, "--delete", *group)
    assert words.name not in tool(streams_broker, "--list")


@pytest.mark.soak
@pytest.mark.plaintext("Kafka and Barnabas in turn have one configuration, which is of a plaintext listener")
def test_kafka_and_barnabas_in_turn_under_one_application(application, chance, tmp_path):
    """Both brokers use one data directory in turn: the group, its tasks, offsets and transactions are kept."""
    directory = Directory(tmp_path / "node", config=FAST_SESSIONS)
    try:
        directory.run(directory.kafka)
        words = application(directory, EXACTLY_ONCE, *PROTOCOLS["streams"])
        instance = words.start().running()
        for server in (directory.barnabas, directory.kafka, directory.barnabas):
            words.write(60, chance)
            words.check_exactly_once()
            before = tool(directory, "--describe", "--group", words.name, "--members").splitlines()
            directory.run(server)
            instance.tasks()
            after = tool(directory, "--describe", "--group", words.name, "--members").splitlines()
            assert after[-1].split()[:3] == before[-1].split()[:3], "the member and its process are known"
        words.write(60, chance)
        words.check_exactly_once()
        instance.close()
    finally:
        directory.stop()
