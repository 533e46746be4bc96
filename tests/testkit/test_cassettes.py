"""Sessions of real clients, recorded and answered from the recording, in runs of pytest of their own."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.testkit.test_plugin import run

CONFLUENT = """
import pytest

@pytest.mark.kafka(cassette="orders", topics={"orders": 2})
def test_it(kafka, confluent):
    producer = confluent.producer(**{"enable.idempotence": True})
    for number in range(20):
        producer.produce("orders", VALUE % number, key=str(number))
    assert producer.flush(20) == 0
    consumer = confluent.consumer("orders", group_id="billing", **CONFIG)
    values = set()
    while len(values) < 20:
        message = consumer.poll(1)
        if message is not None and message.error() is None:
            values.add(message.value().decode())
            consumer.commit(message, asynchronous=False)
    assert values == {VALUE % number for number in range(20)}
    producer.list_topics(timeout=10)
"""
PYTHON = """
import pytest

@pytest.mark.kafka(cassette="orders", topics={"orders": 2})
def test_it(kafka, kafka_python):
    producer = kafka_python.producer()
    for number in range(20):
        producer.send("orders", b"%d" % number, key=b"k%d" % number)
    producer.flush(20)
    consumer = kafka_python.consumer("orders", group_id="billing")
    assert {int(next(consumer).value) for _ in range(20)} == set(range(20))
"""
AIO = """
import asyncio, pytest

@pytest.mark.kafka(cassette="orders", topics={"orders": 2})
def test_it(kafka, aio):
    async def main():
        async with aio.producer() as producer:
            for number in range(20):
                await producer.send_and_wait("orders", b"%d" % number, key=b"k%d" % number)
        async with aio.consumer("orders", group_id="billing") as consumer:
            assert {int((await consumer.getone()).value) for _ in range(20)} == set(range(20))
    asyncio.run(main())
"""


def confluent(protocol: str, value: str = "order %d") -> str:
    """A test of a producer and a consumer with this group protocol."""
    return f"VALUE = {value!r}\nCONFIG = {{'group.protocol': {protocol!r}}}\n{CONFLUENT}"


@pytest.mark.parametrize(
    "text",
    [confluent("classic"), confluent("consumer"), PYTHON, AIO],
    ids=["confluent-classic", "confluent-consumer", "kafka-python", "aiokafka"],
)
def test_a_session_is_answered_from_its_recording(tmp_path: Path, text: str) -> None:
    assert "1 passed" in run(tmp_path, text)
    file = tmp_path / "cassettes" / "orders.cassette"
    recorded = file.read_text()
    for _ in range(2):
        assert "1 passed" in run(tmp_path, text)
    assert file.read_text() == recorded
