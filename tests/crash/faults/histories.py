"""The histories: what a broker does before the faults begin, and the work of which each file operation fails."""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum
from typing import NamedTuple

from tests.crash.faults.work import Work


class Begins(Enum):
    """Where the operations begin that fail."""

    AT_START = "start"
    WITH_WORK = "work"
    AT_STOP = "stop"


class History(NamedTuple):
    """`prepare` is done on a good disk, then the broker is stopped, or killed; then it starts again for `run`."""

    prepare: Callable[[Work], None]
    run: Callable[[Work], None]
    begins: Begins = Begins.WITH_WORK
    is_killed: bool = False


def _topics(work: Work) -> None:
    work.create_topic("a")
    work.create_topic("b", 2)
    for _ in range(3):
        work.produce("a")
        work.produce("b", 1)


def _produce(work: Work) -> None:
    for at in range(9):
        work.produce("a")
        if at % 3 == 0:
            work.produce("b", 1)
            work.read("a", isolation=0)
    work.session.run_jobs()


def _transactions(work: Work) -> None:
    for at in range(4):
        work.transaction("x", [("a", 0), ("b", 1)], commit=at % 2 == 0)
        work.read("a")
    work.produce("a")
    work.session.run_jobs()


def _prepare_transactions(work: Work) -> None:
    _topics(work)
    work.transaction("x", [("a", 0), ("b", 1)], commit=False)


def _prepare_compaction(work: Work) -> None:
    work.create_topic("a")
    work.create_topic("k", cleanup_policy="compact", min_cleanable_dirty_ratio="0.01")
    for at in range(20):
        work.produce("k", key=b"%d" % (at % 3))


def _compaction(work: Work) -> None:
    work.session.compact()
    for at in range(6):
        work.produce("k", key=b"%d" % (at % 2))
    work.session.compact()
    work.session.run_jobs()


def _prepare_retention(work: Work) -> None:
    work.create_topic("a", retention_bytes="1000")
    work.facts.expires.add("a")
    for _ in range(20):
        work.produce("a")


def _retention(work: Work) -> None:
    work.session.run_jobs()
    for _ in range(8):
        work.produce("a")
    work.session.run_jobs()


def _prepare_deletion(work: Work) -> None:
    _topics(work)
    for _ in range(15):
        work.produce("a")


def _deletion(work: Work) -> None:
    work.delete_records("a", 5)
    work.produce("a")
    work.delete_records("a", 14)
    work.session.run_jobs()
    work.read("a", isolation=0)


def _prepare_groups(work: Work) -> None:
    _topics(work)
    work.commit_offset("g", 1)


def _groups(work: Work) -> None:
    for offset in range(2, 6):
        work.commit_offset("g", offset)
        work.commit_offset("h", offset)
    work.session.run_jobs()


def _prepare_share(work: Work) -> None:
    _topics(work)
    work.join_share_group()
    work.consume_share()


def _share(work: Work) -> None:
    for _ in range(3):
        work.produce("a")
        work.produce("a")
        work.consume_share()
    work.session.run_jobs()
    work.produce("a")
    work.consume_share()


def _metadata(work: Work) -> None:
    work.create_topic("c", 2)
    work.produce("c")
    work.set_config("a", "5000")
    work.delete_topic("b")
    work.create_topic("d")
    work.set_config("a", "6000")
    work.produce("a")
    work.delete_topic("c")
    work.session.run_jobs()


def _prepare_compressed(work: Work) -> None:
    _topics(work)
    work.create_topic("k", cleanup_policy="compact", min_cleanable_dirty_ratio="0.01")


def _compressed(work: Work) -> None:
    for codec in range(5):
        work.codec = codec
        work.produce("a")
        work.produce("k", key=b"%d" % (codec % 2))
        work.look_up("a")
    work.session.compact()
    work.session.run_jobs()


def _prepare_everything(work: Work) -> None:
    _prepare_transactions(work)
    work.create_topic("k", cleanup_policy="compact", min_cleanable_dirty_ratio="0.01")
    for at in range(8):
        work.produce("k", key=b"%d" % (at % 3))
    work.commit_offset("g", 1)
    work.delete_records("a", 2)
    work.session.run_jobs()
    work.produce("a")
    work.transaction("x", [("a", 0)], commit=False)


def _nothing(work: Work) -> None:
    """Start and stop are the history."""


def _little(work: Work) -> None:
    work.produce("a")
    work.transaction("x", [("a", 0)], commit=False)
    work.commit_offset("g", 2)


HISTORIES: dict[str, History] = {
    "produce": History(_topics, _produce),
    "transactions": History(_prepare_transactions, _transactions),
    "compaction": History(_prepare_compaction, _compaction),
    "retention": History(_prepare_retention, _retention),
    "deletion": History(_prepare_deletion, _deletion),
    "groups": History(_prepare_groups, _groups),
    "compressed": History(_prepare_compressed, _compressed),
    "share": History(_prepare_share, _share),
    "metadata": History(_topics, _metadata),
    "start": History(_prepare_everything, _nothing, Begins.AT_START),
    "start-after-kill": History(_prepare_everything, _little, Begins.AT_START, is_killed=True),
    "stop": History(_prepare_everything, _little, Begins.AT_STOP),
}
