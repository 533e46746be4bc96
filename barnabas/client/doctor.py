"""Checks whether a client can use a cluster, step by step in the order of a client's start: `barnabas doctor`.

A client connects to an address that it was given, asks for the cluster's brokers, and connects to the addresses that
these advertise. Each step is a `Check`; its text is one sentence, with the remedy if it failed. Nothing is changed.
"""

from __future__ import annotations

from collections.abc import Generator
from time import monotonic
from typing import NamedTuple, TypeAlias, TypeVar

from barnabas.client import probe
from barnabas.client.cluster import parse_addresses
from barnabas.client.connection import NodeConnection
from barnabas.client.errors import AuthenticationFailed, ClientError, TimedOut, TlsFailed, Unreachable, raise_for
from barnabas.client.security.settings import Security
from barnabas.terminal.plural import plural
from barnabas.wire.errors import ErrorCode, KafkaError, ProtocolError
from barnabas.wire.messages.configs import DescribeConfigsRequest, DescribeConfigsResource, DescribeConfigsResponse
from barnabas.wire.messages.fetch import FetchRequest
from barnabas.wire.messages.metadata import MetadataRequest, MetadataResponse, MetadataResponseBroker

BROKER_RESOURCE = 4
OLDEST_FETCH = 10
"""The version of Fetch in Kafka 2.1, the oldest broker that clients of version 4 talk to (KIP-896)."""
FAILURES = (ClientError, KafkaError, ProtocolError)


class Check(NamedTuple):
    """The outcome of one step."""

    name: str
    """resolve, connect, protocol, versions, metadata, cluster, controller, advertised, broker or partitions."""
    is_ok: bool
    text: str


T = TypeVar("T")
Checks: TypeAlias = Generator[Check, None, T]


class Doctor:
    """Examines the brokers at some addresses, and at the addresses that they advertise."""

    def __init__(
        self, bootstrap: str, timeout_s: float, software_version: str, security: Security | None = None
    ) -> None:
        """`bootstrap` is HOST:PORT, several separated by commas (ValueError); each step takes `timeout_s` at most."""
        self.addresses = parse_addresses(bootstrap)
        self._timeout_s = timeout_s
        self._software_version = software_version
        self._security = security
        self.was_reached = False
        """Whether a broker has described its cluster."""

    def checks(self) -> Checks[None]:
        """Make the checks one by one; checks that a failure makes impossible are left out."""
        described: MetadataResponse | None = None
        for host, port in self.addresses:
            name = _address(host, port)
            response = yield from self._described(host, port, "")
            if response is None:
                continue
            if described is not None and response.cluster_id != described.cluster_id:
                yield Check("cluster", False, _two_clusters(name, response.cluster_id, described.cluster_id))
            described = described or response
        if described is None:
            return
        self.was_reached = True
        brokers = described.brokers
        names = ", ".join(f"{broker.node_id} at {_address(broker.host, broker.port)}" for broker in brokers)
        yield Check(
            "cluster", bool(brokers), f"cluster {described.cluster_id}: {_count(len(brokers), 'broker')} ({names})"
        )
        yield _controller(described)
        for broker in brokers:
            yield from self.follow(broker, described)
        yield _partitions(described)

    def _described(self, host: str, port: int, advertised_by: str) -> Checks[MetadataResponse | None]:
        """The cluster as the broker at an address describes it. `advertised_by` begins the texts of failures."""
        connection = yield from self._opened(host, port, advertised_by)
        if connection is None:
            return None
        try:
            return self._metadata(connection)
        except TimedOut as error:
            yield Check("metadata", False, f"{advertised_by}{error}: the broker hangs, or is overloaded")
        except Unreachable:
            yield Check("metadata", False, f"{advertised_by}{connection.address} {_SASL}")
        except FAILURES as error:
            yield Check("metadata", False, f"{advertised_by}{error}")
        finally:
            connection.close()
        return None

    def _opened(self, host: str, port: int, advertised_by: str) -> Checks[NodeConnection | None]:
        """A connection on which ApiVersions was answered."""
        name = _address(host, port)
        try:
            addresses = probe.resolve(host, port)
        except Unreachable as error:
            yield Check(
                "resolve", False, f"{advertised_by}{error}{_unknown_name(host, is_advertised=bool(advertised_by))}"
            )
            return None
        if not advertised_by and addresses != [host]:
            yield Check("resolve", True, f"{host} is {', '.join(addresses)}")
        try:
            probe.connect(host, port, self._timeout_s).close()
        except Unreachable as error:
            remedy = _ADVERTISED_REMEDY if advertised_by else ""
            yield Check("connect", False, f"{advertised_by}{error}{remedy}")
            return None
        if not advertised_by:
            yield Check("connect", True, f"{name} accepts connections")
        connection = NodeConnection(host, port, "barnabas-doctor", self._software_version, self._security)
        try:
            connection.open(monotonic() + self._timeout_s)
        except (AuthenticationFailed, TlsFailed) as error:
            connection.close()
            yield Check("protocol", False, f"{advertised_by}{error}")
            return None
        except FAILURES:
            connection.close()
            what = probe.what_listens(host, port, self._timeout_s)
            yield Check("protocol", False, f"{advertised_by}{name} {what}")
            return None
        if not advertised_by:
            yield Check("protocol", True, f"{name} speaks Kafka's protocol")
            yield _versions(connection)
        return connection

    def _metadata(self, connection: NodeConnection) -> MetadataResponse:
        request = MetadataRequest(topics=None, allow_auto_topic_creation=False)
        if connection.version_for(request, None) == 0:
            request.topics = []  # in version 0 this means all topics
        return connection.call(request, MetadataResponse, monotonic() + self._timeout_s)

    # --- the addresses that brokers advertise

    def follow(self, broker: MetadataResponseBroker, described: MetadataResponse) -> Checks[None]:
        """Connect to an advertised address, and see that it is this broker of this cluster that answers there."""
        name = _address(broker.host, broker.port)
        prefix = f"broker {broker.node_id} advertises {name}: "
        others = [
            other.node_id for other in described.brokers if (other.host, other.port) == (broker.host, broker.port)
        ]
        if len(others) > 1:
            text = f"brokers {' and '.join(map(str, others))} advertise the same address: each needs one of its own"
            yield Check("advertised", False, prefix + text)
            return
        if _is_loopback(broker.host) and not any(_is_loopback(host) for host, _ in self.addresses):
            yield Check(
                *("advertised", False),
                f"{prefix}from here that is this machine, not the broker's; set advertised.listeners of the broker to "
                "an address that works from here",
            )
            return
        response = yield from self._described(broker.host, broker.port, prefix)
        if response is None:
            return
        if response.cluster_id != described.cluster_id:
            text = _two_clusters(name, response.cluster_id, described.cluster_id)
            yield Check("advertised", False, f"{prefix}{text}")
            return
        yield self._identity(broker, prefix)

    def _identity(self, broker: MetadataResponseBroker, prefix: str) -> Check:
        """Whether the broker at an address is this one: only itself describes its configuration."""
        connection = NodeConnection(broker.host, broker.port, "barnabas-doctor", self._software_version, self._security)
        deadline = monotonic() + self._timeout_s
        try:
            connection.open(deadline)
            resource = DescribeConfigsResource(
                resource_type=BROKER_RESOURCE, resource_name=str(broker.node_id), configuration_keys=["node.id"]
            )
            response = connection.call(DescribeConfigsRequest(resources=[resource]), DescribeConfigsResponse, deadline)
            raise_for(response.results[0].error_code, "its configuration", response.results[0].error_message)
        except KafkaError as error:
            if error.code == ErrorCode.INVALID_REQUEST:
                return Check("advertised", False, f"{prefix}another broker of the cluster answers there")
        except FAILURES as error:
            return Check("advertised", False, f"{prefix}{error}")
        finally:
            connection.close()
        return Check("advertised", True, f"{prefix}it answers there")


_SASL = "closes the connection after ApiVersions: if its listener requires SASL, security.protocol must say so"
_ADVERTISED_REMEDY = (
    "; connect to the listener that is for clients here, or set advertised.listeners of the broker to an address that "
    "works from here"
)


def _unknown_name(host: str, *, is_advertised: bool) -> str:
    if is_advertised:
        return _ADVERTISED_REMEDY
    if "." in host:
        return ": check its spelling, and the DNS"
    return ": check its spelling; the name of a container is known only to containers of the same network"


def _versions(connection: NodeConnection) -> Check:
    """Whether the broker is new enough for today's clients."""
    fetch = connection.versions.get(FetchRequest.api_key)
    newest = -1 if fetch is None else fetch.max_version
    if newest < OLDEST_FETCH:
        return Check(
            *("versions", False),
            f"{connection.address} offers Fetch up to version {newest}: it is older than Kafka 2.1, and clients of "
            "version 4 do not talk to it",
        )
    return Check("versions", True, f"{_count(len(connection.versions), 'API')}, Fetch up to version {newest}")


def _controller(described: MetadataResponse) -> Check:
    known = {broker.node_id for broker in described.brokers}
    if described.controller_id not in known:
        return Check(
            *("controller", False),
            "the cluster has no controller: topics cannot be created or changed, and no new leader is elected",
        )
    return Check("controller", True, f"broker {described.controller_id} answers for the controller")


def _partitions(described: MetadataResponse) -> Check:
    """Partitions without a leader can be neither written nor read."""
    partitions = [(topic.name, partition) for topic in described.topics for partition in topic.partitions]
    offline = [f"{name}-{partition.partition_index}" for name, partition in partitions if partition.leader_id < 0]
    if offline:
        some = ", ".join(offline[:3]) + (" …" if len(offline) > 3 else "")
        return Check(
            "partitions", False, f"{_count(len(offline), 'partition')} of {len(partitions)} without a leader: {some}"
        )
    lagging = sum(len(partition.isr_nodes) < len(partition.replica_nodes) for _, partition in partitions)
    text = f"{_count(len(described.topics), 'topic')}, {_count(len(partitions), 'partition')}, all with a leader"
    return Check("partitions", True, text + (f"; {lagging} with replicas that are behind" if lagging else ""))


def _two_clusters(name: str, cluster_id: str | None, expected: str | None) -> str:
    return f"another cluster answers at {name}: its id is {cluster_id}, not {expected}"


def _is_loopback(host: str) -> bool:
    """Whether an address is this machine; a client that connects to 0.0.0.0 or :: reaches it too."""
    return host.lower() in ("localhost", "::1", "0.0.0.0", "::") or host.startswith("127.")


def _address(host: str, port: int) -> str:
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def _count(number: int, noun: str) -> str:
    return f"{number:,} {plural(noun, number)}"
