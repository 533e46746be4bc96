"""`barnabas cluster`, `log-dirs`, `features`, `producers`."""

from __future__ import annotations

from confluent_kafka import Producer

from barnabas.terminal.times import iso_time
from barnabas.wire.messages.api_versions import ApiVersion, ApiVersionsRequest, ApiVersionsResponse
from barnabas.wire.messages.list_offsets import (
    ListOffsetsPartitionResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopicResponse,
)
from barnabas.wire.messages.log_dirs import DescribeLogDirsRequest, DescribeLogDirsResponse, DescribeLogDirsResult
from barnabas.wire.messages.metadata import (
    DescribeClusterBroker,
    DescribeClusterRequest,
    DescribeClusterResponse,
    MetadataRequest,
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from barnabas.wire.schema import Message
from tests.cli.scripted_broker import ScriptedBroker


def test_info_of_the_cluster(call, topic) -> None:
    call("topic", "create", topic, "-p", "3").ok()
    info = call("cluster", "info", "-o", "json").ok().json
    (broker,) = info["brokers"]
    assert (info["controller"], broker["broker"], broker["controller"], broker["fenced"]) == (1, 1, True, False)
    assert info["cluster_id"] in call("health").ok().stdout
    assert info["partitions"] == info["replicas"] >= 3
    assert info["topics"] == len(call("topic", "list", "-o", "json").ok().json)
    assert info["features"]["metadata.version"] > 0
    lines = call("cluster", "info").ok().lines
    assert [line.split()[0] for line in lines[:3]] == ["CLUSTER-ID", "CONTROLLER", "BROKERS"]
    assert lines[-1].split() == ["1", broker["host"], str(broker["port"]), "-", "yes"]


def test_a_healthy_cluster(call) -> None:
    ran = call("cluster", "health").ok()
    assert ran.stdout.startswith("healthy: 1 broker, ")
    assert call("cluster", "health", "-o", "json").ok().json["problems"] == []


class UnhealthyBroker(ScriptedBroker):
    """Answers for a cluster of two brokers: one is fenced, and partitions are offline or lack a replica."""

    def _answer(self, request: Message) -> Message:
        if isinstance(request, ApiVersionsRequest):
            spoken = (
                ApiVersionsRequest,
                MetadataRequest,
                DescribeClusterRequest,
                DescribeLogDirsRequest,
                ListOffsetsRequest,
            )
            return ApiVersionsResponse(
                api_keys=[
                    ApiVersion(api_key=kind.api_key, min_version=kind.min_version, max_version=kind.max_version)
                    for kind in spoken
                ]
            )
        if isinstance(request, DescribeClusterRequest):
            brokers = [
                DescribeClusterBroker(broker_id=2, host="there", port=1, is_fenced=True),
                DescribeClusterBroker(broker_id=1, host="127.0.0.1", port=self.port),
            ]
            return DescribeClusterResponse(cluster_id="scripted", controller_id=1, brokers=brokers)
        if isinstance(request, DescribeLogDirsRequest):
            return DescribeLogDirsResponse(
                results=[
                    DescribeLogDirsResult(log_dir="/good", total_bytes=100, usable_bytes=50),
                    DescribeLogDirsResult(log_dir="/bad", error_code=56),
                ]
            )
        if isinstance(request, ListOffsetsRequest):
            indexes = [partition.partition_index for partition in request.topics[0].partitions]
            assert 2 not in indexes, "it has no leader"
            answers = [ListOffsetsPartitionResponse(partition_index=index, offset=7) for index in indexes]
            return ListOffsetsResponse(topics=[ListOffsetsTopicResponse(name="orders", partitions=answers)])
        assert isinstance(request, MetadataRequest)
        partitions = [
            MetadataResponsePartition(partition_index=index, leader_id=leader, replica_nodes=[1, 2], isr_nodes=isr)
            for index, (leader, isr) in enumerate([(1, [1, 2]), (1, [1]), (-1, [2])])
        ]
        return MetadataResponse(
            brokers=[MetadataResponseBroker(node_id=1, host="127.0.0.1", port=self.port)],
            controller_id=1,
            cluster_id="scripted",
            topics=[MetadataResponseTopic(name="orders", topic_id=bytes(15) + b"x", partitions=partitions)],
        )


def test_problems_are_listed_and_exit_code_1(call) -> None:
    with UnhealthyBroker() as broker:
        ran = call("cluster", "health", "-b", broker.bootstrap, "-o", "json")
        assert ran.code == 1
        assert [(problem["problem"], problem["what"]) for problem in ran.json["problems"]] == [
            ("offline", "orders-2"),
            ("under-replicated", "orders-1"),
            ("fenced", "broker 2"),
            ("log-dir-offline", "broker 1"),
        ]
    with UnhealthyBroker() as broker:
        shown = call("cluster", "health", "-b", broker.bootstrap)
        assert (shown.code, shown.lines[0]) == (1, "4 problems: 1 broker, 3 partitions")
        assert max(map(len, shown.lines)) <= 60
    with UnhealthyBroker() as broker:
        rows = call("log-dirs", "-b", broker.bootstrap, "-o", "json").ok().json
        assert [(row["dir"], row["state"]) for row in rows] == [("/good", "online"), ("/bad", "offline")]
    with UnhealthyBroker() as broker:
        assert (
            "/bad is offline (KAFKA_STORAGE_ERROR)" in call("log-dirs", "--by", "topic", "-b", broker.bootstrap).stderr
        )


def test_a_topic_with_an_offline_partition_is_described(call) -> None:
    """What has a leader is shown, at once; what needs the leader of the partition names it."""
    with UnhealthyBroker() as broker:
        (described,) = call("topic", "describe", "orders", "-b", broker.bootstrap, "-o", "json").ok().json
        assert [(row["leader"], row["end_offset"]) for row in described["partitions"]] == [(1, 7), (1, 7), (None, None)]
    with UnhealthyBroker() as broker:
        ran = call("topic", "trim", "-y", "orders:2", "--to", "end", "-b", broker.bootstrap, "--timeout", "0.3")
        assert (ran.code, "orders-2: LEADER_NOT_AVAILABLE: no broker leads the partition" in ran.stderr) == (4, True)


def test_sizes_by_directory_topic_and_partition(call, topic) -> None:
    call("topic", "create", topic, "-p", "2").ok()
    call("produce", topic, "-p", "1", stdin="x\n" * 100).ok()
    rows = call("log-dirs", topic, "-o", "json").ok().json
    assert [(row["topic"], row["partition"], row["broker"], row["lag"]) for row in rows] == [
        (topic, 0, 1, 0),
        (topic, 1, 1, 0),
    ]
    assert rows[0]["bytes"] == 0 < rows[1]["bytes"]
    (by_topic,) = call("log-dirs", topic, "--by", "topic", "-o", "json").ok().json
    assert by_topic == {"topic": topic, "partitions": 2, "bytes": rows[1]["bytes"]}
    (by_dir,) = call("log-dirs", "-o", "json").ok().json
    assert by_dir["dir"] == rows[0]["dir"]
    assert by_dir["bytes"] >= rows[1]["bytes"]
    assert by_dir["usable_bytes"] > 0
    assert [row["topic"] for row in call("log-dirs", f"{topic[:-1]}*", "-o", "json").ok().json] == [topic, topic]
    assert f"{rows[1]['bytes']} B" in call("log-dirs", topic, "-H").ok().stdout
    missing = call("log-dirs", f"{topic}-x")
    assert (missing.code, missing.stderr) == (3, f"barnabas: there is no topic '{topic}-x'; did you mean {topic}?\n")
    assert call("log-dirs", "--broker", "9").code == 3
    assert call("log-dirs", "--by", "host").code == 2


def test_features_are_listed_raised_and_lowered(call) -> None:
    def level() -> int:
        return {row["name"]: row["level"] for row in call("features", "list", "-o", "json").ok().json}["share.version"]

    before = level()
    assert call("features", "downgrade", f"share.version={before - 1}", "--dry-run").ok().stderr == (
        "dry run: nothing was changed\n"
    )
    assert level() == before
    call("features", "downgrade", f"share.version={before - 1}", "-y").ok()
    try:
        assert level() == before - 1
        refused = call("features", "downgrade", f"share.version={before}", "-y")
        assert (refused.code, "newer version" in refused.stderr) == (1, True)
    finally:
        raised = call("features", "upgrade", f"share.version={before}").ok()
    assert raised.stdout == f"share.version is at level {before}, before {before - 1}\n"
    assert level() == before


def test_mistakes_of_features(call) -> None:
    similar = call("features", "upgrade", "transaction.versoin=2")
    assert similar.code == 3
    assert similar.stderr.endswith("no feature transaction.versoin; did you mean transaction.version?\n")
    assert call("features", "upgrade", "transaction.version=99").code == 1
    assert call("features", "upgrade", "transaction.version").code == 2
    assert call("features", "upgrade", "transaction.version=x").code == 2


def test_producers_of_a_partition(call, broker, topic) -> None:
    call("topic", "create", topic, "-p", "2").ok()
    none = call("producers", topic).ok()
    assert (none.stdout, "no idempotent or transactional producer" in none.stderr) == ("", True)
    producer = Producer({"bootstrap.servers": broker.bootstrap, "enable.idempotence": True, "linger.ms": 0})
    for _ in range(3):
        producer.produce(topic, b"x", partition=1)
        assert producer.flush(30) == 0
    (row,) = call("producers", topic, "-o", "json").ok().json
    assert (row["partition"], row["epoch"], row["last_sequence"], row["txn_start"]) == (1, 0, 2, None)
    assert row["last_time"].endswith("Z")
    title, header, line = call("producers", f"{topic}:1").ok().lines
    assert title == topic
    assert len(header) <= 60
    assert line.split()[0] == "1"
    assert call("producers", f"{topic}:7").code == 3
    assert call("producers", f"{topic}:x").code == 2
    assert call("producers", f"{topic}-x").code == 3


def test_times_as_text() -> None:
    assert iso_time(1_763_715_600_000) == "2025-11-21T09:00:00.000Z"
    assert iso_time(-1) is None
    assert iso_time(2**62) == f"{2**62} ms"
