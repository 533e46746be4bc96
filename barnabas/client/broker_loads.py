"""The loads of the brokers, from each broker itself (`wire/clients/broker_load.py`).

Errors: none for a broker that does not answer, or does not know the question: it is left out.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from barnabas.client.cluster import Cluster
from barnabas.client.errors import ClientError
from barnabas.wire.clients.broker_load import TAG, BrokerLoad, find
from barnabas.wire.errors import KafkaError, ProtocolError
from barnabas.wire.messages.metadata import DescribeClusterRequest, DescribeClusterResponse
from barnabas.wire.schema import Message

REFRESH_S = 2.0
"""How often a producer asks brokers for their loads, seconds."""
CONNECT_S = 1.0
FULL_RATE = 100_000.0
"""Messages a second that count as a full load."""


def broker_loads(cluster: Cluster, brokers: Iterable[int], deadline: float) -> dict[int, BrokerLoad]:
    """The loads by broker, of the brokers that answer."""
    loads: dict[int, BrokerLoad] = {}
    for broker in brokers:
        try:
            request = _question()
            response = cluster.node(broker, deadline).call(request, DescribeClusterResponse, deadline)
        except (ClientError, KafkaError, ProtocolError):
            continue
        load = find(response.unknown_tagged_fields)
        if load is not None:
            loads[broker] = load
    return loads


def score(load: BrokerLoad) -> float:
    """How loaded a broker is, 0 to 1, for a producer: CPU 0.4, memory 0.2, disk 0.2, message rate 0.2.

    The message rate counts as its part of 100,000 messages a second.
    """
    rate = min(1.0, load.messages_per_s / FULL_RATE)
    return min(1.0, 0.4 * load.cpu + 0.2 * load.memory + 0.2 * load.disk + 0.2 * rate)


def _question() -> DescribeClusterRequest:
    request = DescribeClusterRequest()
    request.unknown_tagged_fields = ((TAG, b""),)
    return request


class Loads:
    """The scores of brokers for a producer, asked for now and then beside its other requests."""

    def __init__(self) -> None:
        self._scores: dict[int, float] = {}
        self._requested_at = -REFRESH_S

    def scores(self, cluster: Cluster, brokers: Sequence[int], now: float) -> list[float] | None:
        """The score of each of `brokers`; None if there is only one, or no broker answers."""
        different = set(brokers)
        if len(different) < 2:
            return None
        if now >= self._requested_at + REFRESH_S:
            self._requested_at = now
            for broker in different:
                self._ask(cluster, broker, now)
        if not self._scores:
            return None
        unknown = sum(self._scores.values()) / len(self._scores)
        return [self._scores.get(broker, unknown) for broker in brokers]

    def _ask(self, cluster: Cluster, broker: int, now: float) -> None:
        def answered(reply: Message | None, _error: ClientError | None) -> None:
            load = find(reply.unknown_tagged_fields) if isinstance(reply, DescribeClusterResponse) else None
            if load is None:
                self._scores.pop(broker, None)
            else:
                self._scores[broker] = score(load)

        try:
            cluster.node(broker, now + CONNECT_S).send(_question(), answered)
        except (ClientError, KafkaError, ProtocolError):
            self._scores.pop(broker, None)
