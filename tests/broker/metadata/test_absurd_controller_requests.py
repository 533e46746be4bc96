"""Requests to the controller listener with absurd values: each is answered or closes its connection, none is a bug."""

from __future__ import annotations

import logging
from functools import partial
from pathlib import Path
from random import Random

import pytest

from barnabas.broker.apis.registry import CONTROLLER_APIS, served_versions
from barnabas.wire.api_keys import ApiKey
from barnabas.wire.errors import ErrorCode, ProtocolError
from barnabas.wire.messages.cluster import BrokerRegistrationResponse
from barnabas.wire.messages.fetch import FetchResponseLeaderIdAndEpoch
from barnabas.wire.registry import message_for
from tests.support.cases import for_each
from tests.support.memory.controller import MemoryController
from tests.support.requests.absurd_values import Absurd, Api, Learned
from tests.support.volume import for_each_seed, seeds

APIS = tuple(Api(*message_for(key), *served_versions(key)) for key in sorted(CONTROLLER_APIS))
REQUESTS = 300


@for_each("key", sorted(CONTROLLER_APIS), ids=lambda key: ApiKey(key).name)
def test_an_empty_request_of_every_version(tmp_path: Path, key: ApiKey, caplog: pytest.LogCaptureFixture) -> None:
    memory = MemoryController(tmp_path / "data")
    memory.unfence(1)
    first, last = served_versions(key)
    for version in range(first, last + 1):
        client = memory.client()
        try:
            client.send(message_for(key)[0](), version)
        except ProtocolError:
            continue
        memory.advance(1)
        assert len(client.answers()) == 1
    assert [record.getMessage() for record in caplog.records if record.levelno >= logging.ERROR] == []
    memory.close()


def test_absurd_values(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    for_each_seed(seeds("BARNABAS_EXAMPLES", 3), partial(send_absurd_values, tmp_path, caplog), "BARNABAS_EXAMPLES")


def send_absurd_values(tmp_path: Path, caplog: pytest.LogCaptureFixture, seed: int) -> None:
    directory = tmp_path / f"data-{seed}"
    memory = MemoryController(directory)
    random = Random(f"absurd-{seed}")
    learned = Learned()
    learned.learn(BrokerRegistrationResponse(broker_epoch=memory.unfence(1)))
    learned.learn(FetchResponseLeaderIdAndEpoch(leader_epoch=memory.node.controller.quorum.epoch))
    absurd = Absurd(random, learned)
    for _ in range(REQUESTS):
        request, version = absurd.request(random.choice(APIS))
        client = memory.client()
        try:
            client.send(request, version)
        except (ProtocolError, ValueError):
            continue
        memory.advance(0.05)
        for response in client.answers():
            learned.learn(response)
            assert getattr(response, "error_code", 0) != ErrorCode.UNKNOWN_SERVER_ERROR, (request, response)
        client.connection.close()
    assert [record.getMessage() for record in caplog.records if record.levelno >= logging.ERROR] == []
    assert memory.node.halt_reason is None
    memory.close()
    MemoryController(directory).close()  # what it has written can be read
