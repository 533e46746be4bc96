"""A rule with any error of Kafka, for any API, over the wire: each response has it, and the connection serves on."""

from __future__ import annotations

import os
import random
from collections.abc import Iterator
from typing import Any

import pytest

from barnabas.testing import Cluster
from barnabas.wire.api_keys import ApiKey
from barnabas.wire.codec.json_form import api_name
from barnabas.wire.errors import ErrorCode
from barnabas.wire.types import Uuid, uuid_from_text
from tests.support.cases import for_each
from tests.support.requests.access_cases import BROKER_CASES, TOPIC, Case
from tests.testkit.raw import Raw

SEED = int(os.environ.get("BARNABAS_SEED") or random.randrange(1 << 32))
CODES = [code for code in ErrorCode if code != ErrorCode.NONE]
NOT_ANSWERED = {ApiKey.SASL_HANDSHAKE, ApiKey.SASL_AUTHENTICATE}
"""They are refused on a listener without SASL before any rule is asked."""


def _cases() -> Iterator[Any]:
    seen = set()
    for (key, what), case in BROKER_CASES.items():
        if key not in seen | NOT_ANSWERED:
            seen.add(key)
            yield pytest.param(key, case, id=f"{key.name}-{what}")


def _codes(value: Any) -> set[int]:
    """All error codes in a response."""
    codes = set()
    for field in type(value).declared:
        inner = getattr(value, field.name)
        if field.name in {"error_code", "partition_error_code", "acknowledge_error_code"} and isinstance(inner, int):
            codes.add(inner)
        for item in inner if isinstance(inner, list) else [inner]:
            if hasattr(type(item), "declared"):
                codes |= _codes(item)
    return codes


def _topic_id(kafka: Cluster) -> Uuid:
    body = {"topics": [{"name": TOPIC}], "responsePartitionLimit": 1, "cursor": None}
    return uuid_from_text(kafka.request("DescribeTopicPartitions", body)["topics"][0]["topicId"])


@pytest.mark.kafka(topics={TOPIC: 2})
@for_each(("key", "case"), list(_cases()))
def test_the_response_has_the_error(kafka: Cluster, key: ApiKey, case: Case) -> None:
    chosen = random.Random(f"{SEED} {key}")
    for code in chosen.sample(CODES, 3):
        request, version = case(_topic_id(kafka))
        with kafka.faults.add(api_name(key), error=code.name) as rule:
            response = Raw(kafka).ask(request, version)
        assert response is not None, f"BARNABAS_SEED={SEED}: {code.name} closed the connection"
        assert int(code) in _codes(response), f"BARNABAS_SEED={SEED}: {code.name} is not in {response}"
        assert rule.hits == 1


@pytest.mark.kafka(topics={TOPIC: 2})
@for_each(("key", "case"), list(_cases()))
def test_an_item_has_the_error(kafka: Cluster, key: ApiKey, case: Case) -> None:
    """The same for the items of one topic, where a request names it."""
    code = random.Random(f"{SEED} {key}").choice(CODES)
    request, version = case(_topic_id(kafka))
    with kafka.faults.add(api_name(key), topic=TOPIC, error=code.name) as rule:
        response = Raw(kafka).ask(request, version)
        if rule.hits:
            assert response is not None, f"BARNABAS_SEED={SEED}: {code.name} closed the connection"
            assert int(code) in _codes(response), f"BARNABAS_SEED={SEED}: {code.name} is not in {response}"
