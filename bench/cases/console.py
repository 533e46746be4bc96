"""The cases of the console (`barnabas console`): how fast it is on either broker, and what it costs Barnabas.

The console is a process of its own that is started for each run. What a browser asks for is asked for here: pages by
HTTP on one connection, live tails and charts as server-sent events. The cost to the broker is a pair of Barnabas with
and without a console, and of Barnabas with and without its listener of metrics.
"""

from __future__ import annotations

import json
import re
import statistics
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from http.client import HTTPConnection, RemoteDisconnected
from socket import create_connection
from typing import Any
from urllib.parse import urlencode

import psutil

from barnabas.client.cluster import Cluster
from barnabas.wire.batches.records import BatchBuilder
from barnabas.wire.messages.topics import CreatableTopic, CreateTopicsRequest, CreateTopicsResponse
from bench.cases.case import Case, Figures, Goal, Group, Scale
from bench.target import Target
from tests.support.processes.server import ROOT
from tests.support.requests import frames

PARTITIONS = 4
BATCH_RECORDS = 300
DISTINCT_BATCHES = 100
TAILS = 2
MOST_TAILS = 10
STEADY_RATE = 50_000
"""Messages a second that the broker gets beside the closed loop."""
STEADY_RECORDS = 500
SETTLE_S = 6.0
"""How long a console samples before its memory is read: three samples."""
PAIRS = 3
FILTER = {"filter": "value.amount > 1e9", "start": "oldest", "seconds": "1"}
"""Matches no record, so every one is decoded."""
TIMEOUT_S = 120.0


class Console:
    """A process of `barnabas console`, and one connection to it."""

    def __init__(self, bootstrap: str) -> None:
        self.started = time.monotonic()
        self._process = subprocess.Popen(
            [
                sys.executable,
                "-m",
                "barnabas",
                "console",
                "-b",
                bootstrap,
                "--listen",
                "127.0.0.1:0",
                "--end-with-stdin",
            ],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            cwd=ROOT,
        )
        assert self._process.stdout is not None
        line = self._process.stdout.readline().decode()
        if not line.startswith("Console: http://"):
            raise RuntimeError(f"the console did not start: {line!r}")
        self.host, _, port = line.removeprefix("Console: http://").strip().rpartition(":")
        self.port = int(port)
        self._http = HTTPConnection(self.host, self.port, timeout=TIMEOUT_S)

    def close(self) -> None:
        """End the process."""
        self._http.close()
        self._process.communicate()

    def get(self, path: str) -> bytes:
        """The body of an answer as it is sent: the console compresses static files. Redirects are followed."""
        try:
            self._http.request("GET", path, headers={"Accept-Encoding": "gzip"})
            response = self._http.getresponse()
        except RemoteDisconnected:  # it was idle for too long
            self._http.close()
            return self.get(path)
        body = response.read()
        if response.status in (302, 303, 307):
            return self.get(response.headers["location"])
        if response.status != 200:
            raise RuntimeError(f"{path}: {response.status} {body[:300]!r}")
        return body

    def json(self, path: str, **query: str) -> Any:
        """The JSON answer of the API."""
        return json.loads(self.get(f"/api{path}?{urlencode(query)}"))

    def memory_bytes(self) -> int:
        """Resident memory of the console's process, without those that search for it."""
        return int(psutil.Process(self._process.pid).memory_info().rss)

    def searching_cpu_s(self) -> float:
        """CPU seconds of the processes that search for it."""
        children = psutil.Process(self._process.pid).children()
        return float(sum(sum(child.cpu_times()[:2]) for child in children))

    @contextmanager
    def stream(self, path: str) -> Iterator[None]:
        """Read server-sent events, or a download, in a thread until the block ends."""
        with create_connection((self.host, self.port), TIMEOUT_S) as connection:
            connection.sendall(f"GET {path} HTTP/1.1\r\nHost: {self.host}:{self.port}\r\n\r\n".encode())
            if not connection.recv(65536).startswith(b"HTTP/1.1 200"):
                raise RuntimeError(f"{path}: no stream")
            reader = threading.Thread(target=_read_all, args=[connection])
            reader.start()
            try:
                yield
            finally:
                with suppress(OSError):
                    connection.shutdown(2)
                reader.join()


def _read_all(connection: Any) -> None:
    with suppress(OSError):
        while connection.recv(1 << 20):
            pass


@contextmanager
def _console(target: Target) -> Iterator[Console]:
    console = Console(target.server.bootstrap)
    try:
        yield console
    finally:
        console.close()


# --- pages


def start(target: Target, _scale: Scale) -> Figures:
    """Until the first page is there, and then that page with everything that it loads."""
    with _console(target) as console:
        console.get("/")
        ready_s = time.monotonic() - console.started
        times, size = [], 0
        for _ in range(5):
            began = time.monotonic()
            page = console.get("/").decode()
            parts = sorted(set(re.findall(r'(?:src|href)="(/static/[^"]+)"', page)))
            size = len(page.encode()) + sum(len(console.get(path)) for path in parts)
            times.append(time.monotonic() - began)
    return {"ready s": ready_s, "page ms": statistics.median(times) * 1000, "page kB": size / 1000}


# --- messages


def orders(target: Target, records: int) -> str:
    """A topic with about as many records of 200 bytes of JSON as asked for; made once."""
    key = (PARTITIONS, 200, -records)
    if key not in target.exact:
        topic = target.create(PARTITIONS, {"retention.ms": "-1"})
        batches = [_batch_of_orders(number * BATCH_RECORDS) for number in range(DISTINCT_BATCHES)]
        requests = [frames.produce(topic, number % PARTITIONS, batch) for number, batch in enumerate(batches)]
        target.send(requests[number % DISTINCT_BATCHES] for number in range(records // BATCH_RECORDS))
        target.exact[key] = topic
    return target.exact[key]


def _batch_of_orders(first: int) -> bytes:
    builder = BatchBuilder()
    now_ms = int(time.time() * 1000)
    for number in range(first, first + BATCH_RECORDS):
        order = {
            "id": number,
            "customer": {"name": f"Ada {number % 7}", "vip": number % 5 == 0, "city": "Bern"},
            "amount": number % 1000 * 1.5,
            "items": [{"sku": f"sku-{number % 9}", "count": number % 3 + 1}],
            "created": "2026-11-21T09:00:00Z",
        }
        order["note"] = "x" * (188 - len(json.dumps(order)))
        builder.append(now_ms, b"customer-%d" % (number % 7), json.dumps(order).encode())
    return bytes(builder.build())


def scan(target: Target, scale: Scale) -> Figures:
    """A filter that no record matches, page by page as the browser asks for them, to the end of the topic."""
    topic = orders(target, scale.console_records)
    with _console(target) as console:
        _last_100(console, topic)
        console.json(f"/messages/{topic}", **FILTER | {"seconds": "0.1"})  # the process that searches has started
        cpu_s, began, scanned = console.searching_cpu_s(), time.monotonic(), 0
        page = console.json(f"/messages/{topic}", **FILTER)
        scanned += page["scanned"]
        while page["ended_by"] == "time":
            page = json.loads(console.get("/api" + page["on"] + "&seconds=1"))
            scanned += page["scanned"]
        took_s = time.monotonic() - began
        cpu_s = console.searching_cpu_s() - cpu_s
    if scanned < scale.console_records * 0.99 or page["ended_by"] != "end":
        raise RuntimeError(f"{scanned} records were looked at, until {page['ended_by']}")
    return {"msg/s": scanned / took_s, "CPU us/op": cpu_s / scanned * 1e6}


def last_100(target: Target, scale: Scale, *, beside_export: bool) -> Figures:
    """The last 100 records of the topic, alone or beside an export of all of it."""
    topic = orders(target, scale.console_records)
    with _console(target) as console, ExitStack() as stack:
        _last_100(console, topic)
        if beside_export:
            stack.enter_context(console.stream(f"/messages/{topic}/export?format=csv"))
        return {"page ms": statistics.median(_last_100(console, topic) for _ in range(10)) * 1000}


def _last_100(console: Console, topic: str) -> float:
    began = time.monotonic()
    shown = console.json(f"/messages/{topic}", limit="100")["records"]
    if len(shown) != 100:
        raise RuntimeError(f"{len(shown)} of 100 records")
    return time.monotonic() - began


# --- memory


def memory(target: Target, scale: Scale) -> Figures:
    """With many topics and groups, ten live tails, and the overview open."""
    topic = _many(target, scale.console_topics, scale.console_topics // 5)
    with _console(target) as console, ExitStack() as stack:
        stack.enter_context(console.stream("/figures/events"))
        for _ in range(MOST_TAILS):
            stack.enter_context(console.stream(f"/messages/{topic}/events"))
        for path in ("/topics", "/groups", "/messages", "/cluster"):
            console.get(path)
        with _steady_load(target, topic):
            time.sleep(SETTLE_S)
        return {"MB": console.memory_bytes() / 1e6}


def _many(target: Target, topics: int, groups: int) -> str:
    """Create topics, and groups with a committed offset; the name of a topic. Made once."""
    key = (topics, groups, 0)
    if key not in target.exact:
        topic = target.create(1)
        with Cluster(target.server.bootstrap, timeout_s=TIMEOUT_S) as cluster:
            for first in range(0, topics, 500):
                names = [
                    CreatableTopic(name=f"many-{number}", num_partitions=1) for number in range(first, first + 500)
                ]
                for name in names:
                    name.replication_factor = 1
                deadline = time.monotonic() + TIMEOUT_S
                request = CreateTopicsRequest(topics=names, timeout_ms=int(TIMEOUT_S * 1000))
                cluster.any_node(deadline).call(request, CreateTopicsResponse, deadline)
        with create_connection((target.server.host, target.server.port), TIMEOUT_S) as connection:
            stream = connection.makefile("rb")
            for number in range(groups):
                connection.sendall(frames.offset_commit(f"group-{number}", topic))
                stream.read(int.from_bytes(stream.read(4), "big"))
        target.exact[key] = topic
    return target.exact[key]


# --- what it costs the broker


@contextmanager
def _steady_load(target: Target, topic: str) -> Iterator[None]:
    """`STEADY_RATE` messages a second in batches, from a thread."""
    batch, _ = frames.batch(STEADY_RECORDS * 108, 100)
    frame = frames.produce(topic, 0, batch)
    ends = threading.Event()

    def produce() -> None:
        with create_connection((target.server.host, target.server.port), TIMEOUT_S) as connection:
            stream = connection.makefile("rb")
            due = time.monotonic()
            while not ends.wait(max(0.0, due - time.monotonic())):
                connection.sendall(frame)
                stream.read(int.from_bytes(stream.read(4), "big"))
                due += STEADY_RECORDS / STEADY_RATE

    thread = threading.Thread(target=produce)
    thread.start()
    try:
        yield
    finally:
        ends.set()
        thread.join()


def beside_console(target: Target, scale: Scale, *, connections: int) -> Figures:
    """The closed loop beside steady messages; the side that has a console also has its tails and charts open."""
    topic, loop_topic = target.create(1), target.create(1)
    batch, _ = frames.batch(1, 100)
    with ExitStack() as stack:
        stack.enter_context(_steady_load(target, topic))
        if target.server.data_dir.name == "barnabas":  # the first of the two sides
            console = stack.enter_context(_console(target))
            stack.enter_context(console.stream("/figures/events"))
            for _ in range(TAILS):
                stack.enter_context(console.stream(f"/messages/{topic}/events"))
        requests = [frames.produce(loop_topic, 0, batch)]
        outcome = target.raw("produce", requests, connections, 1, scale.warmup_s, scale.seconds)
    target.delete(topic)
    target.delete(loop_topic)
    return {"p99 ms": outcome.p99_us / 1000, "req/s": outcome.requests / outcome.seconds}


def beside_metrics(target: Target, scale: Scale, *, connections: int) -> Figures:
    """The closed loop; one side counts for its listener of metrics."""
    topic = target.create(1)
    batch, _ = frames.batch(1, 100)
    outcome = target.raw("produce", [frames.produce(topic, 0, batch)], connections, 1, scale.warmup_s, scale.seconds)
    target.delete(topic)
    return {"CPU us/op": outcome.cpu_us_per_request}


# --- groups


def cases(scale: Scale) -> Iterator[Case]:
    """The cases of the group `Console`, in order."""
    records = f"{scale.console_records:,} records"
    yield Case(
        "console: start", start, {"ready s": Goal(limit=1), "page ms": Goal(limit=100), "page kB": Goal(limit=120)}
    )
    yield Case(f"filter over {records}", scan, {"msg/s": Goal(limit=150_000)})
    last = {"page ms": Goal(limit=200)}
    yield Case(f"last 100 of {records}", partial(last_100, beside_export=False), last)
    yield Case(f"last 100 of {records}, beside an export", partial(last_100, beside_export=True), last)
    name = f"{scale.console_topics:,} topics, {scale.console_topics // 5:,} groups, {MOST_TAILS} tails"
    yield Case(name, memory, {"MB": Goal(limit=80)}, quick=False)


def groups(scale: Scale, page_cache: Mapping[str, str]) -> list[Group]:
    """The groups; `page_cache` has Barnabas sync as Kafka does."""
    loop = "closed loop, {} conn."
    return [
        Group(
            "Console",
            "`barnabas console` on both brokers, a new process for each run. ready s is from its start until the first "
            "page is there; page ms and page kB are of the first page with its styles and scripts, or of a page of "
            "records. Records are 200 bytes of JSON; the filter matches none. CPU us/op are of the process that "
            "searches, for a record. MB is the memory of the console's process.",
            tuple(cases(scale)),
            barnabas=page_cache,
            kafka={},
        ),
        Group(
            "Beside a console",
            f"Barnabas with a console, {TAILS} live tails and all charts of the overview open, beside Barnabas "
            f"without. Both get {STEADY_RATE:,} messages a second. {PAIRS} pairs a run, in turn.",
            tuple(
                Case(
                    loop.format(connections),
                    partial(beside_console, connections=connections),
                    {"p99 ms": Goal(1.1)},
                    repeat=PAIRS,
                )
                for connections in (1, 10)
            ),
            barnabas=page_cache,
            kafka=page_cache,
            sides=("with", "without"),
            before=ROOT,
        ),
        Group(
            "Metrics",
            "Barnabas with its listener of metrics, which nobody reads meanwhile, beside Barnabas without. "
            f"{PAIRS} pairs a run, in turn.",
            (
                Case(
                    loop.format(50),
                    partial(beside_metrics, connections=50),
                    {"CPU us/op": Goal(1.02)},
                    repeat=PAIRS,
                ),
            ),
            barnabas={**page_cache, "barnabas.metrics.listener": "127.0.0.1:0"},
            kafka=page_cache,
            sides=("with", "without"),
            before=ROOT,
        ),
    ]
