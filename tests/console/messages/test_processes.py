"""Searches, exports and large values are read by processes of their own, which end when nobody waits for them."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator
from threading import Event

import psutil
import pytest

from barnabas.client.admin.topics import create_topic
from barnabas.client.cluster import Cluster
from barnabas.client.errors import ClientError, NotFound
from barnabas.client.producer import Producer
from barnabas.client.records import expression
from barnabas.client.records.expression import Filter, parsed
from barnabas.console.failures import Refused
from barnabas.console.guard.sessions import Session
from barnabas.console.messages import processes as processes_module
from barnabas.console.messages import tail as tail_module
from barnabas.console.messages.criteria import Criteria, Matcher
from barnabas.console.messages.processes import MOST_PROCESSES, ReadingProcesses
from barnabas.console.messages.tail import tail
from barnabas.console.screens.messages import records, views
from barnabas.console.settings import Settings
from barnabas.wire.clients.partitioners import RoundRobin
from barnabas.wire.errors import CorruptRecord, ErrorCode, KafkaError
from tests.support.console.running import RunningConsole
from tests.support.console.tasks import counted, crash, endless, fail, fail_locally, process_id
from tests.support.waiting import wait_for

NOBODY = Session("anonymous", {}, None, "nobody")


def is_gone(pid: int) -> bool:
    return not psutil.pid_exists(pid) or psutil.Process(pid).status() == psutil.STATUS_ZOMBIE


@pytest.fixture
def reading(broker) -> Iterator[ReadingProcesses]:
    reading = ReadingProcesses(Settings(broker.bootstrap))
    yield reading
    reading.close()


def test_a_process_serves_one_task_after_the_other_and_its_errors_arrive(reading: ReadingProcesses) -> None:
    pid = reading.result(NOBODY, process_id)
    assert pid != os.getpid()
    assert psutil.Process(pid).nice() == psutil.Process().nice() + 5
    assert list(reading.steps(NOBODY, counted, 3)) == [(pid, 0), (pid, 1), (pid, 2)]
    missing = NotFound("there is no topic", kind="topic", name="t", answer=KafkaError(ErrorCode.INVALID_RECORD))
    for error in (missing, KafkaError(ErrorCode.INVALID_RECORD, "why"), CorruptRecord("torn")):
        with pytest.raises(type(error)) as raised:
            reading.result(NOBODY, fail, error)
        assert (str(raised.value), vars(raised.value).keys()) == (str(error), vars(error).keys())
    with pytest.raises(RuntimeError, match="LocalError: by design") as unexpected_error:
        reading.result(NOBODY, fail_locally)
    assert "in fail_locally" in "".join(unexpected_error.value.__notes__), "where it was raised"
    with pytest.raises(ClientError, match="has ended: try again"):
        reading.result(NOBODY, crash)
    assert reading.result(NOBODY, process_id) != pid
    reading.close()


def test_a_task_that_nobody_waits_for_ends_with_its_process(reading: ReadingProcesses, monkeypatch) -> None:
    steps = reading.steps(NOBODY, counted, 2)
    pid, _ = next(steps)
    steps.close()
    assert is_gone(pid)
    unwanted = Event()
    unwanted.set()
    with pytest.raises(ClientError, match="was stopped"):
        reading.result(NOBODY, endless, is_unwanted=unwanted)
    monkeypatch.setattr(processes_module, "STEP_LIMIT_S", 0.05)
    with pytest.raises(ClientError, match="not read in"):
        reading.result(NOBODY, endless)
    monkeypatch.undo()
    monkeypatch.setattr(processes_module, "FREE_WAIT_S", 0.01)
    open_steps = [reading.steps(NOBODY, counted, 2) for _ in range(MOST_PROCESSES)]
    pids = {next(steps)[0] for steps in open_steps}
    assert len(pids) == MOST_PROCESSES
    with pytest.raises(Refused, match="too many searches"):
        reading.result(NOBODY, process_id)
    for steps in open_steps[:2]:
        assert len(list(steps)) == 1  # to the end: these two are kept
    reading.close()
    wait_for(lambda: all(map(is_gone, pids)), "all processes have ended")


def test_a_search_ends_with_its_client(console: RunningConsole, broker, topic: str, monkeypatch) -> None:
    with Cluster(broker.bootstrap) as cluster:
        create_topic(cluster, topic, partitions=1)
    began, ended = Event(), Event()

    def result(_session: Session, _function: object, *_arguments: object, is_unwanted: Event) -> None:
        began.set()
        assert is_unwanted.wait(60)
        ended.set()
        raise ClientError("the search was stopped")

    monkeypatch.setattr(console.console.messages.processes, "result", result)
    host, _, port = console.url.removeprefix("http://").partition(":")
    with socket.create_connection((host, int(port))) as client:
        client.sendall(f"GET /messages/{topic}?filter=value.a HTTP/1.1\r\nHost: {host}:{port}\r\n\r\n".encode())
        wait_for(began.is_set, "the search has begun")
        assert not ended.is_set()
    wait_for(ended.is_set, "the search has ended")


def test_large_records_are_read_by_a_process(console: RunningConsole, broker, topic: str, monkeypatch) -> None:
    text = b"0123456789" * 30_000
    with Cluster(broker.bootstrap) as cluster:
        create_topic(cluster, topic, partitions=1)
        for codec in (0, 4):  # long as it is sent, and long only when it is decompressed
            producer = Producer(cluster, RoundRobin, codec=codec)
            producer.send(topic, text, b"k", partition=0)
            producer.flush()
    for module in (views, records):
        monkeypatch.setattr(module, "LARGEST_ANSWER_BYTES", 50_000)
    functions = []
    processes = console.console.messages.processes
    steps = processes.steps
    monkeypatch.setattr(
        processes, "steps", lambda *given, **named: functions.append(given[1]) or steps(*given, **named)
    )
    shown = console.json(f"/messages/{topic}")["records"]
    assert [record["value"]["size"] for record in shown] == [len(text)] * 2
    for offset in (0, 1):
        base = f"/messages/{topic}/0/{offset}"
        assert console.json(base)["record"]["value"]["is_cut"]
        part = console.json(f"{base}/part?form=text&at=299990")
        assert part == {"text": "0123456789", "next": -1, "size": len(text)}
        assert console.client.get(f"{base}/raw").content == text
        assert console.client.get(f"{base}/raw?side=key").content == b"k"
    assert len(functions) == 1 + 2 * 4
    assert "no offset 7" in console.json(f"/messages/{topic}/0/7", status=404)["error"]


def test_a_tail_goes_on_behind_a_large_record(broker, topic: str, monkeypatch) -> None:
    monkeypatch.setattr(tail_module, "LARGEST_ANSWER_BYTES", 50_000)
    with Cluster(broker.bootstrap) as cluster, Cluster(broker.bootstrap) as writer:
        create_topic(cluster, topic, partitions=1)
        producer = Producer(writer, RoundRobin)
        shown, skipped = [], 0

        def send(value: bytes) -> None:
            producer.send(topic, value, partition=0)
            producer.flush()

        steps = tail(cluster, topic, {0: 0}, Matcher(Criteria()), committed_only=False)
        send(b"x" * 200_000)
        while not skipped:
            skipped += next(steps).skipped
        send(b"small")
        while not shown:
            shown = next(steps).records
        assert (skipped, [record.value for record in shown]) == (1, [b"small"])


def test_a_filter_that_decodes_only_its_fields_decides_as_one_that_decodes_everything() -> None:
    values = [
        b'{"a": 1, "b": {"c": "x"}, "d": [1]}', b'{"b": {"c": 2}, "a": "1"}', b'{"a": null, "b": null}', b"{}", b"[]",
        b"7", b'"text"', b'"{\\"a\\": 1}"', b"text", b"\xff", b'{"a": 1, "a": 2}', b'{"a": NaN}', b'{"a": 1', b"", None,
        b'{"lower": 1, "a": 99999999999999999999999}',
    ]  # fmt: skip
    expressions = (
        "value.a == 1", "value.a > 0", "value['a'] == 1", "value.b.c == 'x' or value.a == 2", "value.lower() == 'text'",
        "value.a == 1 and 'b' in value", "len(value) == 2", "value", "value.b['c'] == 2", "value[offset] == 1",
        "not value.a",
    )  # fmt: skip
    for text in expressions:
        quick, whole = Filter(text), Filter(text, parsed)
        for value in values:
            fields = ("t", 0, 0, 0, None, value, [])
            assert quick.matches(*fields) == whole.matches(*fields), (text, value)
        assert quick.unusable == whole.unusable
    assert expression._fields_of_value(expression._parse("value.a > value['b'].c")) == ["a", "b"]
    assert expression._fields_of_value(expression._parse("value.a > len(value)")) == []
