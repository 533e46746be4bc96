"""The standard sequences of the differential tester against Apache Kafka and Barnabas."""

from __future__ import annotations

import pytest

from compat.twin.allowed import KNOWN, TABLE
from compat.twin.channel import Channel
from compat.twin.generate import STANDARD_FAMILIES, STANDARD_SEEDS, sequence
from compat.twin.nodes import NodePair
from compat.twin.runner import Runner, Tally
from compat.twin.settling import ask, topics_known
from compat.twin.steps import Step

pytestmark = pytest.mark.jvm


@pytest.fixture(scope="module")
def pair():
    with NodePair() as pair:
        yield pair


def test_the_standard_sequences_have_no_difference_and_use_every_row(pair):
    tally = Tally()
    runner = Runner(pair, tally)
    differences = {}
    for seed in STANDARD_SEEDS:
        if found := runner.run(sequence(seed, STANDARD_FAMILIES)):
            differences[seed] = [str(difference) for difference in found]
    runner.close()
    assert differences == {}
    unused = [f"{row.api} {row.path}: {row.reason}" for row in (*TABLE, *KNOWN) if row not in tally.used]
    assert unused == []


def test_a_difference_is_found(pair):
    """A topic that only one of the brokers has is seen in answers, in lists and on the disks."""
    topic = {"name": "lonely", "num_partitions": 1, "replication_factor": 1}
    channel = Channel(pair.address("kafka"))
    ask(channel, "CreateTopics", 5, {"topics": [topic]})
    topics_known(channel, ["lonely"])
    runner = Runner(pair, Tally())
    found = runner.run([Step("Metadata", 9, {"topics": [{"name": "lonely"}], "allow_auto_topic_creation": False})])
    runner.close()
    channel.close()
    kinds = {difference.kind for difference in found}
    assert "Metadata topics.error_code" in kinds
    assert "after: Metadata topics.(elements)" in kinds
    assert any(kind.startswith("after: disk") for kind in kinds)
