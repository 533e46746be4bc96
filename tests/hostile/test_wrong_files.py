"""Files of a data directory with wrong bytes: the start reports the error, or the partition is offline."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from barnabas.wire.batches.records import build_batch
from barnabas.wire.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from tests.hostile.attacker import Attacker
from tests.hostile.conftest import module_victim, new_victim
from tests.hostile.harness import Victim

TOPIC = "orders"
SMALL_FILES = ("meta.properties", "recovery-point-offset-checkpoint", "log-start-offset-checkpoint")


DAMAGES = {"no-utf8": b"\xff\xfe=1\n", "empty": b"", "zeros": b"\x00" * 50, "digits": b"9" * 500}
AT_LEAST = {
    ("meta.properties", "no-utf8"), ("recovery-point-offset-checkpoint", "zeros"),
    ("log-start-offset-checkpoint", "digits"), ("meta.properties", "empty"),
}  # fmt: skip
"""Each file and each damage once; `tests/broker/server/test_wrong_files.py` has them all in one process."""
CASES = [
    pytest.param(name, damage, id=f"{how}-{name}", marks=[] if (name, how) in AT_LEAST else [pytest.mark.soak])
    for name in SMALL_FILES
    for how, damage in DAMAGES.items()
]


@pytest.fixture(scope="module")
def stored(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The directory of a broker that has stopped after it stored 20 records."""
    with module_victim(request, tmp_path_factory) as victim:
        store(victim)
    return victim.data_dir


@pytest.fixture
def victim(request: pytest.FixtureRequest, stored: Path, tmp_path: Path) -> Iterator[Victim]:
    """A broker with a copy of that directory, not started."""
    shutil.copytree(stored, tmp_path / "data")
    started = new_victim(request, tmp_path / "data")
    yield started
    started.stop()


def store(victim: Victim) -> None:
    """Store 20 records."""
    client = Attacker(victim)
    client.create_topic(TOPIC)
    batch = build_batch([(1000, None, b"value")] * 20)
    topic = TopicProduceData(name=TOPIC, partition_data=[PartitionProduceData(index=0, records=batch)])
    client(ProduceRequest(acks=1, timeout_ms=1000, topic_data=[topic]), 9)
    client.close()


@pytest.mark.parametrize(("name", "damage"), CASES)
def test_start_with_a_wrong_small_file(victim: Victim, name: str, damage: bytes) -> None:
    """The broker starts, or it says in one sentence why it does not."""
    (victim.data_dir / name).write_bytes(damage)
    start = len(victim.log())
    try:
        victim.start()
    except RuntimeError:
        assert victim.process is not None
        assert victim.process.returncode == 2
        assert name in victim.log()[start:] or "data directory" in victim.log()[start:]
    assert not victim.tracebacks(start)


def test_changed_topic_id_in_partition_metadata(victim: Victim) -> None:
    """The records are neither lost nor hidden: the partition is offline."""
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
