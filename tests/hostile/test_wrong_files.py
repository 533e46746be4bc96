"""Files of a data directory with wrong bytes: the start says what is wrong, or the partition is offline."""

from __future__ import annotations

import re

import pytest

from barnabas.wire.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from barnabas.wire.records import build_batch
from tests.hostile.attacker import Attacker
from tests.hostile.harness import Victim

TOPIC = "orders"
SMALL_FILES = ("meta.properties", "recovery-point-offset-checkpoint", "log-start-offset-checkpoint")


def with_records(start_victim) -> Victim:
    """A broker that has stopped after it stored 20 records."""
    victim = start_victim()
    client = Attacker(victim)
    client.create_topic(TOPIC)
    batch = build_batch([(1000, None, b"value")] * 20)
    topic = TopicProduceData(name=TOPIC, partition_data=[PartitionProduceData(index=0, records=batch)])
    client(ProduceRequest(acks=1, timeout_ms=1000, topic_data=[topic]), 9)
    client.close()
    victim.stop()
    return victim


@pytest.mark.parametrize("name", SMALL_FILES)
@pytest.mark.parametrize(
    "damage", [b"\xff\xfe=1\n", b"", b"\x00" * 50, b"9" * 500], ids=["no-utf8", "empty", "zeros", "digits"]
)
def test_start_with_a_wrong_small_file(start_victim, name, damage) -> None:
    """The broker starts, or it says in one sentence why it does not."""
    victim = with_records(start_victim)
    (victim.data_dir / name).write_bytes(damage)
    start = len(victim.log())
    try:
        victim.start()
    except RuntimeError:
        assert victim.process is not None
        assert victim.process.returncode == 2
        assert name in victim.log()[start:] or "data directory" in victim.log()[start:]
    assert not victim.tracebacks(start)


def test_changed_topic_id_in_partition_metadata(start_victim) -> None:
    """The records are neither lost nor hidden: the partition is offline."""
    victim = with_records(start_victim)
    path = victim.data_dir / f"{TOPIC}-0/partition.metadata"
    text = path.read_text()
    topic_id = re.search(r"topic_id: (.)", text)
    assert topic_id is not None
    path.write_text(text.replace(topic_id[0], f"topic_id: {'B' if topic_id[1] == 'A' else 'A'}"))
    victim.start()
    batch = build_batch([(1000, None, b"value")])
    topic = TopicProduceData(name=TOPIC, partition_data=[PartitionProduceData(index=0, records=batch)])
    client = Attacker(victim)
    response = client(ProduceRequest(acks=1, timeout_ms=1000, topic_data=[topic]), 9)
    client.close()
    (partition,) = response.responses[0].partition_responses
    assert partition.error_code != 0
    assert not victim.tracebacks()
