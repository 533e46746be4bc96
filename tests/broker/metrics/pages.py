"""A broker in memory with a listener of metrics, and its page as Prometheus reads it."""

from __future__ import annotations

import socket
from collections.abc import Iterable
from pathlib import Path

from prometheus_client.parser import text_string_to_metric_families

from barnabas.broker.exporter import broker_figures
from barnabas.broker.exporter.page import Page
from barnabas.broker.exporter.scrape import all_steps
from barnabas.broker.metrics.meter import Meter
from barnabas.broker.net.acceptor import Listener
from barnabas.wire.clients.broker_load import BrokerLoad
from barnabas.wire.messages.fetch import FetchRequest, FetchRequestFetchPartition, FetchRequestFetchTopic, FetchResponse
from barnabas.wire.messages.groups import offsets as o
from barnabas.wire.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)
from tests.support.memory.broker import Client, MemoryBroker, batch
from tests.support.requests.groups import find

Labels = frozenset[tuple[str, str]]
Samples = dict[str, dict[Labels, float]]
"""By name of the sample, its values by labels."""


class Metered(MemoryBroker):
    """A broker that counts for its listener of metrics; there is no socket."""

    def __init__(self, data_dir: Path, **sets: str) -> None:
        keys = {key.replace("_", "."): value for key, value in sets.items()}
        super().__init__(data_dir, {"barnabas.metrics.listener": "127.0.0.1:0", **keys})

    @property
    def meter(self) -> Meter:
        return meter_of(self)

    def text(self) -> str:
        """What a scrape would get."""
        return text_of(self)

    def samples(self) -> Samples:
        """What Prometheus has after a scrape."""
        return samples_of(self.text())


def meter_of(memory: MemoryBroker) -> Meter:
    meter = memory.broker.meter
    assert meter is not None
    return meter


def text_of(memory: MemoryBroker, ends: dict[tuple[str, int], int] | None = None) -> str:
    """What a scrape of a broker would get; `ends` are what other brokers tell."""
    page = Page()
    machine = broker_figures.Machine()
    machine.read(memory.broker)
    machine.add(page)
    broker_figures.add_load(page, BrokerLoad(0.25, 0.5, 1024.0, 0.75, 10.0, 2.5, 3.0, 60.0), 7)
    broker_figures.add_listeners(page, listeners(), {"PLAINTEXT": 5, "SASL_SSL": 2})
    broker_figures.add_clients(page, memory.broker.client_metrics)
    for _ in all_steps(page, memory.broker, meter_of(memory), ends or {}):
        pass
    broker_figures.add_loop(page, meter_of(memory), idle=0.9)
    return "".join(page.pieces())


def listeners() -> Iterable[Listener]:
    """A listener without and one with log-ins."""
    with socket.socket() as unused:
        plain = Listener("PLAINTEXT", unused, protocol="PLAINTEXT")
        secured = Listener("SASL_SSL", unused, protocol="SASL_SSL")
    secured.log_ins.successful_authentications = 3
    secured.log_ins.failed_authentications = 1
    return plain, secured


def samples_of(text: str) -> Samples:
    """The samples of a page; each series is there once."""
    samples: Samples = {}
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            series = samples.setdefault(sample.name, {})
            labels = frozenset(sample.labels.items())
            assert labels not in series, f"{sample.name} {sample.labels} twice"
            series[labels] = sample.value
    return samples


def value(samples: Samples, name: str, **labels: str) -> float | None:
    """The value of one series; None if there is none."""
    return samples.get(name, {}).get(frozenset(labels.items()))


def produce(client: Client, topic: str, *values: bytes, index: int = 0) -> int:
    """Produce a batch; the error code."""
    data = PartitionProduceData(index=index, records=batch(*values))
    request = ProduceRequest(acks=-1, timeout_ms=1000, topic_data=[TopicProduceData(name=topic, partition_data=[data])])
    response = client.ask(request, 9, ProduceResponse)
    return response.responses[0].partition_responses[0].error_code


def fetch(client: Client, topic: str, offset: int = 0, index: int = 0) -> int:
    """Fetch from a partition; the bytes of records."""
    partition = FetchRequestFetchPartition(partition=index, fetch_offset=offset, partition_max_bytes=10**6)
    request = FetchRequest(
        max_wait_ms=0,
        min_bytes=1,
        max_bytes=10**6,
        session_epoch=-1,
        topics=[FetchRequestFetchTopic(topic=topic, partitions=[partition])],
    )
    return len(client.ask(request, 12, FetchResponse).responses[0].partitions[0].records or b"")


def commit(client: Client, group: str, topic: str, *offsets: int) -> None:
    """Commit offsets of the first partitions of a topic."""
    assert not find(client, group).error_code
    partitions = [
        o.OffsetCommitRequestPartition(partition_index=index, committed_offset=offset)
        for index, offset in enumerate(offsets)
    ]
    request = o.OffsetCommitRequest(
        group_id=group,
        generation_id_or_member_epoch=-1,
        topics=[o.OffsetCommitRequestTopic(name=topic, partitions=partitions)],
    )
    response = client.ask(request, 8, o.OffsetCommitResponse)
    assert not any(partition.error_code for partition in response.topics[0].partitions)
