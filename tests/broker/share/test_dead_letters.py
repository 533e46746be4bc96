"""KIP-1191: records that a share group rejects, or that are delivered too often, go to its dead-letter queue."""

from __future__ import annotations

import pytest

from barnabas.wire.batches.records import BatchBuilder, iter_batches, iter_records
from tests.broker.share_member import ACCEPT, REJECT, Member, Queue
from tests.support.memory.broker import batch

QUEUE = "dlq.q"


@pytest.fixture
def queue(tmp_path):
    queue = Queue(tmp_path / "data", **{"errors.deadletterqueue.auto.create.topics.enable": "true"})
    queue.initialize()
    queue.set_group("g", "errors.deadletterqueue.topic.name", QUEUE)
    yield queue
    queue.close()


def letters(queue, topic=QUEUE):
    """Key, value and headers of the records in a dead-letter queue."""
    records = []
    for partition in queue.broker.partitions.of_topic(topic):
        log = partition.log
        read = log.read(0, 10 << 20, limit_offset=log.high_watermark, min_one_batch=True)
        for record_batch in iter_batches(read.slice.read()) if read.slice else []:
            for record in iter_records(record_batch):
                headers = {name.removeprefix("__dlq.errors."): value.decode() for name, value in record.headers}
                records.append((record.key, record.value, headers))
    return records


def where(offset, count, message):
    return {
        "topic": "q",
        "partition": "0",
        "offset": str(offset),
        "group": "g",
        "delivery.count": str(count),
        "message": message,
    }


def test_rejected_records_are_named_in_the_queue(queue):
    queue.produce(b"a", b"b", b"c")
    member = Member(queue, "one")
    member.take()
    assert member.acknowledge((0, 1, [REJECT]), (2, 2, [ACCEPT])) == 0
    rejected = "Offset rejected by client."
    assert letters(queue) == [(None, None, where(0, 1, rejected)), (None, None, where(1, 1, rejected))]
    assert queue.live().start_offset == 3
    assert queue.broker.image.config(2, QUEUE)["errors.deadletterqueue.group.enable"] == "true"
    queue.restart()
    assert Member(queue, "two").take() == []
    assert len(letters(queue)) == 2


def test_records_delivered_too_often_are_copied_if_the_group_is_configured_so(queue):
    queue.set_group("g", "errors.deadletterqueue.copy.record.enable", "true")
    queue.set_group("g", "share.delivery.count.limit", "2")
    queue.produce(b"a")
    builder = BatchBuilder()
    builder.append(1_700_000_000_000, b"key", b"value", [("own", b"header")])
    queue.produce(records=builder.build())
    for delivery in (1, 2):
        assert Member(queue, f"member-{delivery}").take() == [(0, 1, delivery)]
        queue.advance(30)
    too_often = "Offset delivery count exceeded the threshold."
    assert letters(queue) == [(None, b"a", where(0, 2, too_often)), (b"key", b"value", where(1, 2, too_often))]
    assert queue.live().start_offset == 2


def test_large_dead_letters_are_split_into_batches(queue):
    queue.set_group("g", "errors.deadletterqueue.copy.record.enable", "true")
    for _ in range(3):
        queue.produce(records=batch(*[bytes(300_000)] * 3))
    member = Member(queue, "one")
    assert member.take(max_bytes=10 << 20) == [(0, 8, 1)]
    assert member.acknowledge((0, 8, [REJECT])) == 0
    assert len(letters(queue)) < 9, "a batch for each step"
    queue.advance(0)
    assert [len(value) for _, value, _ in letters(queue)] == [300_000] * 9


@pytest.mark.parametrize(
    ("name", "sets"),
    [
        ("other.q", {}),
        ("dlq.missing", {"errors.deadletterqueue.auto.create.topics.enable": "false"}),
        ("dlq.plain", {}),
    ],
)
def test_a_missing_or_misconfigured_queue_does_not_block_the_group(tmp_path, caplog, name, sets):
    sets = {"errors.deadletterqueue.auto.create.topics.enable": "true", **sets}
    queue = Queue(tmp_path / "data", **sets)
    queue.create_topic("dlq.plain")  # without errors.deadletterqueue.group.enable
    queue.initialize()
    queue.set_group("g", "errors.deadletterqueue.topic.name", name)
    queue.produce(b"a")
    member = Member(queue, "one")
    member.take()
    assert member.acknowledge((0, 0, [REJECT])) == 0
    assert queue.live().start_offset == 1
    assert letters(queue, name) == []
    assert "Cannot write records 0 to 0 of <Partition q-0> to the dead-letter queue of group g" in caplog.text
    queue.close()


def test_without_a_queue_rejected_records_are_dropped(tmp_path):
    queue = Queue(tmp_path / "data")
    queue.initialize()
    queue.produce(b"a")
    member = Member(queue, "one")
    member.take()
    assert member.acknowledge((0, 0, [REJECT])) == 0
    assert queue.live().start_offset == 1
    assert set(queue.broker.image.topics) == {"q", "__share_group_state"}
    queue.close()


def test_without_the_feature_level_there_are_no_queues(queue):
    """KIP-1191 came with share.version 2."""
    queue.broker.image.features["share.version"] = 1
    queue.produce(b"a")
    member = Member(queue, "one")
    member.take()
    assert member.acknowledge((0, 0, [REJECT])) == 0
    assert QUEUE not in queue.broker.image.topics
    assert queue.live().start_offset == 1
