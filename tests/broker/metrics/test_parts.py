"""Histograms, labels, and the errors that are found in responses."""

from __future__ import annotations

import pytest

from barnabas.broker.metrics.histogram import BOUNDS_S, Histogram
from barnabas.broker.metrics.labels import OTHER, Labels
from barnabas.broker.metrics.response_errors import codes_of, first_error_of
from barnabas.wire.messages.api_versions import ApiVersionsResponse
from barnabas.wire.messages.fetch import FetchResponse
from barnabas.wire.messages.groups.classic_groups import HeartbeatResponse
from barnabas.wire.messages.groups.offsets import (
    OffsetCommitResponse,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
)
from barnabas.wire.messages.produce import PartitionProduceResponse, ProduceResponse, TopicProduceResponse


def test_times_are_counted_one_by_one_as_all_at_once() -> None:
    times = [0.0, BOUNDS_S[0], 0.0003, 0.02, 0.02, 29.0, 31.0, 1000.0]
    one_by_one, at_once = Histogram(), Histogram()
    for seconds in times:
        one_by_one.add(seconds)
    at_once.add_all(list(reversed(times)))
    at_once.add_all([])
    assert one_by_one.counts == at_once.counts
    assert one_by_one.seconds == pytest.approx(at_once.seconds) == pytest.approx(sum(times))
    assert one_by_one.longest == at_once.longest == 1000.0
    buckets = dict(at_once.cumulative())
    assert buckets["0.0001"] == 2  # a bound belongs to its bucket
    assert buckets["30"] == 6
    assert buckets["+Inf"] == at_once.count == 8


def test_quantiles_lie_within_the_bucket() -> None:
    histogram = Histogram()
    assert histogram.quantile(0.99) == 0.0
    for number in range(100):
        histogram.add(0.001 if number < 90 else 0.2, weight=2)
    assert 0.0005 <= histogram.quantile(0.5) <= 0.001
    assert 0.1 <= histogram.quantile(0.99) <= 0.2
    histogram.add(100.0, weight=1000)
    assert histogram.quantile(0.99) == BOUNDS_S[-1]


def test_a_name_keeps_its_place_until_it_is_forgotten() -> None:
    labels = Labels(2)
    assert [labels.admit(name, 1)[0] for name in ("a", "b", "c", OTHER)] == [True, True, False, False]
    labels.forget("a")
    assert not labels.admit("c", 1)[0]
    assert labels.admit("d", 1)[0]
    list(labels.keep_only({"b"}))
    assert labels.hidden == 0
    assert labels.admit("c", 1)[0]


def test_partitions_have_a_limit_of_their_own() -> None:
    labels = Labels(2)
    assert labels.admit("wide", 20) == (True, True)
    assert labels.admit("b", 1) == (True, False)
    assert labels.admit("wide", 21) == (True, False)  # it has grown
    assert labels.admit("b", 1) == (True, True)


def test_errors_of_a_request_and_of_its_items() -> None:
    assert first_error_of(HeartbeatResponse)(HeartbeatResponse(error_code=25)) == 25
    assert not first_error_of(HeartbeatResponse)(HeartbeatResponse())
    assert first_error_of(ApiVersionsResponse)(ApiVersionsResponse(error_code=35)) == 35
    assert first_error_of(FetchResponse)(FetchResponse(error_code=70)) == 70
    topics = [
        OffsetCommitResponseTopic(
            partitions=[OffsetCommitResponsePartition(partition_index=index, error_code=code) for index, code in codes]
        )
        for codes in ([(0, 0)], [(0, 0), (1, 3), (2, 12)])
    ]
    response = OffsetCommitResponse(topics=topics)
    assert first_error_of(OffsetCommitResponse)(response) == 3
    assert list(codes_of(response)) == [3, 12]
    assert not first_error_of(OffsetCommitResponse)(OffsetCommitResponse(topics=topics[:1]))
    refused = PartitionProduceResponse(error_code=87)
    produced = ProduceResponse(responses=[TopicProduceResponse(partition_responses=[refused])])
    assert first_error_of(ProduceResponse)(produced) == 87
