"""A rolling migration from Apache Kafka to Barnabas and back: `python -m tests.cluster.migration [--there|--back]`.

Three brokers of Kafka 4.4.0 under three of its controllers, in Kafka's default format, serve clients of every kind. One
broker after the other is stopped by controlled shutdown, and Barnabas is started with the same `server.properties` on
the same directory, as docs/migrating-from-kafka.md says, `barnabas serve --check` first; then back again. All replicas
are in sync before the next one. `--baseline` starts Kafka again each time instead, to separate defects of clients from
ours.
"""

from __future__ import annotations

import argparse
import os
import random
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from compat.exactly_once.share_run import SHARE_BROKER
from tests.cluster.load.loads import Copies, Load
from tests.cluster.load.stream_loads import Spark, Streams
from tests.cluster.rolling import Outcome, Rolling, Step, end_in_order
from tests.support.cluster.clusters import BrokerNode, Cluster
from tests.support.cluster.kafka_node import KafkaNode
from tests.support.processes.server import Server

KAFKA, BARNABAS = "kafka", "barnabas"
LIBRARIES: Mapping[str, Mapping[str, str]] = {
    "confluent": {"client": "confluent"},
    "confluent-consumer": {"client": "confluent", "protocol": "consumer"},
    "java": {"client": "java"},
    "java-consumer": {"client": "java", "protocol": "consumer"},
    "kafka-python": {"client": "kafka-python", "protocol": "group"},
    "aiokafka": {"client": "aiokafka", "protocol": "group"},
    "share": {"client": "confluent", "protocol": "share"},
}
"""Loads of `compat.exactly_once` by name."""
ALL = ("confluent", "java-consumer", "kafka-python", "aiokafka", "streams", "spark")
SMALL = ("confluent", "java-consumer")
CHECK_S = 60.0


class FileNode(BrokerNode):
    """Barnabas with the properties file of the Kafka broker whose directory it has."""

    def __init__(self, data_dir: Path, keys: Mapping[str, str], cluster_id: str, port: int) -> None:
        super().__init__(data_dir, keys, cluster_id, port)
        self.properties = data_dir.with_name(data_dir.name + "-kafka") / "server.properties"

    def _command(self) -> tuple[list[str], dict[str, str]]:
        _, environment = super()._command()
        del environment["CLUSTER_ID"]  # the directory has it
        command = [sys.executable, "-m", "barnabas", "serve", "--config", str(self.properties)]
        return [*command, "--ready-file", str(self._ready_file)], environment

    def check(self) -> None:
        """`barnabas serve --check` while Kafka still runs. AssertionError if something stands against it."""
        command = [sys.executable, "-m", "barnabas", "serve", "--check", "--config", str(self.properties)]
        done = subprocess.run(
            command,
            cwd=self.checkout,
            env=dict(os.environ),
            capture_output=True,
            text=True,
            timeout=CHECK_S,
            check=False,
        )
        if done.returncode != 0:
            raise AssertionError(f"--check ended with {done.returncode}:\n{done.stdout}{done.stderr}")


class Migrating(Cluster):
    """A cluster whose brokers of ours are started with Kafka's properties files."""

    def _node(self, software: str, directory: Path, keys: Mapping[str, str], port: int) -> Server:
        kind = KafkaNode if software == KAFKA else FileNode
        return kind(directory, keys, self.quorum.cluster_id, port)

    def to_barnabas(self, broker: int) -> None:
        """Check, and replace Kafka."""
        now = self.brokers[broker]
        FileNode(now.data_dir, now.config, self.quorum.cluster_id, now.port).check()
        self.replace(broker, BARNABAS)

    def data_dirs(self) -> dict[int, Path]:
        """The directories of the brokers."""
        return {broker: node.data_dir for broker, node in self.brokers.items()}

    def our_logs(self) -> dict[str, str]:
        """What our brokers have written, and Kafka's in the same files."""
        return {node.data_dir.name: node.log() for node in self.brokers.values()}


def steps_of(cluster: Migrating, ways: str, *, baseline: bool) -> Iterator[Step]:
    """The replacements: `there`, `back` or `both`."""
    if ways != "back":
        for broker in sorted(cluster.brokers):
            if baseline:
                yield f"broker {broker} from Kafka to Kafka", _again(cluster, broker)
            else:
                yield f"broker {broker} from Kafka to Barnabas", lambda broker=broker: cluster.to_barnabas(broker)
    if ways != "there":
        for broker in sorted(cluster.brokers):
            if baseline:
                yield f"broker {broker} from Kafka to Kafka again", _again(cluster, broker)
            else:
                yield f"broker {broker} from Barnabas to Kafka", _again(cluster, broker)


def _again(cluster: Migrating, broker: int) -> Callable[[], None]:
    def replace() -> None:
        cluster.replace(broker, KAFKA)

    return replace


def make(name: str, cluster: Migrating, folder: Path, seed: int, rate: int) -> Load:
    """A load by name."""
    if name == "spark":
        return Spark(name, cluster.bootstrap, folder, seed)
    if name.startswith("streams"):
        settings = ("group.protocol=streams",) if name.endswith("-protocol") else ("consumer.session.timeout.ms=10000",)
        return Streams(name, cluster.bootstrap, folder, seed, settings=settings)
    return Copies(name, cluster, folder, seed, rate=rate, **LIBRARIES[name])


def run(folder: Path, names: list[str], ways: str, seed: int, rate: int, *, baseline: bool = False) -> Outcome:
    """One run. A way back begins with brokers of ours, which have taken the directories over without load."""
    config = SHARE_BROKER | {"default.replication.factor": "3"}
    software = dict.fromkeys((1, 2, 3), KAFKA)
    cluster = Migrating(folder / "cluster", kind=KAFKA, config=config, software=software, default_format=True)
    with cluster:
        if ways == "back" and not baseline:
            rolling = Rolling(cluster.bootstrap, [], seed)
            for broker in sorted(cluster.brokers):
                cluster.to_barnabas(broker)
                rolling.settle()
        loads = [make(name, cluster, folder, seed * 10 + number, rate) for number, name in enumerate(names)]
        steps = steps_of(cluster, ways, baseline=baseline)
        return Rolling(cluster.bootstrap, loads, seed)(steps, cluster.data_dirs, cluster.our_logs)


def main(arguments: list[str]) -> int:
    """Run the command; the exit code is 0 without findings."""
    parser = argparse.ArgumentParser(prog="python -m tests.cluster.migration")
    way = parser.add_mutually_exclusive_group()
    way.add_argument(
        "--there", dest="ways", action="store_const", const="there", default="both", help="only to Barnabas"
    )
    way.add_argument("--back", dest="ways", action="store_const", const="back", help="only back to Kafka")
    parser.add_argument("--baseline", action="store_true", help="start Kafka again each time instead of Barnabas")
    parser.add_argument(
        "--loads", default=",".join(ALL), help=f"of {','.join([*LIBRARIES, 'streams', 'streams-protocol', 'spark'])}"
    )
    parser.add_argument("--rate", type=int, default=100, help="records per second of each writer")
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(2**16))
    parser.add_argument("--folder", type=Path)
    options = parser.parse_args(arguments)
    end_in_order()
    folder = options.folder or Path(tempfile.mkdtemp(prefix="migration-"))
    print(f"seed {options.seed}, {folder}", flush=True)
    names = options.loads.split(",")
    outcome = run(folder, names, options.ways, options.seed, options.rate, baseline=options.baseline)
    outcome.tell()
    return 1 if outcome.findings else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
