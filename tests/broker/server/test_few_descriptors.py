"""A broker with few descriptors: what it refuses, and what it serves nevertheless."""

from __future__ import annotations

import resource
from pathlib import Path

import pytest

from barnabas.broker.start.descriptor_limit import raise_descriptor_limit
from barnabas.broker.start.start_errors import StartError
from barnabas.storage.files import Files
from barnabas.wire.errors import ErrorCode as E
from barnabas.wire.messages.fetch import FetchResponse
from barnabas.wire.messages.topics import (
    CreatableTopic,
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    CreatePartitionsTopic,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from tests.support.memory.broker import MemoryBroker
from tests.support.requests.fetch import append, at, fetch, values

PARTITIONS = 30


class Exhausted(Files):
    """A process without free descriptors for anything new."""

    has_some = False

    def has_descriptors(self, count: int) -> bool:
        return self.has_some


def test_topics_are_refused_before_the_last_descriptor(tmp_path: Path) -> None:
    files = Exhausted()
    broker = MemoryBroker(tmp_path, files=files)
    files.has_some = True
    broker.create_topic("t")
    files.has_some = False
    create = CreateTopicsRequest(topics=[CreatableTopic(name="u", num_partitions=1, replication_factor=1)])
    extend = CreatePartitionsRequest(topics=[CreatePartitionsTopic(name="t", count=2)])
    client = broker.client()
    (topic,) = client.ask(create, 7, CreateTopicsResponse).topics
    (extended,) = client.ask(extend, 3, CreatePartitionsResponse).results
    for refused in (topic, extended):
        assert refused.error_code == E.POLICY_VIOLATION
        assert "ulimit -n" in (refused.error_message or "")
    assert not (tmp_path / "u-0").exists()
    create.validate_only = True
    assert client.ask(create, 7, CreateTopicsResponse).topics[0].error_code == 0
    append(broker, "t", b"v")
    broker.close()


@pytest.mark.parametrize("sync", ["os", "always", "interval"])
def test_many_partitions_with_a_small_share(tmp_path: Path, sync: str) -> None:
    """Every partition is written, read, restarted and flushed, with five of their files open at most."""
    sets = {"barnabas.log.sync": sync}
    files = Files()
    files.open_files.share = 5
    broker = MemoryBroker(tmp_path, sets, files=files)
    broker.create_topic("t", PARTITIONS)
    for number in range(3):
        for index in range(PARTITIONS):
            assert append(broker, "t", b"%d" % number, partition=index) == number
            assert len(files.open_files) <= 5
    for _ in range(2):
        response = broker.client().ask(fetch(*(at(0, index) for index in range(PARTITIONS))), 12, FetchResponse)
        records = [values(partition) for partition in response.responses[0].partitions]
        assert records == [[(0, b"0"), (1, b"1"), (2, b"2")]] * PARTITIONS
        assert len(files.open_files) <= 5
        assert files.open_files.closed >= PARTITIONS - 5
        broker.close()
        files = Files()
        files.open_files.share = 5
        broker = MemoryBroker(tmp_path, sets, files=files)
    broker.close()


def test_too_low_a_limit_is_one_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(resource, "getrlimit", lambda _: (63, 63))
    with pytest.raises(StartError, match="limit of open files is 63"):
        raise_descriptor_limit()
    monkeypatch.setattr(resource, "getrlimit", lambda _: (64, 64))
    assert raise_descriptor_limit() == 64
