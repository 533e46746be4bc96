"""Runs Kafka's own tools 4.3.1 by the names of their scripts."""

from __future__ import annotations

from tests.support.jvm.kafka_tools import run_tool
from tests.support.transcript import Output

CLASSES = {
    "kafka-acls": "AclCommand",
    "kafka-delegation-tokens": "DelegationTokenCommand",
    "kafka-broker-api-versions": "BrokerApiVersionsCommand",
    "kafka-client-metrics": "ClientMetricsCommand",
    "kafka-cluster": "ClusterTool",
    "kafka-configs": "kafka.admin.ConfigCommand",
    "kafka-console-consumer": "consumer.ConsoleConsumer",
    "kafka-console-producer": "ConsoleProducer",
    "kafka-console-share-consumer": "consumer.ConsoleShareConsumer",
    "kafka-consumer-groups": "consumer.group.ConsumerGroupCommand",
    "kafka-consumer-perf-test": "ConsumerPerformance",
    "kafka-delete-records": "DeleteRecordsCommand",
    "kafka-dump-log": "DumpLogSegments",
    "kafka-features": "FeatureCommand",
    "kafka-get-offsets": "GetOffsetShell",
    "kafka-groups": "GroupsCommand",
    "kafka-log-dirs": "LogDirsCommand",
    "kafka-producer-perf-test": "ProducerPerformance",
    "kafka-share-groups": "consumer.group.ShareGroupCommand",
    "kafka-streams-groups": "streams.StreamsGroupCommand",
    "kafka-topics": "TopicCommand",
    "kafka-transactions": "TransactionsCommand",
}


def run(words: list[str], stdin: str) -> Output:
    """Run one command."""
    done = run_tool(CLASSES[words[0]], *words[1:], stdin=stdin, level="off")
    return Output(done.out.splitlines(), done.errors.splitlines(), done.code)
