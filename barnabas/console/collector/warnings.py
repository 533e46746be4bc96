"""What is wrong in a cluster, as values with a sentence each. Pure: from the figures and the time."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Final
from urllib.parse import quote

from barnabas.console.collector.figures import BrokerFigures, Figures, GroupFigures, TransactionFigures
from barnabas.terminal.plural import plural

DISK_NEARLY_FULL: Final = 0.9
CERTIFICATE_S: Final = 14 * 86_400.0
"""A certificate that ends within this time is near its end, seconds."""
GROWS_FOR_S: Final = 60.0
"""The lag of a group without members is compared with the one so long ago, seconds."""
LONG_OPEN_S: Final = 10.0
"""A transaction that is open for longer, and holds records back, is told, seconds."""
MAX_OF_A_KIND: Final = 20
"""Warnings of one kind; more are summed in one sentence."""


@dataclass(slots=True, frozen=True)
class ClusterWarning:
    """One thing that is wrong."""

    kind: str
    """unreachable, no-leader, under-replicated, disk, certificate, transaction, group or refused."""
    subject: str
    """The broker, topic, group or transactional id."""
    sentence: str
    link: str
    """The path of the console's page about it."""


def warnings(figures: Figures, now_s: float) -> list[ClusterWarning]:
    """All warnings, the most urgent kind first."""
    warned: list[ClusterWarning] = []
    for every in (_brokers, _topics, _transactions, _groups, _refusals):
        for kind, each in _by_kind(every(figures, now_s)).items():
            warned += each[:MAX_OF_A_KIND]
            if len(each) > MAX_OF_A_KIND:
                rest = len(each) - MAX_OF_A_KIND
                warned.append(ClusterWarning(kind, "", f"{rest} more of this kind: {_MORE[kind]}.", _PAGES[kind]))
    return sorted(warned, key=lambda warning: _ORDER.index(warning.kind))


_MORE = {
    "unreachable": "brokers that do not answer",
    "no-leader": "topics with partitions without a leader",
    "under-replicated": "topics with too few in-sync replicas",
    "disk": "brokers whose disk is nearly full",
    "certificate": "brokers whose certificate is near its end",
    "transaction": "transactions that hold back readers",
    "group": "groups without members whose lag grows",
    "refused": "questions that the cluster refuses",
}
_ORDER = list(_MORE)
_PAGES = {
    **dict.fromkeys(("unreachable", "disk", "certificate", "refused"), "/cluster"),
    **dict.fromkeys(("no-leader", "under-replicated"), "/topics"),
    "transaction": "/transactions",
    "group": "/groups",
}


def _by_kind(warned: Iterator[ClusterWarning]) -> dict[str, list[ClusterWarning]]:
    kinds: dict[str, list[ClusterWarning]] = {}
    for warning in warned:
        kinds.setdefault(warning.kind, []).append(warning)
    return kinds


def _brokers(figures: Figures, now_s: float) -> Iterator[ClusterWarning]:
    for broker in figures.brokers.values():
        name = f"Broker {broker.broker}"
        subject = str(broker.broker)
        if broker.answers is False:
            yield ClusterWarning("unreachable", subject, f"{name} does not answer: {broker.failure}.", "/cluster")
        if broker.disk_used is not None and broker.disk_used >= DISK_NEARLY_FULL:
            sentence = (
                f"{name} has a data directory whose file system is {broker.disk_used:.0%} full: "
                "shorten retention, delete topics or add space."
            )
            yield ClusterWarning("disk", subject, sentence, "/cluster")
        yield from _certificate(broker, now_s)


def _certificate(broker: BrokerFigures, now_s: float) -> Iterator[ClusterWarning]:
    end_s = broker.certificate_end_s
    if end_s is not None and end_s - now_s < CERTIFICATE_S:
        days = int((end_s - now_s) // 86_400)
        when = f"ends in {days} {plural('day', days)}" if days >= 0 else "has ended"
        sentence = f"The certificate of broker {broker.broker} {when}: renew it before clients refuse it."
        yield ClusterWarning("certificate", str(broker.broker), sentence, "/cluster")


def _topics(figures: Figures, now_s: float) -> Iterator[ClusterWarning]:  # noqa: ARG001 - all have one form
    for topic in figures.topics.values():
        leaderless = topic.leaderless
        if not leaderless and not topic.under_replicated:
            continue
        link = f"/topics/{quote(topic.name, safe='')}"
        if leaderless:
            sentence = (
                f"{_partitions(leaderless)} of topic {topic.name} {_have(leaderless)} no leader: clients can neither "
                "write nor read there until a broker with an in-sync replica is back."
            )
            yield ClusterWarning("no-leader", topic.name, sentence, link)
        if topic.under_replicated:
            sentence = (
                f"{_partitions(topic.under_replicated)} of topic {topic.name} {_have(topic.under_replicated)} "
                "fewer in-sync replicas than replicas: a broker is down or behind."
            )
            yield ClusterWarning("under-replicated", topic.name, sentence, link)


def _transactions(figures: Figures, now_s: float) -> Iterator[ClusterWarning]:
    for transaction in figures.transactions:
        held = held_records(transaction)
        age_s = age_of(transaction, now_s)
        if held and age_s is not None and age_s >= LONG_OPEN_S:
            sentence = (
                f"Transaction {transaction.transactional_id} is open for {duration(age_s)} and holds back "
                f"{held:,} {plural('offset', held)} from readers with read_committed."
            )
            link = f"/transactions/{quote(transaction.transactional_id, safe='')}"
            yield ClusterWarning("transaction", transaction.transactional_id, sentence, link)


def _groups(figures: Figures, now_s: float) -> Iterator[ClusterWarning]:
    for group in figures.groups.values():
        grown = _grown_unread(group, now_s)
        if grown:
            sentence = (
                f"Group {group.group} has no members and its lag grows: {group.lag or 0:,} records, "
                f"{grown:,.0f} more than a minute ago."
            )
            yield ClusterWarning("group", group.group, sentence, f"/groups/{quote(group.group, safe='')}")


def _grown_unread(group: GroupFigures, now_s: float) -> float:
    if group.has_members is not False or group.history is None:
        return 0.0
    return max(0.0, group.history.growth(now_s, GROWS_FOR_S) or 0.0)


def _refusals(figures: Figures, now_s: float) -> Iterator[ClusterWarning]:  # noqa: ARG001 - all have one form
    for question, sentence in islice(figures.failures.items(), MAX_OF_A_KIND):
        yield ClusterWarning("refused", question, f"The figures of {question} are missing: {sentence}.", "/cluster")


# --- for pages and `barnabas top` as well


def held_records(transaction: TransactionFigures) -> int | None:
    """The offsets that the partitions of a transaction hold back, as far as they are known; None if none is."""
    known = [partition.held for partition in transaction.partitions if partition.held is not None]
    return sum(known) if known or not transaction.partitions else None


def age_of(transaction: TransactionFigures, now_s: float) -> float | None:
    """Seconds since a transaction began; None if it has no record yet."""
    return None if transaction.started_ms < 0 else max(0.0, now_s - transaction.started_ms / 1000)


def duration(seconds: float) -> str:
    """`12 s`, `3 min 5 s`, `2 h 10 min`, `4 d 3 h`."""
    whole = int(seconds)
    for unit, size, smaller, less in (("d", 86_400, "h", 3_600), ("h", 3_600, "min", 60), ("min", 60, "s", 1)):
        if whole >= size:
            rest = whole % size // less
            return f"{whole // size} {unit}" + (f" {rest} {smaller}" if rest else "")
    return f"{whole} s"


def _partitions(count: int) -> str:
    return f"{count} {plural('partition', count)}"


def _have(count: int) -> str:
    return "has" if count == 1 else "have"
