"""The load of a broker in a tagged field that Kafka does not know."""

from __future__ import annotations

from barnabas.client.broker_loads import score
from barnabas.wire.clients.broker_load import TAG, BrokerLoad, encode, find, is_asked_for
from barnabas.wire.messages.metadata import DescribeClusterRequest, DescribeClusterResponse

LOAD = BrokerLoad(0.5, 0.25, 1e9, 0.75, 1000.0, 50_000.0, 7.0, 12.5)


def test_question_and_answer_survive_the_wire() -> None:
    request = DescribeClusterRequest()
    assert not is_asked_for(request.unknown_tagged_fields)
    request.unknown_tagged_fields = ((TAG, b""),)
    for version in range(3):
        assert is_asked_for(DescribeClusterRequest.decode(request.encode(version), version).unknown_tagged_fields)
    response = DescribeClusterResponse(cluster_id="c")
    assert find(response.unknown_tagged_fields) is None
    response.unknown_tagged_fields = ((TAG, encode(LOAD)),)
    for version in range(3):
        assert find(DescribeClusterResponse.decode(response.encode(version), version).unknown_tagged_fields) == LOAD


def test_a_longer_form_of_later_versions_is_read_and_a_shorter_one_is_not() -> None:
    versioned = LOAD._replace(version="1.2")
    assert find([(1, b""), (TAG, encode(versioned) + b"more")]) == versioned
    assert find([(TAG, encode(LOAD)[:64])]) == LOAD  # before there was a version
    assert find([(TAG, encode(LOAD)[:63])]) is None


def test_the_score_is_by_cpu_memory_disk_and_message_rate() -> None:
    assert abs(score(LOAD) - (0.4 * 0.5 + 0.2 * 0.25 + 0.2 * 0.75 + 0.2 * 0.5)) < 1e-9
    assert score(LOAD._replace(cpu=1, memory=1, disk=1, messages_per_s=1e9)) == 1.0
