"""Which values of pushed metrics are kept, for how long, and within which bound."""

from __future__ import annotations

import pytest

from barnabas.coord.client_metrics import kept as module
from barnabas.coord.client_metrics.kept import KeptMetrics, labels, metric_name
from barnabas.wire.clients.otlp import Point
from tests.support.cases import for_each

CLIENT = {
    "client_instance_id": "id",
    "client_id": 'a "client"\n',
    "client_software_name": "x",
    "client_software_version": "1",
}
GAUGE = Point("queue.size", (("topic", "t"),), 5.0, is_monotonic=False, is_delta=False)
ADDED = Point("sent.total", (), 5.0, is_monotonic=True, is_delta=True)
TOTAL = Point("read.total", (), 5.0, is_monotonic=True, is_delta=False)


def values(metrics: KeptMetrics, name: str) -> list[float]:
    return [value for series in metrics.families[name].of.values() for value in series.values()]


def test_the_latest_value_of_a_gauge_counts_and_what_was_added_is_summed_up() -> None:
    metrics = KeptMetrics(10**6)
    for _ in range(3):
        client = metrics.begin(b"1", CLIENT, 60.0)
        for point in (GAUGE, ADDED, TOTAL):
            metrics.add(client, point)
    assert (values(metrics, "queue_size"), values(metrics, "sent_total"), values(metrics, "read_total")) == (
        [5.0],
        [15.0],
        [5.0],
    )
    assert [metrics.families[name].kind for name in ("queue_size", "sent_total")] == ["gauge", "counter"]
    assert (metrics.pushes, metrics.client_count) == (3, 1)


def test_labels_have_the_client_and_the_attributes_escaped() -> None:
    metrics = KeptMetrics(10**6)
    client = metrics.begin(b"1", CLIENT, 60.0)
    metrics.add(
        client, GAUGE._replace(attributes=(("client_id", "forged"), ("node.id", 'a\\b"c'), ("n", "1"), ("n", "2")))
    )
    assert client.labels.startswith('client_instance_id="id",client_id="a \\"client\\"\\n",')
    assert list(metrics.families["queue_size"].of[client]) == ['node_id="a\\\\b\\"c",n="2"']


@for_each(
    ("name", "shown"), [("org.apache.kafka-x", "org_apache_kafka_x"), ("9lives", "_9lives"), ("", "_"), ("é", "_")]
)
def test_names_are_those_that_prometheus_allows(name: str, shown: str) -> None:
    assert metric_name(name) == shown
    assert labels([(name, "v")]) == f'{shown}="v"'


def test_a_metric_with_two_types_has_none() -> None:
    metrics = KeptMetrics(10**6)
    metrics.add(metrics.begin(b"1", CLIENT, 60.0), GAUGE)
    metrics.add(metrics.begin(b"2", CLIENT, 60.0), GAUGE._replace(is_monotonic=True))
    assert metrics.families["queue_size"].kind == "untyped"


def test_series_are_forgotten_when_their_client_has_not_pushed_for_its_time() -> None:
    metrics = KeptMetrics(10**6)
    metrics.add(metrics.begin(b"1", CLIENT, 60.0), GAUGE)
    metrics.add(metrics.begin(b"2", CLIENT, 90.0), GAUGE)
    metrics.begin(b"1", CLIENT, 100.0)
    assert metrics.next_deadline() == 90.0
    metrics.expire(90.0)
    assert metrics.client_count == 1
    metrics.expire(100.0)
    assert (metrics.families, metrics.bytes, metrics.next_deadline()) == ({}, 0, None)


def test_clients_that_have_pushed_longest_ago_make_room() -> None:
    metrics = KeptMetrics(10_000)
    for number in range(50):
        client = metrics.begin(bytes([number]), CLIENT, 60.0)
        metrics.add(client, GAUGE)
        assert client in metrics.families["queue_size"].of
        assert metrics.bytes <= 10_000
    assert 0 < metrics.client_count < 50
    assert metrics.dropped == 0


def test_what_one_client_has_beyond_the_bound_is_dropped() -> None:
    metrics = KeptMetrics(10_000)
    client = metrics.begin(b"1", CLIENT, 60.0)
    for number in range(100):
        metrics.add(client, GAUGE._replace(attributes=(("topic", str(number)),)))
    assert metrics.bytes <= 10_000
    assert client.series + metrics.dropped == 100
    assert metrics.dropped > 0


@pytest.mark.parametrize(("limit", "most"), [("MAX_SERIES", 7), ("MAX_METRICS", 4)])
def test_a_client_has_a_bounded_number_of_series(monkeypatch: pytest.MonkeyPatch, limit: str, most: int) -> None:
    monkeypatch.setattr(module, limit, most)
    metrics = KeptMetrics(10**6)
    client = metrics.begin(b"1", CLIENT, 60.0)
    for number in range(10):
        metrics.add(client, GAUGE._replace(name=f"m{number}"))
    assert (client.series, metrics.dropped) == (most, 10 - most)
    metrics.add(client, GAUGE._replace(name="m0", value=9.0))
    assert values(metrics, "m0") == [9.0]


def test_a_client_that_was_forgotten_during_its_push_keeps_nothing() -> None:
    metrics = KeptMetrics(2_500)
    client = metrics.begin(b"1", CLIENT, 60.0)
    other = metrics.begin(b"2", CLIENT, 60.0)
    for number in range(5):
        metrics.add(other, GAUGE._replace(name=f"m{number}"))
    assert metrics.client_count == 1
    metrics.add(client, GAUGE)
    assert all(client not in family.of for family in metrics.families.values())
