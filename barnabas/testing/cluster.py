"""A cluster as a test sees it: its address, topics, groups and operations.

Every test has a cluster of its own (a virtual cluster of the broker's process), in which the code under test uses its
usual names; it is gone after the test.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from shutil import rmtree
from typing import TYPE_CHECKING, Any, Final

from barnabas.testing.access import Access
from barnabas.testing.clock import Amount, AsyncClock, Clock, seconds_of
from barnabas.testing.errors import BrokerError, RefusedError
from barnabas.testing.faults import AsyncFaults, AsyncHeld, Faults, Held
from barnabas.testing.finding import Finding, rules_of
from barnabas.testing.forms import Async, Sync, in_thread, operation
from barnabas.testing.group import AsyncGroup, Group, state_of
from barnabas.testing.records import record_of
from barnabas.testing.seed_files import Seed, partitions_of, read_seed
from barnabas.testing.topic import AsyncTopic, Topic

if TYPE_CHECKING:
    from typing import Self

    from barnabas.testing.link import Link


__tracebackhide__ = True
"""For pytest: a failure is shown where the test made it."""

# --- snapshots: all that a cluster has, to return to, to begin another cluster with, or to keep


class SnapshotOperations:
    """Operations on a snapshot. It is there until it is removed, or the broker's process ends."""

    def __init__(self, link: Link, number: int) -> None:
        self._link = link
        self.number = number

    @operation
    def save(self, path: str | Path) -> Path:
        """Save it as a new directory, for `barnabas serve --data-dir`; the directory."""
        absolute = Path(path).absolute()
        self._link.perform("save_snapshot", {"snapshot": self.number, "path": str(absolute)})
        return absolute

    @operation
    def remove(self) -> None:
        """Remove it with its files."""
        self._link.perform("remove_snapshot", {"snapshot": self.number})


class Snapshot(SnapshotOperations, Sync):
    """A snapshot, for plain tests."""


class AsyncSnapshot(SnapshotOperations, Async):
    """A snapshot, for tests in asyncio, trio and anyio."""


# --- requests of clients


@dataclass(frozen=True, slots=True)
class Request:
    """One request of a client. `time` is in seconds since 1970, `took` in seconds; None while it is not answered."""

    api: str
    """As Kafka calls it: Produce, JoinGroup."""
    version: int
    client_id: str | None
    connection: int
    """The connections of a cluster are numbered."""
    topics: tuple[str, ...]
    """The names in it."""
    groups: tuple[str, ...]
    transactional_ids: tuple[str, ...]
    errors: tuple[tuple[str, str], ...]
    """Where an error is (`orders-0`; empty: the whole response) and its name."""
    outcome: str
    """answered, unanswered (acks=0), closed (the connection) or waits."""
    took: float | None = field(compare=False)
    time: float = field(compare=False)
    number: int = field(compare=False)
    """In the order of their arrival."""
    details: Mapping[str, Any] = field(default_factory=dict, compare=False)
    """The other details that are recorded for this API: records and acks of Produce, offsets of OffsetCommit …"""

    @property
    def error(self) -> str | None:
        """The first error, None if there was none."""
        return self.errors[0][1] if self.errors else None


def request_of(values: Mapping[str, Any]) -> Request:
    """A request from the control channel's JSON."""
    lists: dict[str, Any] = {name: tuple(values[name]) for name in ("topics", "groups", "transactional_ids")}
    return Request(**{**values, **lists, "errors": tuple((where, name) for where, name in values["errors"])})


# --- the report of a failed test: the last records of its cluster's topics, and its groups

MOST: Final = 5
"""Topics and groups that are shown."""
LAST: Final = 3
"""Records of a partition that are shown."""


def what_is_there(link: Link) -> str:
    """The last records of the topics, and the groups; "" if there are none, or the cluster is closed."""
    try:
        return "\n".join([*_topics(link), *_groups(link)])
    except (BrokerError, RefusedError):
        return ""  # the failure of the test is of more interest


def _topics(link: Link) -> Iterator[str]:
    topics = link.topics()
    for name in topics[:MOST]:
        partitions = link.perform("topic", {"topic": name})["partitions"]
        offsets = sum(partition["high_watermark"] - partition["start"] for partition in partitions)
        yield f"{name}: {len(partitions)} partition{'s'[: len(partitions) > 1]}, {offsets} offsets"
        last = {row["partition"]: max(row["start"], row["high_watermark"] - LAST) for row in partitions}
        records = link.perform("records", {"topic": name, "positions": last})["records"]
        yield from (f"  {record_of(record)}" for record in records[-LAST * MOST :])
    if len(topics) > MOST:
        yield f"and {len(topics) - MOST} more topics"


def _groups(link: Link) -> Iterator[str]:
    groups = [group["group"] for group in link.perform("groups")["groups"]]
    for name in groups[:MOST]:
        yield f"Group {name}: {state_of(link.perform('group', {'group': name}))}"
    if len(groups) > MOST:
        yield f"and {len(groups) - MOST} more groups"


# --- the cluster


class End:
    """The broker's answer when a cluster is closed."""

    def __init__(self, told: Mapping[str, Any]) -> None:
        self.findings = [Finding(**finding) for finding in told.get("findings", ())]
        """The mistakes of clients."""
        self.cassette: str | None = told.get("cassette")
        """The session, if it was recorded."""
        self.refused: str | None = told.get("refused")
        """Why it was recorded and there is no cassette."""
        self.missing: list[str] = list(told.get("missing", ()))
        """The clients' requests that the cassette, which answers them, does not have."""


class ClusterOperations:
    """Operations on a cluster."""

    def __init__(self, link: Link, access: Access) -> None:
        self._link = link
        self.access = access
        """The settings with which clients reach it, for each of the libraries."""
        self.bootstrap_servers = access.bootstrap_servers
        """HOST:PORT, as clients take it."""

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.bootstrap_servers!r})"

    @operation
    def request(
        self, api: str, body: Mapping[str, Any], version: int | None = None, *, broker: int | None = None
    ) -> dict[str, Any]:
        """Make any request of Kafka's protocol, in Kafka's JSON: `request("DescribeGroups", {"groups": ["g"], …})`.

        Its response, in JSON too; the latest version if none is given. Of several brokers the first one that runs is
        asked, unless `broker` says which. RefusedError for a body that is not valid.
        """
        values = {"api": api, "version": version, "body": dict(body), "broker": broker}
        response: dict[str, Any] = self._link.perform("request", values)
        return response

    @operation
    def load(self, seed: str | Path | Seed) -> None:
        """Write the records of a seed file, or of one that was read; topics get as many partitions as they need."""
        for topic, records in (seed if isinstance(seed, dict) else read_seed(Path(seed))).items():
            count = partitions_of(records)
            values = {"topic": topic, "partitions": count if count > 1 else None}
            self._link.perform("create_topic", values)
            self._link.perform("produce", {"topic": topic, "records": records})

    @operation
    def requests(
        self,
        api: str | None = None,
        *,
        client_id: str | None = None,
        topic: str | None = None,
        group: str | None = None,
        transactional_id: str | None = None,
    ) -> list[Request]:
        """The requests of clients, oldest first; the broker keeps the last 2,000 requests."""
        values = {"api": api, "client_id": client_id, "topic": topic, "group": group}
        recorded = self._link.perform("recorded", values | {"transactional_id": transactional_id})
        return list(map(request_of, recorded["requests"]))

    @operation
    def timeline(
        self,
        *,
        last: int | None = None,
        client_id: str | None = None,
        topic: str | None = None,
        group: str | None = None,
    ) -> list[str]:
        """The requests of clients in lines, oldest first: repeated requests are one line with a count."""
        values = {"last": last, "client_id": client_id, "topic": topic, "group": group}
        lines: list[str] = self._link.perform("timeline", values)["lines"]
        return lines

    @operation
    def lint(self, *, ignore: str | Sequence[str] = ()) -> list[Finding]:
        """The mistakes of clients in their requests; without the rules to ignore. RefusedError for unknown rules."""
        return self._findings(ignore)

    @operation
    def assert_no_lint(self, *, ignore: str | Sequence[str] = ()) -> None:
        """Assert that clients made no mistakes in their requests, but for ignored rules."""
        if findings := self._findings(ignore):
            raise AssertionError("\n".join(map(str, findings)))

    def _findings(self, ignore: str | Sequence[str]) -> list[Finding]:
        result = self._link.perform("lint", {"ignore": rules_of(ignore)})
        return [Finding(**finding) for finding in result["findings"]]

    def report(self) -> dict[str, str]:
        """The report of this cluster for a failing test, by title: its records, groups, and the requests of clients."""
        parts = {"what is there": what_is_there(self._link), "what clients did": self._link.context().strip()}
        return {title: text for title, text in parts.items() if text}

    @operation
    def fence_producer(self, transactional_id: str) -> None:
        """Fence the producer of a transactional id, and abort its transaction."""
        self._link.perform("fence_producer", {"transactional_id": transactional_id}, wait_s=10)

    @operation
    def reload_transactions(self, transactional_id: str, loading: Amount = 0) -> None:
        """Have the coordinator of a transactional id unloaded and loaded again, as `Group.reload` does for groups."""
        values = {"transactional_id": transactional_id, "seconds": seconds_of(loading)}
        self._link.perform("reload_coordinator", values)

    @operation
    def kill(self, broker: int) -> None:
        """End a broker of a cluster that was opened with brokers=N, as a killed process: nothing is flushed."""
        self._link.perform("kill_broker", {"broker": broker})

    @operation
    def start(self, broker: int) -> None:
        """Start a broker that was killed, on its address and its directory, and wait until it serves."""
        self._link.perform("start_broker", {"broker": broker})

    @operation
    def elect(self, topic: str, partition: int = 0, *, leader: int) -> None:
        """Have a replica lead a partition, and wait until all brokers know of it."""
        self._link.perform("elect", {"topic": topic, "partition": partition, "broker": leader})

    @operation
    def restore(self, snapshot: SnapshotOperations) -> None:
        """Set the cluster back to a snapshot; it keeps its address, and connections are closed."""
        self._link.perform("restore", {"snapshot": snapshot.number})

    def _take_snapshot(self) -> int:
        number: int = self._link.perform("snapshot")["snapshot"]
        return number

    def _fork(self, snapshot: SnapshotOperations | None) -> tuple[Link, Access]:
        opened = self._link.perform("fork", {"snapshot": None if snapshot is None else snapshot.number})
        return self._link.to(opened["id"]), Access(opened["bootstrap"], self.access.security)

    @operation
    def close(self) -> None:
        """Close its connections, and remove it with its data: its clients cannot reach it any more."""
        self._close()

    def _close(self) -> None:
        self._link.channel.call("DELETE", f"/v1/clusters/{self._link.number}")
        self._link.is_closed = True

    @property
    def is_closed(self) -> bool:
        """Whether it was closed here; the fixture `kafka` then has nothing to close."""
        return self._link.is_closed


class Cluster(ClusterOperations, Sync):
    """A cluster, for plain tests. Leaving its context closes it."""

    def __init__(self, link: Link, access: Access) -> None:
        super().__init__(link, access)
        self._topics: dict[str, Topic] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if not self._link.is_closed:
            self._close()

    def close_with_lint(self, ignore: str | Sequence[str] = ()) -> list[Finding]:
        """Close it; return its clients' mistakes, but for ignored rules and those that the test itself has caused.

        RefusedError for an unknown rule; the cluster is closed then too.
        """
        return self.end(ignore).findings

    def end(self, ignore: str | Sequence[str] | None = ()) -> End:
        """Close it, and return the broker's answer; None ignores all findings.

        Nothing if the test has closed it.
        """
        if self._link.is_closed:
            return End({})
        values = {"lint": ignore is not None, "ignore": rules_of(ignore or ())}
        return End(self._link.channel.call("DELETE", f"/v1/clusters/{self._link.number}", values))

    def to_await(self) -> AsyncCluster:
        """The same cluster with methods to await."""
        return AsyncCluster(self._link, self.access)

    def snapshot(self) -> Snapshot:
        """Everything that the cluster has now: topics, records, groups, offsets, open transactions."""
        return Snapshot(self._link, self._take_snapshot())

    def fork(self, snapshot: Snapshot | None = None) -> Cluster:
        """A further cluster that begins as this one is, or was in a snapshot."""
        return Cluster(*self._fork(snapshot))

    def topic(self, name: str) -> Topic:
        """A topic by its name, always the same object; it need not exist yet."""
        if name not in self._topics:
            self._topics[name] = Topic(self._link, name)
        return self._topics[name]

    def group(self, name: str) -> Group:
        """A group of any type by its name; it need not exist yet."""
        return Group(self._link, name)

    def hold(self, api: str, **wanted: Any) -> Held:
        """Hold requests at the broker: the arguments of `faults.add` that say which."""
        return Held(self.faults.add(api, hold=True, **wanted))

    @cached_property
    def faults(self) -> Faults:
        """The fault rules of this cluster."""
        return Faults(self._link)

    @property
    def clock(self) -> Clock:
        """The clock of this cluster."""
        return Clock(self._link)


class AsyncCluster(ClusterOperations, Async):
    """A cluster, for tests in asyncio, trio and anyio. Leaving its context closes it."""

    def __init__(self, link: Link, access: Access) -> None:
        super().__init__(link, access)
        self._topics: dict[str, AsyncTopic] = {}

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        if not self._link.is_closed:
            await in_thread(self._close)

    async def snapshot(self) -> AsyncSnapshot:
        """Everything that the cluster has now: topics, records, groups, offsets, open transactions."""
        return AsyncSnapshot(self._link, await in_thread(self._take_snapshot))

    async def fork(self, snapshot: AsyncSnapshot | None = None) -> AsyncCluster:
        """A further cluster that begins as this one is, or was in a snapshot."""
        return AsyncCluster(*await in_thread(self._fork, snapshot))

    def topic(self, name: str) -> AsyncTopic:
        """A topic by its name, always the same object; it need not exist yet."""
        if name not in self._topics:
            self._topics[name] = AsyncTopic(self._link, name)
        return self._topics[name]

    def group(self, name: str) -> AsyncGroup:
        """A group of any type by its name; it need not exist yet."""
        return AsyncGroup(self._link, name)

    def hold(self, api: str, **wanted: Any) -> AsyncHeld:
        """Hold requests at the broker, in `async with`: the arguments of `faults.add` that say which."""
        return AsyncHeld(self.faults, {"api": api, "hold": True, **wanted})

    @cached_property
    def faults(self) -> AsyncFaults:
        """The fault rules of this cluster."""
        return AsyncFaults(self._link)

    @property
    def clock(self) -> AsyncClock:
        """The clock of this cluster."""
        return AsyncClock(self._link)


# --- the cluster of a failed test, kept as a directory

LONGEST = 150
"""Characters of a directory's name."""


def keep(kafka: Cluster, folder: Path, test: str) -> str:
    """Save the cluster as `folder`/NAME of the test, in place of an earlier run's copy; return a sentence about it."""
    path = folder / re.sub(r"[^\w.-]+", "-", test).strip("-")[-LONGEST:]
    try:
        folder.mkdir(parents=True, exist_ok=True)
        rmtree(path, ignore_errors=True)
        snapshot = kafka.snapshot()
        snapshot.save(path)
        snapshot.remove()
    except (BrokerError, RefusedError, OSError) as error:
        return f"It could not be kept: {error}"
    return f"It is kept: barnabas serve --data-dir {path}"
