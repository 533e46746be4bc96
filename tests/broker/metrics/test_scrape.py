"""What a scrape has: the values, their types, labels of hostile names, and the limit of labels."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families

from barnabas.broker.exporter.declarations import COUNTER, GAUGE, HISTOGRAM, LABELS, METRICS, OURS, SUMMARY
from barnabas.broker.metrics.labels import OTHER
from barnabas.wire.errors import ErrorCode
from barnabas.wire.messages.groups.classic_groups import HeartbeatRequest, HeartbeatResponse
from barnabas.wire.messages.topics import DeleteTopicsRequest, DeleteTopicsResponse
from tests.broker.metrics.pages import Metered, Samples, commit, fetch, produce, samples_of, value
from tests.support.memory.broker import MemoryBroker


@pytest.fixture
def memory(tmp_path: Path) -> Iterator[Metered]:
    broker = Metered(tmp_path / "data")
    yield broker
    broker.close()


def of_topic(samples: Samples, name: str, topic: str) -> float | None:
    return value(samples, name, topic=topic)


def test_each_metric_is_declared_once_with_a_name_that_says_type_and_unit() -> None:
    kinds = {metric.name: metric.kind for metric in METRICS}
    for metric in METRICS:
        assert metric.kind in {COUNTER, GAUGE, HISTOGRAM, SUMMARY}
        assert kinds[metric.name] == metric.kind, metric.name
        assert metric.help.endswith("."), metric.name
        assert "\n" not in metric.help
        if metric.family == OURS:
            assert metric.name.endswith("_total") == (metric.kind == COUNTER), metric.name
            for unit in ("seconds", "bytes", "ratio"):
                ends = metric.name.removesuffix("_total").endswith((f"_{unit}", f"_{unit}_in", f"_{unit}_out"))
                assert (metric.unit == unit) == ends, metric
    assert len({(metric.name, metric.source) for metric in METRICS}) == len(METRICS)
    assert {metric.source for metric in METRICS} == set(LABELS)


def test_types_and_help_are_what_prometheus_reads(memory: Metered) -> None:
    client = memory.client()
    memory.create_topic("t")
    assert not produce(client, "t", b"1")
    assert fetch(client, "t")
    commit(client, "g", "t", 0)
    text = memory.text()
    families = {family.name: family for family in text_string_to_metric_families(text)}
    seen = set()
    for metric in METRICS:
        family = families.get(metric.name) or families.get(metric.name.removesuffix("_total"))
        if family is None:
            continue
        seen.add(metric.name)
        assert family.type == metric.kind
        assert family.documentation == metric.help
    assert set(families) == {name.removesuffix("_total") if name not in families else name for name in seen}
    # without a listener with log-ins, a limit of files, /proc/self/io or a quota these are not there
    missing = {metric.name for metric in METRICS} - seen
    assert missing <= {
        "barnabas_throttle_seconds",
        "barnabas_request_errors_total",
        "kafka_network_requestmetrics_errors_total",
        "kafka_network_requestmetrics_throttletimems",
        "process_max_fds",
        "kafka_server_kafkaserver_linux_disk_read_bytes",
        "kafka_server_kafkaserver_linux_disk_write_bytes",
    }


def test_appends_fetches_and_failures_are_counted_by_topic_and_in_all(memory: Metered) -> None:
    client = memory.client()
    memory.create_topic("a", 2)
    memory.create_topic("b")
    for values in ([b"1", b"2"], [b"3"]):
        assert not produce(client, "a", *values)
    assert not produce(client, "a", b"4", index=1)
    assert not produce(client, "b", b"5")
    assert produce(client, "none", b"1") == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    sent = fetch(client, "a") + fetch(client, "a", 3) + fetch(client, "a", index=1)
    assert fetch(client, "a", 100) == 0  # OFFSET_OUT_OF_RANGE
    samples = memory.samples()
    prefix = "kafka_server_brokertopicmetrics"
    assert of_topic(samples, f"{prefix}_messagesin_total", "a") == 4
    assert of_topic(samples, "barnabas_topic_messages_in_total", "b") == 1
    assert of_topic(samples, f"{prefix}_totalproducerequests_total", "a") == 3
    assert of_topic(samples, f"{prefix}_bytesout_total", "a") == sent > 0
    assert of_topic(samples, f"{prefix}_failedfetchrequests_total", "a") == 1
    assert value(samples, f"{prefix}_failedproducerequests_total") == 1
    assert of_topic(samples, f"{prefix}_failedproducerequests_total", "a") == 0
    for name in ("messagesin", "bytesin", "bytesout", "totalproducerequests", "totalfetchrequests"):
        series = samples[f"{prefix}_{name}_total"]
        assert sum(count for labels, count in series.items() if labels) == series[frozenset()]
    sizes = samples["kafka_log_log_size"]
    assert of_topic(samples, "barnabas_topic_log_bytes", "a") == sum(
        size for labels, size in sizes.items() if ("topic", "a") in labels
    )
    assert of_topic(samples, f"{prefix}_bytesin_total", "a") == of_topic(samples, "barnabas_topic_log_bytes", "a")
    assert value(samples, "kafka_topic_partition_current_offset", topic="a", partition="0") == 3


def test_a_deleted_topic_stays_in_the_counts_of_all(memory: Metered) -> None:
    client = memory.client()
    memory.create_topic("a")
    assert not produce(client, "a", b"1")
    assert fetch(client, "a")
    before = memory.samples()
    client.ask(DeleteTopicsRequest(topic_names=["a"]), 5, DeleteTopicsResponse)
    memory.run_all()
    after = memory.samples()
    for name in ("messagesin_total", "bytesout_total", "totalfetchrequests_total"):
        name = f"kafka_server_brokertopicmetrics_{name}"
        assert value(after, name) == value(before, name)
        assert of_topic(after, name, "a") is None
    assert not any(memory.meter.sent_bytes)


def test_requests_errors_and_times(memory: Metered) -> None:
    client = memory.client()
    memory.create_topic("t")
    for _ in range(300):
        assert not produce(client, "t", b"1")
    request = HeartbeatRequest(group_id="g", generation_id=1, member_id="m")
    commit(client, "g", "t", 1)
    errors = {client.ask(request, 4, HeartbeatResponse).error_code for _ in range(3)}
    samples = memory.samples()
    assert value(samples, "barnabas_requests_total", request="Produce") == 300
    assert value(samples, "kafka_network_requestmetrics_requests_total", request="Heartbeat") == 3
    counted = value(samples, "barnabas_request_handling_seconds_count", request="Produce")
    assert counted is not None
    assert 300 - 128 <= counted <= 300  # the last timed one counts for those before it
    (code,) = errors
    assert value(samples, "barnabas_request_errors_total", request="Heartbeat", error=ErrorCode(code).name) == 3
    assert value(samples, "kafka_network_requestmetrics_totaltimems", request="Produce", quantile="0.99") is not None


def test_lag_of_a_group_and_its_sums(memory: Metered) -> None:
    client = memory.client()
    memory.create_topic("t", 2)
    for index in (0, 0, 1):
        assert not produce(client, "t", b"1", b"2", index=index)
    commit(client, "g", "t", 1, 2)
    samples = memory.samples()
    lags = [
        value(samples, "kafka_consumergroup_lag", consumergroup="g", topic="t", partition=str(index))
        for index in (0, 1)
    ]
    assert lags == [3, 0]
    assert value(samples, "kafka_consumergroup_lag_sum", consumergroup="g", topic="t") == 3
    assert value(samples, "kafka_consumergroup_current_offset_sum", consumergroup="g", topic="t") == 3
    assert value(samples, "kafka_consumergroup_members", consumergroup="g") == 0
    assert value(samples, "barnabas_groups_total_lag") == 3
    assert value(samples, "kafka_coordinator_group_groupmetadatamanager_numoffsets") == 2


HOSTILE = ['a"b', "a\\b", "a\nb", 'x"} 1\nevil_metric{l="', "\u202e\u2028\0\x7f", "é" * 500, "{}", "#", OTHER]


def test_hostile_group_names_are_labels_like_others(memory: Metered) -> None:
    client = memory.client()
    memory.create_topic("t")
    for name in HOSTILE:
        commit(client, name, "t", 0)
    samples = memory.samples()
    names = {dict(labels)["consumergroup"] for labels in samples["kafka_consumergroup_members"]}
    assert names == set(HOSTILE)
    assert "evil_metric" not in samples


def test_topics_and_groups_beyond_the_limit_are_summed(tmp_path: Path) -> None:
    memory = Metered(tmp_path, barnabas_metrics_labels_max="3")
    client = memory.client()
    names = [f"t{number}" for number in range(5)]
    for name in names:
        memory.create_topic(name)
        assert not produce(client, name, b"1")
    for number in range(5):
        commit(client, f"g{number}", "t0", 0)
    samples = memory.samples()
    prefix = "kafka_server_brokertopicmetrics_messagesin_total"
    shown = {dict(labels)["topic"] for labels in samples[prefix] if labels}
    assert shown == {*names[:3], OTHER}
    # the two topics, and the partitions of __consumer_offsets
    appended = of_topic(samples, prefix, OTHER)
    assert appended is not None
    assert appended >= 2
    assert sum(count for labels, count in samples[prefix].items() if labels) == value(samples, prefix)
    groups = {dict(labels)["consumergroup"] for labels in samples["kafka_consumergroup_lag"]}
    assert groups == {"g0", "g1", "g2", OTHER}
    assert value(samples, "kafka_consumergroup_lag", consumergroup=OTHER, topic=OTHER, partition=OTHER) == 2
    # a deleted topic makes room for a new one, not for one that is in the sum: counters never fall
    client.ask(DeleteTopicsRequest(topic_names=["t0", "t4"]), 5, DeleteTopicsResponse)
    memory.run_all()
    memory.create_topic("new")
    after = memory.samples()
    assert {dict(labels)["topic"] for labels in after[prefix] if labels} == {"t1", "t2", "new", OTHER}
    assert (of_topic(after, prefix, OTHER) or 0) >= appended  # the groups' offsets of t0 are removed
    memory.close()


def test_a_topic_of_very_many_partitions_has_one_series_for_them(tmp_path: Path) -> None:
    memory = Metered(tmp_path, barnabas_metrics_labels_max="1")
    memory.create_topic("wide", 11)
    memory.client().touch("wide")
    samples = memory.samples()
    assert value(samples, "kafka_topic_partition_replicas", topic="wide", partition=OTHER) == 11
    assert "kafka_topic_partition_leader" not in samples  # a sum of ids means nothing
    assert of_topic(samples, "kafka_topic_partitions", "wide") == 11
    memory.close()


def test_no_limit_of_labels_shows_only_sums(tmp_path: Path) -> None:
    memory = Metered(tmp_path, barnabas_metrics_labels_max="0")
    memory.create_topic("a")
    samples = memory.samples()
    assert of_topic(samples, "kafka_topic_partitions", OTHER) == 1
    assert of_topic(samples, "kafka_topic_partitions", "a") is None
    memory.close()


def test_without_a_listener_nothing_is_counted(tmp_path: Path) -> None:
    memory = MemoryBroker(tmp_path)
    assert memory.broker.meter is None
    memory.create_topic("a")
    assert not produce(memory.client(), "a", b"1")
    assert memory.broker.partitions.get("a", 0).tally is None
    memory.close()


def test_a_page_without_anything_is_read(memory: Metered) -> None:
    assert value(samples_of(memory.text()), "kafka_server_replicamanager_leadercount") == 0
