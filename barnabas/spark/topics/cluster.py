"""Requests of the driver to a broker: topics, offsets, configs.

Spark sends the same requests, but reports an unreachable broker only after minutes.
"""

from __future__ import annotations

import json
import logging
import re
import socket
import time
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from confluent_kafka import Consumer, KafkaError, KafkaException, TopicCollection, TopicPartition
from confluent_kafka.admin import AdminClient, ConfigResource, NewTopic, OffsetSpec

from barnabas.spark.errors import (
    BrokerSilentError,
    BrokerUnavailableError,
    MistakeError,
    NotAuthorizedError,
    NotFoundError,
    PipelineError,
)
from barnabas.spark.topics.broker import Broker, broker_of
from barnabas.terminal.suggestion import suggestion

REQUEST_TIMEOUT_S = 5.0
"""Timeout of a metadata request, seconds."""
RECONNECT_MS = 1000
"""Longest backoff of librdkafka before a reconnect, milliseconds."""
RETRY_S = 0.2
"""Interval between two attempts to reach a broker, seconds."""
CONNECT_TIMEOUT_S = 2.0
"""Timeout of a connection that only shows whether something listens, seconds."""
MOST_REPORTS = 16
"""How many of librdkafka's latest errors are kept."""
ADDRESS = re.compile(r"(\w+://)?([^\s:/]+|\[[0-9a-fA-F:.]+\]):\d{1,5}")
COMMITTED_TIMEOUT_S = 60.0
"""Timeout for reading committed offsets, seconds."""
MOVING = (
    KafkaError.NOT_COORDINATOR,
    KafkaError.COORDINATOR_NOT_AVAILABLE,
    KafkaError.COORDINATOR_LOAD_IN_PROGRESS,
)
DENIED = (
    KafkaError.TOPIC_AUTHORIZATION_FAILED,
    KafkaError.GROUP_AUTHORIZATION_FAILED,
    KafkaError.CLUSTER_AUTHORIZATION_FAILED,
)
Offsets = dict[str, dict[int, int]]
"""Offsets by topic and partition."""


def read_offsets(text: str | None) -> Offsets:
    """Offsets as Spark writes them, `{"orders": {"0": 12}}`; empty if the text is incomplete or of another source."""
    try:
        offsets = json.loads(text or "")
        return {topic: {int(p): int(offset) for p, offset in own.items()} for topic, own in offsets.items()}
    except (ValueError, AttributeError, TypeError):
        return {}


SILENT = logging.getLogger("barnabas.pipeline.librdkafka")
"""The logger of librdkafka's clients; it discards everything, because errors are raised as exceptions."""
SILENT.addHandler(logging.NullHandler())
SILENT.propagate = False


class Cluster:
    """A connection to one cluster."""

    def __init__(self, broker: str | Broker) -> None:
        """Sends nothing yet. MistakeError for a malformed address, and for keys and certificates that do not load."""
        broker = broker_of(broker)
        bootstrap = broker.bootstrap
        for address in bootstrap.split(","):
            if not ADDRESS.fullmatch(address.strip()):
                raise MistakeError(f"{address!r} is not a broker address: write HOST:PORT, several separated by commas")
        self.bootstrap = bootstrap
        self._config: dict[str, Any] = {
            **broker.for_librdkafka(),
            "socket.connection.setup.timeout.ms": 4000,
            "reconnect.backoff.max.ms": RECONNECT_MS,
        }
        self._protocol = broker.security.protocol
        self._reports: deque[KafkaError] = deque(maxlen=MOST_REPORTS)
        try:
            self._admin = AdminClient({**self._config, "error_cb": self._reports.append}, logger=SILENT)
        except KafkaException as error:
            raise MistakeError(f"[security] cannot be used: {error.args[0].str()}") from None

    def topics(self) -> dict[str, int]:
        """Every topic and its number of partitions; BrokerUnavailableError when no broker answers in 5 seconds."""
        try:
            return self._topics(REQUEST_TIMEOUT_S)
        except KafkaException as error:
            self._raise_refused_login()
            raise self._unavailable() from error

    def wait_for_topics(self, wait_s: float, on_wait: Callable[[str], None]) -> dict[str, int]:
        """As `topics`, but a broker that does not answer is tried again for `wait_s` seconds.

        `on_wait` is called with the address when the first try has failed. BrokerUnavailableError after the last one.
        """
        deadline = time.monotonic() + wait_s
        is_first = True
        while True:
            left_s = deadline - time.monotonic()
            try:
                return self._topics(REQUEST_TIMEOUT_S if is_first else min(REQUEST_TIMEOUT_S, max(left_s, 0.1)))
            except KafkaException as error:
                self._raise_refused_login()
                if time.monotonic() >= deadline:
                    raise self._unavailable(wait_s) from error
                if is_first:
                    on_wait(self.bootstrap)
                is_first = False
                time.sleep(RETRY_S)

    def _topics(self, timeout_s: float) -> dict[str, int]:
        metadata = self._admin.list_topics(timeout=timeout_s)
        return {name: len(topic.partitions) for name, topic in metadata.topics.items()}

    def _raise_refused_login(self) -> None:
        """NotAuthorizedError if the broker has refused the user."""
        self._admin.poll(0)  # delivers the reports
        for report in self._reports:
            if report.code() == KafkaError._AUTHENTICATION:
                raise NotAuthorizedError(f"{self.bootstrap} refuses the log-in of [security]: {report.str()}")

    def _tls_failure(self) -> str:
        """Why TLS has failed, if it has."""
        failed = next((report for report in self._reports if report.code() == KafkaError._SSL), None)
        return "" if failed is None else f" ({failed.str().strip().splitlines()[0]})"

    def _unavailable(self, waited_s: float = 0) -> BrokerUnavailableError:
        waited = f", tried for {waited_s:g} s" if waited_s else ""
        if any(_accepts(address) for address in self.bootstrap.split(",")):
            return BrokerSilentError(
                f"{self.bootstrap} accepts connections and does not answer{waited}: is it a Kafka broker's address, "
                f"of a listener with {self._protocol} ([security] security.protocol)?{self._tls_failure()}"
            )
        return BrokerUnavailableError(
            f"no broker answers at {self.bootstrap}{waited}: is it running, and is the address right? "
            "('barnabas serve' starts one)"
        )

    def matching(self, topics: Iterable[str], pattern: str) -> dict[str, int]:
        """The topics with these names, or those that match the whole pattern, with their number of partitions.

        MistakeError for a name that does not exist. `pattern` is a Java regular expression; if Python cannot compile
        it, all topics are returned.
        """
        known = self.topics()
        if pattern:
            try:
                regex = re.compile(pattern)
            except re.error:
                return known
            return {name: count for name, count in known.items() if regex.fullmatch(name)}
        for topic in topics:
            if topic not in known:
                near = suggestion(topic, list(known))
                raise NotFoundError(f"there is no topic {topic} at {self.bootstrap}{near or _others(known)}")
        return {topic: known[topic] for topic in topics}

    def create(self, topic: str, partitions: int, config: Mapping[str, str] | None = None) -> bool:
        """Create a topic; False if it exists."""
        future = self._admin.create_topics([NewTopic(topic, partitions, -1, config=dict(config or {}))])[topic]
        try:
            future.result(30)
        except KafkaException as error:
            if error.args[0].code() == KafkaError.TOPIC_ALREADY_EXISTS:
                return False
            raise _refused(f"topic {topic} cannot be created at {self.bootstrap}", error) from error
        return True

    def create_missing(self, topic: str) -> bool:
        """Create a topic with the broker's number of partitions; False if it exists."""
        return topic not in self.topics() and self.create(topic, -1)

    def topic_config(self, topic: str, key: str) -> str:
        """The value of a topic's config key."""
        resource = ConfigResource(ConfigResource.Type.TOPIC, topic)
        try:
            return str(self._admin.describe_configs([resource])[resource].result(30)[key].value)
        except KafkaException as error:
            raise _refused(f"{self.bootstrap} does not return {key} of {topic}", error) from error

    def topic_ids(self, topics: Iterable[str]) -> dict[str, str]:
        """The ids of the topics that exist. A topic that was deleted and created again has a new id."""
        names = list(topics)
        if not names:
            return {}
        ids: dict[str, str] = {}
        for name, future in self._admin.describe_topics(TopicCollection(names)).items():
            try:
                ids[name] = str(future.result(30).topic_id)
            except KafkaException as error:
                if error.args[0].code() != KafkaError.UNKNOWN_TOPIC_OR_PART:
                    raise _refused(f"{self.bootstrap} does not describe {name}", error) from error
        return ids

    def ends(self, topics: Mapping[str, int]) -> Offsets:
        """The next offset of every partition of these topics (with their numbers of partitions)."""
        requests = {
            TopicPartition(topic, p): OffsetSpec.latest() for topic, count in topics.items() for p in range(count)
        }
        offsets: Offsets = {topic: {} for topic in topics}
        if not requests:
            return offsets
        for where, future in self._admin.list_offsets(requests).items():
            try:
                offsets[where.topic][where.partition] = future.result(30).offset
            except KafkaException as error:
                place = f"{where.topic}-{where.partition}"
                raise _refused(f"{self.bootstrap} does not return the offsets of {place}", error) from error
        return offsets

    def committed(self, group: str, topic: str, partitions: int) -> dict[int, TopicPartition]:
        """The committed offsets of a group for a topic's partitions. Waits for open transactions of the group."""
        consumer = Consumer({**self._config, "group.id": group}, logger=SILENT)
        try:
            positions = [TopicPartition(topic, partition) for partition in range(partitions)]
            return {
                position.partition: position for position in committed_by(consumer, positions) if position.offset >= 0
            }
        finally:
            consumer.close()


def committed_by(consumer: Consumer, partitions: list[TopicPartition]) -> list[TopicPartition]:
    """The committed offsets of the consumer's group. Retries while the coordinator is loading or moving.

    KafkaException after a timeout, which is long because a new Kafka creates `__consumer_offsets` at this request.
    """
    deadline = time.monotonic() + COMMITTED_TIMEOUT_S
    while True:
        try:
            committed: list[TopicPartition] = consumer.committed(partitions, timeout=COMMITTED_TIMEOUT_S)
        except KafkaException as error:
            if error.args[0].code() not in MOVING or time.monotonic() > deadline:
                raise
            consumer.poll(0.1)  # lets it find the coordinator
        else:
            return committed


def _refused(what: str, error: KafkaException) -> PipelineError:
    """The error of a request that the broker has refused."""
    reason = error.args[0]
    kind = NotAuthorizedError if reason.code() in DENIED else PipelineError
    return kind(f"{what}: {reason.str()}")


def _accepts(address: str) -> bool:
    """Whether something accepts connections at HOST:PORT."""
    host, _, port = address.strip().rpartition("://")[2].rpartition(":")
    try:
        socket.create_connection((host.strip("[]"), int(port)), CONNECT_TIMEOUT_S).close()
    except (OSError, OverflowError):
        return False
    return True


def _others(known: Mapping[str, int]) -> str:
    names = sorted(name for name in known if not name.startswith("__"))
    if not names:
        return ", which has no topics: create it, and produce to it"
    shown = ", ".join(names[:8]) + (" ..." if len(names) > 8 else "")
    return f": create it, or name one of {shown}"
