"""Requests and responses as bytes while somebody watches: what is kept, what is never kept, and that nothing stays."""

from __future__ import annotations

from base64 import b64decode
from collections import deque
from types import SimpleNamespace
from typing import Any

import pytest

from barnabas.broker.event_loop.timers import Timers
from barnabas.client.admin.topics import create_topic
from barnabas.client.admin.users import set_credential
from barnabas.client.cluster import Cluster as Client
from barnabas.client.security.scram import credential
from barnabas.kit.traffic import capture
from barnabas.kit.traffic.capture import LEASE_S, Capture
from barnabas.testing import Cluster
from barnabas.wire.api_keys import ApiKey
from barnabas.wire.errors import ProtocolError
from barnabas.wire.messages.fetch import FetchRequest, FetchRequestFetchPartition, FetchRequestFetchTopic
from barnabas.wire.messages.topics import CreateTopicsRequest
from barnabas.wire.registry import message_for
from tests.support.waiting import wait_for


def _watched(kafka: Cluster, after: int = 0, **filters: Any) -> dict[str, Any]:
    answer: dict[str, Any] = kafka._link.perform("exchanges", {"after": after} | filters)
    return answer


def test_requests_are_kept_with_their_bytes_once_somebody_watches(kafka: Cluster) -> None:
    with Client(kafka.bootstrap_servers, client_id="shop") as client:
        client.retry(lambda deadline: client.metadata(None, deadline))  # before the watch
        assert _watched(kafka)["requests"] == []
        create_topic(client, "orders", partitions=1)
        answer = _watched(kafka)
        (created,) = (each for each in answer["requests"] if each["api"] == ApiKey.CREATE_TOPICS)
        assert (created["client_id"], created["outcome"], created["principal"]) == (
            "shop",
            "answered",
            "User:ANONYMOUS",
        )
        frame = b64decode(created["request"])
        assert len(frame) == created["request_size"]
        assert b"orders" in frame
        response = b"".join(map(b64decode, created["response"]))
        assert len(response) == created["response_size"]
        assert response[:4] == created["correlation_id"].to_bytes(4, "big")
        assert 0 < created["took"] < 60
        assert _watched(kafka, answer["next"])["requests"] == []
        client.retry(lambda deadline: client.metadata(None, deadline))
        assert [each["api"] for each in _watched(kafka, answer["next"])["requests"]] == [ApiKey.METADATA]
        assert _watched(kafka, answer["next"], apis=["Fetch"])["requests"] == []
        assert _watched(kafka, answer["next"], client_id="SHO")["requests"] != []
        assert _watched(kafka, answer["next"], not_client_id="shop")["requests"] == []


def test_a_request_that_waits_is_shown_while_it_waits_and_then_with_its_response(kafka: Cluster) -> None:
    with Client(kafka.bootstrap_servers, client_id="reader") as client:
        create_topic(client, "orders", partitions=1)
        topic_id = client.find_topic("orders").topic_id
        partition = FetchRequestFetchPartition(partition=0, fetch_offset=0, partition_max_bytes=1 << 20)
        topics = [FetchRequestFetchTopic(topic_id=topic_id, partitions=[partition])]
        request = FetchRequest(max_wait_ms=60_000, min_bytes=1, max_bytes=1 << 20, topics=topics)
        start = _watched(kafka)["next"]
        node = client.retry(client.any_node)
        replies: list[object] = []
        node.send(request, lambda reply, error: replies.append(reply or error))
        waiting = wait_for(lambda: _watched(kafka)["waiting"], "the fetch waits")
        assert (waiting[0]["api"], waiting[0]["outcome"]) == (ApiKey.FETCH, "waits")
        kafka.topic("orders").produce("a")
        while not replies:
            node.receive()
        (fetched,) = (each for each in _watched(kafka, start)["requests"] if each["api"] == ApiKey.FETCH)
        assert fetched["outcome"] == "answered"
        parts = [part if isinstance(part, int) else len(b64decode(part)) for part in fetched["response"]]
        assert sum(parts) == fetched["response_size"]
        assert _watched(kafka)["waiting"] == []


def test_bytes_with_secrets_are_not_kept(kafka: Cluster) -> None:
    with Client(kafka.bootstrap_servers) as client:
        start = _watched(kafka)["next"]
        salted = credential("SCRAM-SHA-256", "secret", 4096)
        set_credential(client, "alice", salted)
        (altered,) = (
            each for each in _watched(kafka, start)["requests"] if each["api"] == ApiKey.ALTER_USER_SCRAM_CREDENTIALS
        )
        assert (altered["hidden"], altered["request"], altered["response"]) == (True, "", [])
        assert altered["request_size"] > 0
    assert capture._has_secret(ApiKey.INCREMENTAL_ALTER_CONFIGS, memoryview(b"..listener.Name.SSL.KeyStore.Key"))
    assert capture._has_secret(ApiKey.ALTER_CONFIGS, memoryview(b"sasl.jaas.config"))
    assert not capture._has_secret(ApiKey.INCREMENTAL_ALTER_CONFIGS, memoryview(b"retention.ms"))
    for api in (ApiKey.SASL_AUTHENTICATE, ApiKey.CREATE_DELEGATION_TOKEN, ApiKey.ENVELOPE):
        assert capture._has_secret(api, memoryview(b""))
    secret = [key for key in ApiKey if _names_a_secret(key)]
    assert set(secret) <= capture.SECRET_APIS


def _names_a_secret(key: ApiKey) -> bool:
    """Whether a message of an API declares a field with a secret by its name."""
    try:
        messages = message_for(key)
    except KeyError:
        return False
    words = ("auth_bytes", "hmac", "salt", "password")
    return any(word in repr([field.name for field in message.declared]) for message in messages for word in words)


class _Connection:
    """The parts of a connection that a capture uses."""

    def __init__(self) -> None:
        self.out: deque[bytes] = deque()
        self.on_close: list[Any] = []
        self.authenticator = self.delayed = None
        self.is_closing = False
        self.peer_host, self.peer_port, self.listener, self.principal = "127.0.0.1", 1, "PLAINTEXT", "User:a"
        self.dispatch: Any = self.serve
        self.on_output: Any = self.output

    def serve(self, _connection: object, frame: memoryview) -> None:
        if frame[-1:] == b"!":
            raise ProtocolError("not Kafka")
        self.out.append(bytes(8))

    def output(self, _connection: object) -> None:
        pass


class _Reactor:
    def __init__(self) -> None:
        self.connections = [_Connection()]
        self.acceptor = SimpleNamespace(listeners=[SimpleNamespace(prepare=None)])


def test_nothing_of_a_watch_stays_when_nobody_asks() -> None:
    now = [100.0]
    timers = Timers(lambda: now[0])
    reactor: Any = _Reactor()
    (connection,) = reactor.connections
    watch = Capture()
    before = connection.dispatch, connection.on_output
    watch.watch(reactor, timers, lambda: now[0])
    (listener,) = reactor.acceptor.listeners
    listener.prepare(later := _Connection())
    assert connection.dispatch is not before[0]
    now[0] += LEASE_S - 1
    watch.watch(reactor, timers, lambda: now[0])
    now[0] += 1
    timers.fire(now[0])
    assert listener.prepare is not None  # somebody has asked a second ago
    now[0] += LEASE_S
    timers.fire(now[0])
    assert (connection.dispatch, connection.on_output, connection.on_close) == (*before, [])
    assert (later.dispatch, later.on_close) == (later.serve, [])
    assert listener.prepare is None
    assert watch.after(0, lambda _: True)["requests"] == []
    assert timers.next_deadline() > now[0] + 1000


def test_what_is_kept_is_bounded_and_invalid_frames_are_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(capture, "MAX_BYTES", 100_000)
    reactor: Any = _Reactor()
    (connection,) = reactor.connections
    watch = Capture()
    watch.watch(reactor, Timers(lambda: 0.0), lambda: 0.0)
    head = int(CreateTopicsRequest.api_key).to_bytes(2, "big") + bytes(6) + b"\xff\xff"
    for number in range(2 * capture.MAX_ENTRIES):
        connection.dispatch(connection, memoryview(head + b"x" * (50_000 if number % 100 == 0 else 5)))
    with pytest.raises(ProtocolError):
        connection.dispatch(connection, memoryview(b"GET / HTTP/1.1 !"))
    answer = watch.after(1, lambda _: True)
    assert len(answer["requests"]) <= capture.MAX_ANSWERED
    assert answer["lost"] > 0
    every: list[dict[str, Any]] = []
    number = answer["next"] - len(answer["requests"])
    while len(every) <= capture.MAX_ENTRIES:
        answer = watch.after(number, lambda _: True)
        if not answer["requests"]:
            break
        every += answer["requests"]
        number = answer["next"]
    assert sum(len(each["request"]) * 3 // 4 for each in every) <= capture.MAX_BYTES
    assert (every[-1]["outcome"], every[-1]["why"]) == ("refused", "not Kafka")
    assert [each["number"] for each in every] == list(range(every[0]["number"], every[-1]["number"] + 1))
