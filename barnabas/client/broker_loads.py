"""The loads of the brokers, from each broker itself (`wire/broker_load.py`).

Errors: none for a broker that does not answer, or does not know the question: it is left out.
"""

from __future__ import annotations

from collections.abc import Iterable

from barnabas.client.cluster import Cluster
from barnabas.client.errors import ClientError
from barnabas.wire.broker_load import TAG, BrokerLoad, find
from barnabas.wire.errors import KafkaError, ProtocolError
from barnabas.wire.messages.metadata import DescribeClusterRequest, DescribeClusterResponse


def broker_loads(cluster: Cluster, brokers: Iterable[int], deadline: float) -> dict[int, BrokerLoad]:
    """The loads by broker, of those that tell it."""
    loads: dict[int, BrokerLoad] = {}
    for broker in brokers:
        request = DescribeClusterRequest()
        request.unknown_tagged_fields = ((TAG, b""),)
        try:
            answer = cluster.node(broker, deadline).call(request, DescribeClusterResponse, deadline)
        except (ClientError, KafkaError, ProtocolError):
            continue
        load = find(answer.unknown_tagged_fields)
        if load is not None:
            loads[broker] = load
    return loads


def score(load: BrokerLoad) -> float:
    """How loaded a broker is, 0 to 1, for a producer: CPU 0.4, memory 0.2, disk 0.2, message rate 0.2.

    The message rate counts as its part of 100,000 messages a second.
    """
    rate = min(1.0, load.messages_per_s / FULL_RATE)
    return min(1.0, 0.4 * load.cpu + 0.2 * load.memory + 0.2 * load.disk + 0.2 * rate)


FULL_RATE = 100_000.0
