"""Kafka's command line tools 4.3.1: groups, transactions, features, verifiable clients."""

from __future__ import annotations

import itertools
import json
import re
import time

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from tests.support.jvm.kafka_tools import Tools

DEADLINE_S = 60.0
pytestmark = pytest.mark.jvm


@pytest.fixture(scope="module")
def tools(broker, tmp_path_factory):
    settings = broker.clients
    config = None  # one tool has no option for it
    if settings.security is not None:
        config = settings.write(tmp_path_factory.mktemp("tools") / "client.properties")
    return Tools(broker.bootstrap, config, settings.java_options())


def rows(text):
    """Parse a table in a tool's output: one dictionary per line, with the header's words as keys."""
    lines = [line.rstrip() for line in text.splitlines()]
    first = next(at for at, line in enumerate(lines) if line.startswith("GROUP ") or "\t" in line)
    table = [_words(line) for line in itertools.takewhile(bool, lines[first:])]
    return [dict(zip(table[0], line, strict=True)) for line in table[1:]]


def _words(line):
    """Split a line into columns, which are separated by tabs or padded with blanks; `host:port (id)` is one column."""
    return [word.strip() for word in line.split("\t")] if "\t" in line else re.sub(r" +\((?=ID|\d)", "(", line).split()


def make_topic(broker, name, partitions=1):
    admin = AdminClient(broker.clients.librdkafka())
    config = {"retention.ms": "-1"}  # `fill` writes old timestamps
    admin.create_topics([NewTopic(name, partitions, config=config)])[name].result(30)
    return name


def fill(broker, topic, count, partition=0):
    producer = Producer(broker.clients.librdkafka())
    for number in range(count):
        producer.produce(topic, str(number), partition=partition, timestamp=1_700_000_000_000 + number * 1000)
    assert producer.flush(DEADLINE_S) == 0


def consumer(broker, group, **config):
    settings = {"group.id": group, "auto.offset.reset": "earliest"}
    return Consumer(broker.clients.librdkafka() | settings | {"enable.auto.commit": False} | config)


def commit(broker, group, topic, *offsets):
    group_consumer = consumer(broker, group)
    places = [TopicPartition(topic, index, offset) for index, offset in enumerate(offsets)]
    group_consumer.commit(offsets=places, asynchronous=False)
    group_consumer.close()


def offsets_of(broker, group, topic, partitions=1):
    group_consumer = consumer(broker, group)
    places = group_consumer.committed([TopicPartition(topic, index) for index in range(partitions)], DEADLINE_S)
    group_consumer.close()
    return [place.offset for place in places]


@pytest.fixture
def group(topic_name):
    return topic_name("group")


@pytest.fixture
def member(broker, topic, group):
    """A group member that owns all partitions of the topic: 10 records in partition 0, 4 of them committed."""
    make_topic(broker, topic, 2)
    fill(broker, topic, 10)
    group_consumer = consumer(broker, group, **{"client.id": "reader"})
    group_consumer.subscribe([topic])
    deadline = time.monotonic() + DEADLINE_S
    while len(group_consumer.assignment()) < 2:
        assert time.monotonic() < deadline
        group_consumer.poll(0.1)
    group_consumer.commit(offsets=[TopicPartition(topic, 0, 4)], asynchronous=False)
    yield group_consumer
    group_consumer.close()


# ---------------------------------------------------------------- kafka-consumer-groups


def test_groups_list(tools, member, group):
    assert group in tools.groups("--list").split()
    states = {row["GROUP"]: row["STATE"] for row in rows(tools.groups("--list", "--state"))}
    assert states[group] == "Stable"
    assert group in tools.groups("--list", "--state", "stable")
    assert group not in tools.groups("--list", "--state", "empty")


def test_groups_list_types(tools, member, group):
    kinds = {row["GROUP"]: row["TYPE"] for row in rows(tools.groups("--list", "--type"))}
    assert kinds[group] == "Classic"
    assert group in tools.groups("--list", "--type", "classic")
    assert group not in tools.groups("--list", "--type", "consumer")


def test_groups_describe_offsets(tools, member, topic, group):
    described = {row["PARTITION"]: row for row in rows(tools.groups("--describe", "--group", group))}
    assert (described["0"]["TOPIC"], described["0"]["CLIENT-ID"]) == (topic, "reader")
    assert (described["0"]["CURRENT-OFFSET"], described["0"]["LOG-END-OFFSET"], described["0"]["LAG"]) == (
        "4",
        "10",
        "6",
    )
    assert (described["1"]["CURRENT-OFFSET"], described["1"]["LOG-END-OFFSET"]) == ("-", "0")


def test_groups_describe_state(tools, broker, member, group):
    (described,) = rows(tools.groups("--describe", "--group", group, "--state"))
    assert described["COORDINATOR(ID)"] in {f"{address}({node})" for node, address in enumerate(broker.addresses, 1)}
    assert (described["ASSIGNMENT-STRATEGY"], described["STATE"], described["#MEMBERS"]) == ("range", "Stable", "1")


def test_groups_describe_members(tools, member, topic, group):
    (described,) = rows(tools.groups("--describe", "--group", group, "--members", "--verbose"))
    assert (described["CLIENT-ID"], described["#PARTITIONS"]) == ("reader", "2")
    assert described["CURRENT-ASSIGNMENT"] == f"{topic}:0,1"


def test_groups_describe_a_group_of_the_consumer_protocol(tools, broker, topic, group):
    make_topic(broker, topic, 2)
    group_consumer = consumer(broker, group, **{"group.protocol": "consumer", "client.id": "modern"})
    group_consumer.subscribe([topic])
    deadline = time.monotonic() + DEADLINE_S
    while len(group_consumer.assignment()) < 2:
        assert time.monotonic() < deadline
        group_consumer.poll(0.1)
    (state,) = rows(tools.groups("--describe", "--group", group, "--state", "--verbose"))
    (described,) = rows(tools.groups("--describe", "--group", group, "--members", "--verbose"))
    group_consumer.close()
    assert (state["ASSIGNMENT-STRATEGY"], state["STATE"], state["#MEMBERS"]) == ("uniform", "Stable", "1")
    assert state["GROUP-EPOCH"] == state["TARGET-ASSIGNMENT-EPOCH"] == described["CURRENT-EPOCH"]
    assert (described["CLIENT-ID"], described["#PARTITIONS"]) == ("modern", "2")


def test_groups_describe_of_an_unknown_group_is_an_error(tools):
    assert "GroupIdNotFoundException: Group nobody not found" in tools.groups("--describe", "--group", "nobody")


@pytest.mark.parametrize(
    ("how", "offset"),
    [
        (["--to-earliest"], 0),
        (["--to-latest"], 10),
        (["--to-current"], 4),
        (["--to-offset", 7], 7),
        (["--to-offset", 99], 10),
        (["--shift-by", -3], 1),
        (["--to-datetime", "2023-11-14T22:13:25.500"], 6),
        (["--by-duration", "PT1S"], 10),
    ],
    ids=lambda value: "-".join(map(str, value)).strip("-") if isinstance(value, list) else str(value),
)
def test_groups_reset_offsets(tools, broker, topic, group, how, offset):
    make_topic(broker, topic)
    fill(broker, topic, 10)
    commit(broker, group, topic, 4)
    arguments = ["--group", group, "--topic", topic, "--reset-offsets", *how]
    (planned,) = rows(tools.groups(*arguments, "--dry-run"))
    assert (planned["TOPIC"], planned["PARTITION"], planned["NEW-OFFSET"]) == (topic, "0", str(offset))
    assert offsets_of(broker, group, topic) == [4]
    tools.groups(*arguments, "--execute")
    assert offsets_of(broker, group, topic) == [offset]


def test_groups_reset_offsets_from_a_file(tools, broker, topic, group, tmp_path):
    make_topic(broker, topic, 2)
    fill(broker, topic, 5)
    commit(broker, group, topic, 2, 0)
    plan = tmp_path / "plan.csv"
    plan.write_text(f"{topic},0,3\n")
    tools.groups("--group", group, "--reset-offsets", "--from-file", plan, "--execute")
    assert offsets_of(broker, group, topic, 2) == [3, 0]


def test_groups_reset_offsets_of_an_active_group_is_refused(tools, broker, member, topic, group):
    arguments = ["--group", group, "--topic", topic, "--reset-offsets", "--to-earliest", "--execute"]
    assert "only be reset if the group" in tools.groups(*arguments)
    assert offsets_of(broker, group, topic) == [4]


def test_groups_delete_offsets(tools, broker, topic, group):
    make_topic(broker, topic, 2)
    commit(broker, group, topic, 2, 3)
    assert "Successful" in tools.groups("--delete-offsets", "--group", group, "--topic", f"{topic}:1")
    assert offsets_of(broker, group, topic, 2) == [2, -1001]


def test_groups_delete_offsets_of_an_active_group_is_refused(tools, broker, member, topic, group):
    text = tools.groups("--delete-offsets", "--group", group, "--topic", topic)
    assert "subscribed to it" in text
    assert offsets_of(broker, group, topic) == [4]


def test_groups_delete(tools, broker, topic, group):
    make_topic(broker, topic)
    commit(broker, group, topic, 1)
    assert "successful" in tools.groups("--delete", "--group", group)
    assert group not in tools.groups("--list").split()


def test_groups_delete_of_an_active_group_is_refused(tools, member, group):
    assert "is not empty" in tools.groups("--delete", "--group", group)
    assert group in tools.groups("--list").split()


# ---------------------------------------------------------------- kafka-transactions


@pytest.fixture
def open_transaction(broker, topic):
    """A producer with an open transaction of one record, and its transactional id."""
    make_topic(broker, topic)
    transactional_id = f"id-{topic}"
    producer = Producer(broker.clients.librdkafka() | {"transactional.id": transactional_id})
    producer.init_transactions(DEADLINE_S)
    producer.begin_transaction()
    producer.produce(topic, "open")
    producer.flush()
    return producer, transactional_id


def stable_offset(broker, topic):
    reader = consumer(broker, "nobody", **{"isolation.level": "read_committed"})
    _, end = reader.get_watermark_offsets(TopicPartition(topic, 0), DEADLINE_S)
    reader.close()
    return end


def test_transactions_list(tools, open_transaction):
    producer, transactional_id = open_transaction
    listed = {row["TransactionalId"]: row for row in rows(tools.transactions("list"))}
    assert listed[transactional_id]["TransactionState"] == "Ongoing"
    assert transactional_id not in tools.transactions("list", "--duration-filter", 600_000)
    pattern = tools.transactions("list", "--transactional-id-pattern", f"{transactional_id}.*")
    assert [row["TransactionalId"] for row in rows(pattern)] == [transactional_id]
    producer.commit_transaction(DEADLINE_S)


def test_transactions_describe(tools, open_transaction, topic):
    producer, transactional_id = open_transaction
    (described,) = rows(tools.transactions("describe", "--transactional-id", transactional_id))
    assert (described["TransactionState"], described["TransactionTimeoutMs"]) == ("Ongoing", "60000")
    assert described["TopicPartitions"] == f"{topic}-0"
    producer.commit_transaction(DEADLINE_S)


def test_transactions_describe_of_an_unknown_id_is_an_error(tools):
    text = tools.transactions("describe", "--transactional-id", "nobody", expected=1)
    assert "nobody" in text


def test_transactions_describe_producers(tools, open_transaction, topic):
    producer, _ = open_transaction
    (described,) = rows(tools.transactions("describe-producers", "--topic", topic, "--partition", 0))
    assert (described["LastSequence"], described["CurrentTransactionStartOffset"]) == ("0", "0")
    producer.commit_transaction(DEADLINE_S)
    (described,) = rows(tools.transactions("describe-producers", "--topic", topic, "--partition", 0))
    assert described["CurrentTransactionStartOffset"] == "None"


def test_transactions_abort(tools, broker, open_transaction, topic):
    _, transactional_id = open_transaction
    assert stable_offset(broker, topic) == 0
    tools.transactions("abort", "--topic", topic, "--partition", 0, "--start-offset", 0)
    assert stable_offset(broker, topic) == 2
    assert transactional_id in tools.transactions("list")


def test_transactions_abort_of_none_is_an_error(tools, broker, topic):
    make_topic(broker, topic)
    fill(broker, topic, 1)
    text = tools.transactions("abort", "--topic", topic, "--partition", 0, "--start-offset", 0, expected=1)
    assert "Could not find any open transactions" in text


def test_transactions_force_terminate(tools, broker, open_transaction, topic):
    _, transactional_id = open_transaction
    tools.transactions("forceTerminateTransaction", "--transactionalId", transactional_id)
    assert stable_offset(broker, topic) == 2


def test_transactions_find_hanging(tools, broker, open_transaction, topic):
    """A transaction that its coordinator knows is not hanging, whatever its duration."""
    producer, _ = open_transaction
    brokers = ["--broker-id", 1]
    text = tools.transactions("find-hanging", *brokers, "--max-transaction-timeout", 0)
    assert topic not in text
    producer.abort_transaction(DEADLINE_S)


# ---------------------------------------------------------------- kafka-features


def features(tools):
    """The finalized level of each feature, and the highest that is supported."""
    pairs = re.findall(
        r"Feature: (\S+)\s.*SupportedMaxVersion: (?:UNKNOWN )?(\S+)\s.*FinalizedVersionLevel: (?:UNKNOWN )?(\S+)",
        tools.run("FeatureCommand", "describe"),
    )
    return {name: (level, highest) for name, highest, level in pairs}


def test_features_describe(tools):
    described = features(tools)
    for name, level in {"group.version": "1", "streams.version": "1", "transaction.version": "2"}.items():
        assert described[name] == (level, level)
    assert {"metadata.version", "share.version"} <= described.keys()


def test_features_change(tools):
    """A dry run changes nothing; a level that the broker does not know is refused."""
    before = features(tools)
    name = "share.version"
    assert "share.version can be downgraded to 1" in tools.run(
        "FeatureCommand", "downgrade", "--feature", f"{name}=1", "--dry-run"
    )
    assert features(tools) == before
    tools.run("FeatureCommand", "downgrade", "--feature", f"{name}=1")
    assert features(tools) == before | {name: ("1", before[name][1])}
    refused = tools.run("FeatureCommand", "upgrade", "--feature", f"{name}=9", expected=1)
    assert "Could not upgrade share.version to 9. The update failed for all features" in refused
    tools.run("FeatureCommand", "upgrade", "--feature", f"{name}={before[name][0]}")
    assert features(tools) == before


# ---------------------------------------------------------------- verifiable clients


def events(text, name):
    return [event for event in map(json.loads, text.splitlines()) if event["name"] == name]


def test_verifiable_producer_and_consumer(tools, broker, topic, group):
    make_topic(broker, topic, 3)
    produced = tools.run("VerifiableProducer", "--topic", topic, "--max-messages", 500, "--acks", -1)
    assert len(events(produced, "producer_send_success")) == 500
    consumed = tools.run("VerifiableConsumer", "--topic", topic, "--group-id", group, "--max-messages", 500)
    assert sum(event["count"] for event in events(consumed, "records_consumed")) == 500
    assert all(event["success"] for event in events(consumed, "offsets_committed"))
    assert sum(offset for offset in offsets_of(broker, group, topic, 3) if offset > 0) == 500


def test_verifiable_consumer_of_the_consumer_protocol(tools, broker, topic, group):
    make_topic(broker, topic, 3)
    tools.run("VerifiableProducer", "--topic", topic, "--max-messages", 200, "--acks", -1)
    arguments = ["--topic", topic, "--group-id", group, "--max-messages", 200, "--group-protocol", "consumer"]
    consumed = tools.run("VerifiableConsumer", *arguments)
    assert sum(event["count"] for event in events(consumed, "records_consumed")) == 200
    assert sum(offset for offset in offsets_of(broker, group, topic, 3) if offset > 0) == 200


@pytest.mark.plaintext("the copier takes no settings of its clients but the address")
def test_transactional_message_copier(tools, broker, topic_name, group):
    source, target = make_topic(broker, topic_name("in")), make_topic(broker, topic_name("out"))
    fill(broker, source, 100)
    words = ["--transactional-id", group, "--consumer-group", group]
    words += ["--transaction-size", 7, "--input-topic", source, "--input-partition", 0, "--output-topic", target]
    copied = tools.run("TransactionalMessageCopier", *words, "--max-messages", 100, "--enable-random-aborts")
    assert '"consumed":100' in copied.replace(" ", "")
    reader = consumer(broker, "nobody", **{"isolation.level": "read_committed"})
    reader.assign([TopicPartition(target, 0, 0)])
    values = [message.value() for message in reader.consume(100, DEADLINE_S)]
    assert values == [b"%d" % number for number in range(100)]
    assert reader.consume(1, 1.0) == []
    reader.close()
