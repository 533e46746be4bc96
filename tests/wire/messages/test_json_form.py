"""Messages as Kafka's JSON, and the errors for invalid JSON."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from barnabas.wire.codec.json_form import from_json, json_name, to_json
from barnabas.wire.errors import ErrorCode, KafkaError
from barnabas.wire.messages.api_versions import ApiVersionsResponse
from barnabas.wire.messages.fetch import FetchRequest
from barnabas.wire.messages.metadata import MetadataRequest, MetadataRequestTopic
from barnabas.wire.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from barnabas.wire.types import ONE_UUID, ZERO_UUID, uuid_from_text, uuid_to_text
from tests.support.cases import for_each
from tests.support.requests.recorded import vectors

TOPIC = {"topicId": "AAAAAAAAAAAAAAAAAAAAAA", "name": "t"}
REQUEST = {"topics": [TOPIC], "allowAutoTopicCreation": True, "includeTopicAuthorizedOperations": False}


def test_json_round_trip_of_every_vector() -> None:
    for vector in vectors():
        message = vector.message_class.decode(vector.data, vector.version)
        again = from_json(vector.message_class, to_json(message, vector.version), vector.version)
        assert again.encode(vector.version) == vector.data


def test_json_names_are_kafkas() -> None:
    assert json_name("throttle_time_ms") == "throttleTimeMs"
    assert json_name("k_raft_version_feature") == "kRaftVersionFeature"
    assert json_name("topics") == "topics"


def test_json_has_the_fields_of_the_version() -> None:
    request = MetadataRequest(topics=[MetadataRequestTopic(name="t")])
    assert to_json(request, 13) == REQUEST
    assert to_json(request, 0) == {"topics": [{"name": "t"}]}
    assert from_json(MetadataRequest, REQUEST, 13) == request


def test_tagged_fields_with_their_default_are_omitted() -> None:
    assert "finalizedFeaturesEpoch" not in to_json(ApiVersionsResponse(), 3)
    assert to_json(ApiVersionsResponse(finalized_features_epoch=4), 3)["finalizedFeaturesEpoch"] == 4


def test_unknown_tagged_fields_are_kept() -> None:
    message = ApiVersionsResponse()
    message.unknown_tagged_fields = ((99, b"\x00\xff"),)
    value = to_json(message, 3)
    assert value["unknownTaggedFields"] == [{"tag": 99, "data": "AP8="}]
    assert from_json(ApiVersionsResponse, value, 3) == message


def test_chunked_records_are_one_json_value() -> None:
    data = PartitionProduceData(records=[b"ab", memoryview(b"c")])
    message = ProduceRequest(topic_data=[TopicProduceData(name="t", partition_data=[data])])
    assert to_json(message, 9)["topicData"][0]["partitionData"][0]["records"] == "YWJj"


def test_non_default_field_missing_in_the_version_is_unsupported() -> None:
    request = FetchRequest()
    request.replica_state.replica_id = 1
    with pytest.raises(KafkaError) as caught:
        to_json(request, 4)
    assert caught.value.code is ErrorCode.UNSUPPORTED_VERSION
    with pytest.raises(KafkaError):
        from_json(FetchRequest, {}, 99)


@for_each(
    ("changes", "error"),
    [
        ({"topics": 5}, r"MetadataRequest\.topics: expected an array, got 5"),
        ({"topics": [5]}, r"MetadataRequest\.topics\[0\]: expected an object"),
        ({"topics": [{**TOPIC, "name": 5}]}, r"topics\[0\]\.name: expected a string"),
        ({"topics": [{**TOPIC, "topicId": "short"}]}, r"topicId: a uuid is 22 characters"),
        ({"topics": [{"name": "t"}]}, r"the field topicId is missing"),
        ({"allowAutoTopicCreation": 1}, r"expected true or false"),
        ({"allowAutoTopicCreation": None}, r"may not be null"),
        ({"allowAutoTopicCreations": True}, r"has no field allowAutoTopicCreations"),
    ],
)
def test_invalid_json_names_field_and_expected_type(changes: dict[str, object], error: str) -> None:
    with pytest.raises(ValueError, match=error):
        from_json(MetadataRequest, {**REQUEST, **changes}, 13)


def test_number_field_rejects_other_types() -> None:
    for wrong in ("1", True, None, 1.5):
        with pytest.raises(ValueError, match="throttleTimeMs"):
            from_json(ApiVersionsResponse, {"errorCode": 0, "apiKeys": [], "throttleTimeMs": wrong}, 1)


@given(st.binary(min_size=16, max_size=16))
def test_uuid_text_round_trip(value: bytes) -> None:
    text = uuid_to_text(value)
    assert len(text) == 22
    assert uuid_from_text(text) == value


def test_reserved_uuids() -> None:
    assert uuid_to_text(ZERO_UUID) == "AAAAAAAAAAAAAAAAAAAAAA"
    assert uuid_to_text(ONE_UUID) == "AAAAAAAAAAAAAAAAAAAAAQ"


@for_each("text", ["", "A" * 21, "A" * 23, "A" * 20 + "!!", "é" * 22, "A" * 20 + "=="])
def test_invalid_uuid_text_is_rejected(text: str) -> None:
    with pytest.raises(ValueError, match="a uuid is 22 characters"):
        uuid_from_text(text)
