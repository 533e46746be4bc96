"""Compares DescribeConfigs with responses recorded from Kafka 4.4.0."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

from barnabas.broker.config.config_schema import config_schema
from barnabas.broker.config.load import load
from barnabas.coord.cluster.changes.config_describe import ConfigDescriber
from barnabas.coord.cluster.delta import ClusterDelta
from barnabas.coord.cluster.image import ClusterImage
from barnabas.coord.cluster.metadata_log.replay import replay_record
from barnabas.coord.cluster.resources import GROUP, TOPIC
from barnabas.wire.messages.configs import DescribeConfigsResourceResult, DescribeConfigsResponse, DescribeConfigsResult
from barnabas.wire.messages.records.metadata_records import ConfigRecord, TopicRecord

FRAMES = Path(__file__).parents[2] / "data" / "client-frames.jsonl.gz"
DESCRIBE_CONFIGS = 32
FIRST_FLEXIBLE_VERSION = 4
SET_FOR_ELR = "min.insync.replicas"
"""A Kafka formatted with ELR sets this config for all brokers, so its source differs."""


def recorded(kind: int) -> list[DescribeConfigsResult]:
    results = []
    with gzip.open(FRAMES, "rt") as lines:
        for line in lines:
            frame = json.loads(line)
            if frame["api_key"] == DESCRIBE_CONFIGS:
                header = 5 if frame["version"] >= FIRST_FLEXIBLE_VERSION else 4
                response = DescribeConfigsResponse.decode(bytes.fromhex(frame["response"])[header:], frame["version"])
                results += [result for result in response.results if result.resource_type == kind]
    return results


def described(kind: int, own: dict[str, str], *, synonyms: bool) -> dict[str, DescribeConfigsResourceResult]:
    image = ClusterImage()
    replay_record(image, TopicRecord(name="x", topic_id=b"\x01" * 16), ClusterDelta())
    for name, value in own.items():
        replay_record(
            image, ConfigRecord(resource_type=kind, resource_name="x", name=name, value=value), ClusterDelta()
        )
    describer = ConfigDescriber(image, config_schema(), load({}, {}, None, "kafka"), 1)
    return {
        entry.name: entry for entry in describer.describe((kind, "x"), None, synonyms=synonyms, documentation=False)
    }


def compare(kafka: DescribeConfigsResult, kind: int) -> None:
    own = {entry.name: entry.value or "" for entry in kafka.configs if entry.config_source in {1, 8}}
    ours = described(kind, own, synonyms=any(entry.synonyms for entry in kafka.configs))
    theirs = {entry.name: entry for entry in kafka.configs}
    assert set(ours) == set(theirs)
    for name, entry in theirs.items():
        if name != SET_FOR_ELR:
            if entry.config_type == 0:  # version 3 added type and documentation
                entry.config_type, entry.documentation = ours[name].config_type, None
            assert ours[name] == entry, name


def test_topics_are_described_as_kafka_describes_them() -> None:
    results = recorded(TOPIC)
    assert len(results) >= 5
    assert any(entry.synonyms for result in results for entry in result.configs)
    for result in results:
        compare(result, TOPIC)


def test_groups_are_described_as_kafka_describes_them() -> None:
    (result,) = recorded(GROUP)
    compare(result, GROUP)
