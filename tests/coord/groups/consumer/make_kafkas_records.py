"""Lets Apache Kafka write the records of consumer groups (KIP-848) that tests without Java replay.

    python -m tests.coord.groups.consumer.make_kafkas_records tests/data/kafka-4.4.0-consumer-group.json

The file has the topics, every record of `__consumer_offsets`, and the last ConsumerGroupDescribe. The groups: `shared`
with two members, one of which is revoking partitions; `static` with a member that has left temporarily and one that has
returned with another id; `regex`; `left`, whose members have left; `mixed` with a member of the classic protocol.
"""

from __future__ import annotations

import base64
import json
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from confluent_kafka import Consumer, TopicPartition

from barnabas.wire.messages.groups import classic_groups as g
from barnabas.wire.messages.groups.consumer_protocol import ConsumerProtocolSubscription
from tests.support.processes.kafka import KafkaServer
from tests.support.requests.consumer_groups import beat, describe, given, join
from tests.support.requests.raw_client import RawClient

CONFIG = {
    "offsets.topic.num.partitions": "1",
    "group.consumer.assignment.interval.ms": "0",
    "broker.rack": "rack-a",
}
GROUPS = ["shared", "static", "regex", "left", "mixed"]
WAIT_S = 30


def fill(client: RawClient) -> dict[str, Any]:
    """Bring every group to its final state; returns the topics."""
    topics = {"orders": (client.create_topic("orders", 4), 4), "ledger": (client.create_topic("ledger", 1), 1)}
    orders = topics["orders"][0]
    for group in GROUPS:
        client.find(group)
    both = ["orders", "ledger"]
    first = join(client, "shared", "m1", 5, subscribed_topic_names=both, rack_id="rack-a", server_assignor="range")
    owned = given(first)
    beat(client, "shared", "m2", 0, subscribed_topic_names=["orders"])
    epoch = beat(client, "shared", "m1", first.member_epoch, owned=owned).member_epoch
    beat(client, "shared", "m3", 0, subscribed_topic_names=both)
    beat(client, "shared", "m1", epoch, owned=owned)
    join(client, "static", "s1", subscribed_topic_names=["orders"], instance_id="i1")
    beat(client, "static", "s2", 0, subscribed_topic_names=["orders"], instance_id="i2")
    beat(client, "static", "s1", -2, instance_id="i1")
    beat(client, "static", "s3", 0, subscribed_topic_names=["orders"], instance_id="i1")
    beat(client, "static", "s2", -2, instance_id="i2")
    join(client, "regex", "r1", 5, subscribed_topic_regex="o.*|ledger")
    join(client, "left", "l1", subscribed_topic_names=["orders"])
    beat(client, "left", "l1", -1)
    join(client, "mixed", "x1", subscribed_topic_names=["orders"])
    _join_classic(client, "mixed", orders)
    return {name: {"id": topic_id.hex(), "partitions": count} for name, (topic_id, count) in topics.items()}


def _join_classic(client: RawClient, group: str, _topic: bytes) -> None:
    metadata = b"\0\0" + ConsumerProtocolSubscription(topics=["orders"]).encode(0)
    protocol = g.JoinGroupRequestProtocol(name="range", metadata=metadata)
    request = g.JoinGroupRequest(
        group_id=group,
        session_timeout_ms=45_000,
        rebalance_timeout_ms=60_000,
        protocol_type="consumer",
        protocols=[protocol],
    )
    request.member_id = client(request, 9).member_id
    response = client(request, 9)
    assert response.error_code == 0, response


def read_records(bootstrap: str) -> list[list[str | None]]:
    """Every record of the offsets topic: key and value."""
    config = {"bootstrap.servers": bootstrap, "group.id": "reader", "auto.offset.reset": "earliest"}
    consumer = Consumer(config | {"enable.auto.commit": False})
    consumer.assign([TopicPartition("__consumer_offsets", 0, 0)])
    _, end = consumer.get_watermark_offsets(TopicPartition("__consumer_offsets", 0), WAIT_S)
    records: list[list[str | None]] = []
    deadline = time.monotonic() + WAIT_S
    while len(records) < end and time.monotonic() < deadline:
        message = consumer.poll(1)
        if message is not None and message.error() is None:
            records.append([_text(message.key()), _text(message.value())])
    consumer.close()
    assert len(records) == end
    return records


def _text(data: bytes | None) -> str | None:
    return None if data is None else base64.b64encode(data).decode()


def described(client: RawClient, group: str) -> dict[str, Any]:
    """ConsumerGroupDescribe of a group."""
    description = describe(client, group)
    return {
        "state": description.group_state,
        "epoch": description.group_epoch,
        "assignment_epoch": description.assignment_epoch,
        "assignor": description.assignor_name,
        "members": {
            member.member_id: {
                "instance_id": member.instance_id,
                "rack_id": member.rack_id,
                "epoch": member.member_epoch,
                "topics": sorted(member.subscribed_topic_names),
                "regex": member.subscribed_topic_regex or None,
                "type": member.member_type,
                "assignment": _shown(member.assignment),
                "target": _shown(member.target_assignment),
            }
            for member in description.members
        },
    }


def _shown(assignment: Any) -> dict[str, list[int]]:
    return {entry.topic_name: sorted(entry.partitions) for entry in assignment.topic_partitions}


def main(path: str) -> None:
    """Start Kafka, create the groups, and write the result to `path`."""
    with tempfile.TemporaryDirectory() as where:
        kafka = KafkaServer(Path(where), config=CONFIG)
        kafka.start()
        try:
            client = RawClient(kafka.bootstrap)
            topics = fill(client)
            shown = {group: described(client, group) for group in GROUPS}
            records = read_records(kafka.bootstrap)
            client.close()
        finally:
            kafka.stop()
    text = json.dumps(
        {"topics": topics, "rack": CONFIG["broker.rack"], "described": shown, "records": records}, indent=1
    )
    Path(path).write_text(text + "\n")


if __name__ == "__main__":
    main(sys.argv[1])
