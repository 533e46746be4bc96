"""Mistakes of clients in the recorded requests: findings, each with its meaning and its remedy.

No rule reports ordinary use of a client: the numbers below are far from it, because a false alarm
is a bug. Rules see only the requests in the ring, so an old mistake is not reported.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

from barnabas.wire.api_keys import ApiKey
from barnabas.wire.codec.json_form import api_name

if TYPE_CHECKING:
    from barnabas.kit.traffic.recorder import Entry

TINY_BATCHES: Final = 100
"""Requests in a row with one record each …"""
TINY_BATCHES_PER_S: Final = 50.0
"""… at this rate at least: slower ones may be single events."""
FULL_BATCH_BYTES: Final = 16_384
"""The default of batch.size in Kafka's producer: a record as large fills a batch alone."""
COMMITS: Final = 50
COMMITS_PER_S: Final = 20.0
EMPTY_FETCHES: Final = 100
EMPTY_FETCH_WAIT_MS: Final = 10
EMPTY_FETCHES_PER_S: Final = 50.0
RETRIES: Final = 20
RETRIES_PER_S: Final = 20.0
"""Clients wait 100 ms between attempts by default."""
PRODUCERS: Final = 10
GENERATIONS: Final = 20
GENERATIONS_S: Final = 60.0


class Finding(NamedTuple):
    """One warning."""

    rule: str
    client_id: str | None
    text: str


class Traces(NamedTuple):
    """The requests and connections that the rules look at."""

    entries: Sequence[Entry]
    open_clients: Collection[str | None]
    """The ids of clients that are connected."""
    is_compacted: Callable[[str], bool]


EXPLANATIONS: Final = {
    "tiny-batches": "Each record is a request of its own, which is what flush() or a wait for each record does. Let "
    "the producer batch: send on, and flush at the end; linger.ms is how long it waits for more.",
    "commit-per-record": "Each commit is for one record, and waits for the broker. Commit once for what a "
    "poll has returned, or every few seconds: after a crash records since the last commit are read again either way.",
    "fetch-busy-loop": "The consumer asks again at once when there is nothing (fetch.max.wait.ms of nearly 0). Let the "
    "broker wait: a fetch returns as soon as there are records, so this costs no latency.",
    "retry-storm": "The same request fails, and is sent again without a pause. Set retry.backoff.ms; Kafka's default "
    "is 100 ms, doubled up to a second.",
    "unkeyed-into-compacted": "The topic is compacted, so every record needs a key; the broker has refused these.",
    "transaction-left-open": "The producer is gone, and its transaction neither committed nor aborted. Readers of "
    "committed records wait behind it until transaction.timeout.ms; abort it where the code gives up.",
    "member-removed": "The coordinator had removed this member before it knew: it has not polled within "
    "max.poll.interval.ms, or sent no heartbeat within session.timeout.ms. Process less per poll, or raise the limit.",
    "producer-per-record": "Each record has a producer of its own, with connections and metadata of its own. Keep one "
    "producer for the whole process; it may be used from several threads.",
    "rebalance-storm": "The group hardly gets to work between rebalances: members come and go, or are too slow to "
    "rejoin. Keep consumers for longer than a record, or use static membership (group.instance.id).",
}
"""The meaning of each rule, and its remedy."""


def findings(traces: Traces) -> list[Finding]:
    """All findings, by rule."""
    return [finding for rule in _RULES for finding in rule(traces)]


def _runs(entries: Iterable[Entry], api: ApiKey) -> Iterator[tuple[Entry, list[Entry]]]:
    """The requests of one API by connection, with the first of each."""
    by_connection: dict[int, list[Entry]] = defaultdict(list)
    for entry in entries:
        if entry.api == api:
            by_connection[entry.connection].append(entry)
    for run in by_connection.values():
        yield run[0], run


def _is_fast(run: Sequence[Entry], least: int, per_s: float) -> bool:
    """Whether there are so many at this rate."""
    if len(run) < least:
        return False
    return len(run) >= per_s * (run[-1].time - run[0].time)


def _fastest(run: Sequence[Entry], least: int, per_s: float) -> bool:
    """Whether any `least` requests in a row are at this rate."""
    return any(_is_fast(run[at : at + least], least, per_s) for at in range(len(run) - least + 1))


def _unbroken(run: Iterable[Entry], belongs: Callable[[Entry], bool]) -> Iterator[list[Entry]]:
    """The longest stretches of requests that belong together."""
    stretch: list[Entry] = []
    for entry in run:
        if belongs(entry):
            stretch.append(entry)
        elif stretch:
            yield stretch
            stretch = []
    if stretch:
        yield stretch


def _is_tiny(entry: Entry) -> bool:
    details = entry.details
    return details.get("records") == 1 and details.get("bytes", 0) < FULL_BATCH_BYTES and not entry.errors


def _tiny_batches(traces: Traces) -> Iterator[Finding]:
    for first, run in _runs(traces.entries, ApiKey.PRODUCE):
        for stretch in _unbroken(run, _is_tiny):
            if _fastest(stretch, TINY_BATCHES, TINY_BATCHES_PER_S):
                topics = ", ".join(dict.fromkeys(topic for entry in stretch for topic in entry.topics))
                text = f"{len(stretch)} requests with one record each to {topics}"
                yield Finding("tiny-batches", first.client_id, text)
                break


def _commit_per_record(traces: Traces) -> Iterator[Finding]:
    for first, run in _runs(traces.entries, ApiKey.OFFSET_COMMIT):
        single = _for_one_record(run)
        for stretch in _unbroken(run, lambda entry: entry.number in single):  # noqa: B023 - used before the next
            if _fastest(stretch, COMMITS, COMMITS_PER_S):
                text = f"{len(stretch)} commits of group {', '.join(first.groups)}, each for one record"
                yield Finding("commit-per-record", first.client_id, text)
                break


def _for_one_record(commits: Iterable[Entry]) -> set[int]:
    """The numbers of the commits that are for one record more than the one before."""
    last: dict[str, int] = {}
    numbers = set()
    for entry in commits:
        offsets: dict[str, int] = entry.details.get("offsets", {})
        moved = [offset - last[where] if where in last else 2 for where, offset in offsets.items()]
        if sum(moved) == 1 and not entry.errors:
            numbers.add(entry.number)
        last |= offsets
    return numbers


def _fetch_busy_loop(traces: Traces) -> Iterator[Finding]:
    def is_empty(entry: Entry) -> bool:
        waits = entry.details.get("max_wait_ms", EMPTY_FETCH_WAIT_MS)
        return waits < EMPTY_FETCH_WAIT_MS and entry.details.get("bytes") == 0 and not entry.errors

    for first, run in _runs(traces.entries, ApiKey.FETCH):
        for stretch in _unbroken(run, is_empty):
            if _fastest(stretch, EMPTY_FETCHES, EMPTY_FETCHES_PER_S):
                text = f"{len(stretch)} fetches in a row of {', '.join(first.topics)} that return nothing"
                yield Finding("fetch-busy-loop", first.client_id, text)
                break


def _retry_storm(traces: Traces) -> Iterator[Finding]:
    runs: dict[tuple[object, ...], list[Entry]] = defaultdict(list)
    for entry in traces.entries:
        if entry.errors:
            names = (entry.topics, entry.groups, entry.transactional_ids)
            runs[entry.client_id, entry.connection, entry.api, names, entry.errors].append(entry)
    for run in runs.values():
        if _fastest(run, RETRIES, RETRIES_PER_S):
            error = run[0].errors[0][1]
            yield Finding("retry-storm", run[0].client_id, f"{len(run)} times {api_name(run[0].api)} with {error}")


def _unkeyed(traces: Traces) -> Iterator[Finding]:
    counts: dict[tuple[str | None, str], int] = defaultdict(int)
    for entry in traces.entries:
        if entry.api == ApiKey.PRODUCE:
            for where, error in entry.errors:
                topic = where.rpartition("-")[0]
                if error == "INVALID_RECORD" and traces.is_compacted(topic):
                    counts[entry.client_id, topic] += 1
    for (client_id, topic), count in counts.items():
        text = f"{count} request{'s'[: count > 1]} to the compacted topic {topic} refused: INVALID_RECORD"
        yield Finding("unkeyed-into-compacted", client_id, text)


def _transaction_left_open(traces: Traces) -> Iterator[Finding]:
    begun: dict[str, Entry] = {}
    for entry in traces.entries:
        for name in entry.transactional_ids:
            if entry.api in (ApiKey.END_TXN, ApiKey.INIT_PRODUCER_ID):
                begun.pop(name, None)
            elif entry.api in _IN_TRANSACTION and not entry.errors:
                begun[name] = entry
    for name, entry in begun.items():
        if entry.client_id not in traces.open_clients:
            yield Finding("transaction-left-open", entry.client_id, f"the transaction of {name} was left open")


_IN_TRANSACTION: Final = frozenset(
    {ApiKey.PRODUCE, ApiKey.ADD_PARTITIONS_TO_TXN, ApiKey.ADD_OFFSETS_TO_TXN, ApiKey.TXN_OFFSET_COMMIT}
)


def _member_removed(traces: Traces) -> Iterator[Finding]:
    departed: set[str] = set()
    joined: set[str] = set()
    for entry in traces.entries:
        member = entry.details.get("member_id", "")
        if entry.api == ApiKey.LEAVE_GROUP:
            departed.update(entry.details.get("members", ()))
        elif entry.api in _HEARTBEATS and member:
            if not entry.errors:
                joined.add(member)
            elif member in joined and member not in departed and entry.errors[0][1] == "UNKNOWN_MEMBER_ID":
                joined.discard(member)
                text = f"{member} of group {', '.join(entry.groups)} had been removed"
                yield Finding("member-removed", entry.client_id, text)


_HEARTBEATS: Final = frozenset({ApiKey.HEARTBEAT, ApiKey.SYNC_GROUP, ApiKey.OFFSET_COMMIT, ApiKey.JOIN_GROUP})


def _producer_per_record(traces: Traces) -> Iterator[Finding]:
    single: dict[str | None, int] = defaultdict(int)
    for first, run in _runs(traces.entries, ApiKey.PRODUCE):
        if len(run) == 1 and first.details.get("records") == 1 and not first.errors:
            single[first.client_id] += 1
    for client_id, count in single.items():
        if count >= PRODUCERS:
            yield Finding("producer-per-record", client_id, f"{count} producers that sent one record each")


def _rebalance_storm(traces: Traces) -> Iterator[Finding]:
    generations: dict[str, dict[int, float]] = defaultdict(dict)
    for entry in traces.entries:
        if entry.api == ApiKey.JOIN_GROUP and not entry.errors:
            for group in entry.groups:
                generations[group].setdefault(entry.details.get("generation_id", -1), entry.time)
    for group, times in generations.items():
        starts = list(times.values())
        if len(starts) >= GENERATIONS and starts[-1] - starts[-GENERATIONS] <= GENERATIONS_S:
            yield Finding("rebalance-storm", None, f"{len(starts)} generations of group {group}")


_RULES: Final = (
    _tiny_batches, _commit_per_record, _fetch_busy_loop, _retry_storm, _unkeyed, _transaction_left_open,
    _member_removed, _producer_per_record, _rebalance_storm,
)  # fmt: skip
