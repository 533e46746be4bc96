"""Kafka's own tools 4.3.1, run one after the other in one JVM (compat/kafka-tools/src/Tools.java)."""

from __future__ import annotations

import base64
import subprocess

from bench.servers import ROOT
from compat.jars import classpath
from compat.java import program
from tests.cli.kafka_tools.transcript import Output

FOLDER = ROOT / "compat" / "kafka-tools"
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


class KafkaTools:
    """The JVM; close it after use."""

    def __init__(self) -> None:
        classes = program.compiled(FOLDER / "src" / "Tools.java", FOLDER / "pom.xml")
        jvm = ["java", "-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Duser.timezone=UTC"]
        jvm += ["-Dorg.slf4j.simpleLogger.defaultLogLevel=off"]
        self.java = [*jvm, "-cp", f"{classes}:{classpath(FOLDER / 'pom.xml')}"]
        self.process = subprocess.Popen([*self.java, "Tools"], stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    def run(self, words: list[str], stdin: str) -> Output:
        """Run one command."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        fields = ["<" + base64.b64encode(stdin.encode()).decode()] if stdin else []
        fields += [CLASSES[words[0]], *words[1:]]
        self.process.stdin.write("\t".join(fields).encode() + b"\n")
        self.process.stdin.flush()
        answer = self.process.stdout.readline()
        assert answer, f"the tool has ended the JVM: {' '.join(words)}"
        code, *lengths = map(int, answer.split())
        out, errors = (self.process.stdout.read(length).decode() for length in lengths)
        return Output(out.splitlines(), errors.splitlines(), code)

    def close(self) -> None:
        """End the JVM."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.close()
        self.process.stdout.close()
        self.process.wait(30)
