"""Pages of records: every record once, in order, whatever the direction, the partitions, the filter and the size."""

from __future__ import annotations

import json
from collections.abc import Iterator
from random import Random

import pytest

from barnabas.client.admin.topics import create_topic
from barnabas.client.cluster import Cluster
from barnabas.client.producer import Producer
from barnabas.console.messages import pages
from barnabas.console.messages.criteria import Criteria, Matcher
from barnabas.console.messages.found_records import FoundRecord
from barnabas.console.messages.pages import Page, PageRequest, read_page
from barnabas.console.messages.starts import NEWEST, OLDEST, Span, partitions_of, read_span, start_positions
from barnabas.console.messages.tail import tail
from barnabas.wire.clients.partitioners import RoundRobin

COUNT = 300
T0 = 1_763_000_000_000


@pytest.fixture
def cluster(broker) -> Iterator[Cluster]:
    with Cluster(broker.bootstrap) as cluster:
        yield cluster


def fill(cluster: Cluster, topic: str, partitions: int = 3, count: int = COUNT, **options) -> None:
    """Records with times of one partition in order, of different partitions mixed."""
    create_topic(cluster, topic, partitions=partitions, configs={"retention.ms": "-1"})
    producer = Producer(cluster, RoundRobin, batch_bytes=700, **options)
    chance = Random(5)
    for number in range(count):
        value = json.dumps({"number": number, "even": number % 2 == 0}).encode()
        producer.send(topic, value, b"%d" % number, partition=chance.randrange(partitions), timestamp_ms=T0 + number)
    producer.flush()


def span_of(cluster: Cluster, topic: str, *, committed_only: bool = False) -> Span:
    return read_span(cluster, topic, partitions_of(cluster, topic, ()), committed_only=committed_only)


def every_page(cluster: Cluster, topic: str, matcher: Matcher, backwards: bool, **options) -> list[Page]:
    span = span_of(cluster, topic)
    positions = start_positions(cluster, topic, span, NEWEST if backwards else OLDEST, "")
    found: list[Page] = []
    while not found or found[-1].remaining:
        page = read_page(cluster, span, PageRequest(topic, positions, 25, backwards, **options), matcher)
        found.append(page)
        positions = page.low if backwards else page.high
    return found


def numbers(records: list[FoundRecord]) -> list[int]:
    return [int(record.key or b"-1") for record in records]


def test_each_record_is_on_one_page_in_the_order_of_time(cluster: Cluster, topic: str, monkeypatch) -> None:
    fill(cluster, topic)
    for backwards in (False, True):
        found = every_page(cluster, topic, Matcher(Criteria()), backwards)
        assert [len(page.records) for page in found] == [25] * 12
        seen = [number for page in found for number in numbers(page.records)]
        assert seen == (list(range(COUNT))[::-1] if backwards else list(range(COUNT)))
        assert sum(page.scanned for page in found) == COUNT
    monkeypatch.setattr(pages, "FIRST_SCAN_OFFSETS", 20)
    for backwards in (False, True):
        for criteria, step in ((Criteria(expression="value.even"), 2), (Criteria(value='"number": 2'), 0)):
            found = every_page(cluster, topic, Matcher(criteria), backwards)
            seen = [number for page in found for number in numbers(page.records)]
            wanted = [number for number in range(COUNT) if (number % step == 0 if step else str(number)[0] == "2")]
            assert sorted(seen) == wanted
            assert all(len(page.records) <= 25 for page in found)
            assert sum(page.scanned for page in found) == COUNT


def test_a_page_from_the_middle_goes_both_ways(cluster: Cluster, topic: str) -> None:
    fill(cluster, topic)
    span = span_of(cluster, topic)
    matcher = Matcher(Criteria())
    middle = start_positions(cluster, topic, span, "time", str(T0 + 150))
    newer = read_page(cluster, span, PageRequest(topic, middle, 10, backwards=False), matcher)
    older = read_page(cluster, span, PageRequest(topic, newer.low, 10, backwards=True), matcher)
    assert numbers(newer.records) == list(range(150, 160))
    assert numbers(older.records) == list(range(149, 139, -1))
    assert older.high == newer.low
    again = read_page(cluster, span, PageRequest(topic, older.low, 20, backwards=False), matcher)
    assert numbers(again.records) == list(range(140, 160))


def test_states_of_transactions(cluster: Cluster, topic: str) -> None:
    create_topic(cluster, topic, partitions=1)
    open_producers = []
    for name, outcome in (("a", True), ("b", False), ("c", None)):
        producer = Producer(cluster, RoundRobin, transactional_id=f"{topic}-{name}")
        producer.open(topic)
        for number in range(2):
            producer.send(topic, b"{}", f"{name}{number}".encode(), partition=0)
        producer.flush()
        if outcome is None:
            open_producers.append(producer)
        else:
            producer.transaction.end(commit=outcome)
            producer.transaction.wait_until_visible()

    def keys(**options) -> list[tuple[bytes | str, str]]:
        span = span_of(cluster, topic, committed_only=options.get("committed_only", False))
        request = PageRequest(topic, span.first, 100, backwards=False, **options)
        records = read_page(cluster, span, request, Matcher(Criteria())).records
        return [(record.control.partition(" ")[0] or record.key.decode(), record.state) for record in records]

    assert keys() == [
        ("a0", "committed"), ("a1", "committed"), ("b0", "aborted"), ("b1", "aborted"),
        ("c0", "undecided"), ("c1", "undecided"),
    ]  # fmt: skip
    assert keys(committed_only=True) == [("a0", "committed"), ("a1", "committed")]
    assert keys(committed_only=True, shows_control=True) == [
        ("a0", "committed"), ("a1", "committed"), ("COMMIT", "control"),
        ("b0", "aborted"), ("b1", "aborted"), ("ABORT", "control"),
    ]  # fmt: skip
    for producer in open_producers:
        producer.transaction.end(commit=False)


def test_large_records_are_cut_and_do_not_fill_the_memory(cluster: Cluster, topic: str, monkeypatch) -> None:
    create_topic(cluster, topic, partitions=1, configs={"max.message.bytes": str(20_000_000)})
    producer = Producer(cluster, RoundRobin)
    for number in range(12):
        producer.send(topic, b"x" * (3_000_000 if number != 5 else 10), b"%d" % number, partition=0)
        producer.flush()
    monkeypatch.setattr(pages, "ROUND_BYTES", 10_000_000)
    span = span_of(cluster, topic)
    for backwards in (False, True):
        start = span.end if backwards else span.first
        page = read_page(cluster, span, PageRequest(topic, start, 100, backwards), Matcher(Criteria()))
        assert numbers(page.records) == (list(range(12))[::-1] if backwards else list(range(12)))
        assert [record.value_size for record in page.records].count(3_000_000) == 11
        assert all(len(record.value or b"") <= 64 * 1024 for record in page.records)
    monkeypatch.setattr(pages, "PAGE_BYTES", 10_000_000)
    page = read_page(cluster, span, PageRequest(topic, span.end, 100, backwards=True), Matcher(Criteria()))
    assert page.ended_by == "size"
    assert 0 < len(page.records) < 12


def test_a_tail_shows_the_newest_and_counts_the_rest(cluster: Cluster, topic: str) -> None:
    fill(cluster, topic, partitions=1)
    for criteria, wanted in ((Criteria(), COUNT), (Criteria(expression="value.even"), COUNT // 2)):
        shown: list[FoundRecord] = []
        skipped = seen = 0
        for arrived in tail(cluster, topic, {0: 0}, Matcher(criteria), committed_only=False, per_second=20):
            shown += arrived.records
            skipped += arrived.skipped
            seen += arrived.seen
            assert len(arrived.records) <= 20
            if seen == COUNT:
                break
        assert len(shown) + skipped == wanted
        assert skipped >= wanted - 20 * 3
        assert numbers(shown)[-1] == (COUNT - 1 if wanted == COUNT else COUNT - 2)
