"""Transactional batches that are validated in slices: the transaction may end before they are appended."""

from __future__ import annotations

import pytest

from barnabas.storage.batch_content import IN_PLACE_UNITS
from tests.support.memory.broker import MemoryBroker
from tests.support.requests.transactions import FEW, TransactionalClient, latest


@pytest.fixture
def memory(tmp_path):
    memory = MemoryBroker(tmp_path / "data", FEW)
    memory.create_topic("t", 2)
    yield memory
    memory.close()


LARGE = [b""] * (20 * IN_PLACE_UNITS)
"""Values of a batch whose validation takes many turns."""


@pytest.mark.parametrize(("produce_version", "end_version"), [(11, 3), (12, 5)])
@pytest.mark.parametrize("is_first", [True, False])
def test_a_large_batch_belongs_to_its_transaction(memory, produce_version, end_version, is_first):
    """T7: it is validated in slices, before the append; whether it is the first batch of the transaction or not."""
    producer = TransactionalClient(memory)
    assert producer.start() == 0
    if produce_version < 12:
        assert producer.add(("t", 0)) == [0]
    if not is_first:
        assert producer.produce(b"small", version=produce_version) == 0
    producer.client.send(producer.produce_request(*LARGE, codec=4), produce_version)
    assert producer.client.answers() == []
    memory.advance(0)
    (response,) = producer.client.answers()
    assert response.responses[0].partition_responses[0].error_code == 0
    assert latest(memory, 1) == 0
    assert producer.end(version=end_version) == 0
    assert latest(memory, 1) == len(LARGE) + (1 if is_first else 2)


@pytest.mark.parametrize("is_first", [True, False])
def test_a_transaction_that_ends_during_the_validation_of_a_batch_does_not_get_it(memory, is_first):
    """T11: otherwise the batch would be in a transaction that no marker ends, and hold up readers."""
    producer = TransactionalClient(memory)
    assert producer.start() == 0
    assert producer.add(("t", 0)) == [0]
    if not is_first:
        assert producer.produce(b"small", version=11) == 0
    producer.client.send(producer.produce_request(*LARGE, codec=4), 11)
    waiting, producer.client = producer.client, memory.client()
    assert waiting.answers() == []
    assert producer.end(commit=False, version=3) == 0
    memory.advance(0)
    (response,) = waiting.answers()
    assert response.responses[0].partition_responses[0].error_code != 0
    log = memory.broker.partitions.get("t", 0).log
    assert log.last_stable_offset == log.high_watermark <= 2
