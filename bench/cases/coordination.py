"""The cases of the group `Groups and transactions`, and share groups."""

from __future__ import annotations

import sys
import tempfile
import time
import uuid
from collections.abc import Iterator
from functools import partial
from pathlib import Path

from bench.cases.case import Case, Figures, Goal, Group, Mode, Scale
from bench.loads.members import CommittingMember, Member, run_until_assigned
from bench.start import committed_offsets, find_coordinators, first_metadata
from bench.target import Outcome, Target
from tests.support.processes.server import Server
from tests.support.requests import frames

PARTITIONS = 100
CONCURRENT = 50
RECORD_BYTES = 1000
STOP_TIMEOUT_S = 120.0
SETTINGS = {
    f"group.{kind}.{key}": value
    for kind in ("consumer", "share")
    for key, value in {
        "min.heartbeat.interval.ms": "500",
        "heartbeat.interval.ms": "500",
        "min.session.timeout.ms": "2000",
        "session.timeout.ms": "2000",
    }.items()
} | {"group.min.session.timeout.ms": "2000"}
"""The heartbeat interval (default 5 s) and the session timeout of the classic members of `bench.loads.members`.
With longer sessions a killed member would be replaced later."""


def _members(target: Target, protocol: str, members: int, rounds: int, *more: str) -> Outcome:
    topic = target.create(PARTITIONS)
    command = [sys.executable, "-m", "bench.loads.members", target.server.bootstrap, topic, str(PARTITIONS), protocol]
    outcome = target.run([*command, str(members), str(rounds), *more])
    target.delete(topic)
    return outcome


def join(target: Target, _: Scale, *, protocol: str, members: int) -> Figures:
    """Time until the members of a new group own all partitions."""
    rounds = 5 if protocol == "classic" and members < 100 else 2
    outcome = _members(target, protocol, members, rounds)
    return {"p50 ms": outcome.p50_us / 1000, "CPU ms": outcome.cpu_s / rounds * 1000}


def replace(target: Target, _: Scale, *, protocol: str) -> Figures:
    """Time from the end of one of ten members until the others own its partitions; the session timeout is 2 s."""
    return {"p50 ms": _members(target, protocol, 10, 1, "kill").p50_us / 1000}


def commits(target: Target, scale: Scale, *, connections: int) -> Figures:
    """Commit one partition's offset in a closed loop; each connection has its own group."""
    topic = target.create(1)
    groups = [f"bench-{uuid.uuid4()}" for _ in range(connections)]
    find_coordinators(target.server, groups)
    requests = [frames.offset_commit(group, topic) for group in groups]
    outcome = target.raw("produce", requests, connections, 1, scale.warmup_s, scale.seconds)
    target.delete(topic)
    return _per_second("commits/s", outcome)


def transactions(target: Target, scale: Scale, *, producers: int, records: int) -> Figures:
    """Commit transactions one after the other with confluent-kafka."""
    topic = target.create(1)
    command = [sys.executable, "-m", "bench.loads.transaction_load", "commit", target.server.bootstrap, topic]
    outcome = target.run([*command, *map(str, (producers, records, scale.warmup_s, scale.seconds))])
    target.delete(topic)
    return _per_second("txn/s", outcome)


def _per_second(name: str, outcome: Outcome) -> Figures:
    return {
        name: outcome.requests / outcome.seconds,
        "p99 ms": outcome.p99_us / 1000,
        "CPU us/op": outcome.cpu_us_per_request,
    }


def exactly_once(target: Target, scale: Scale, *, records: int) -> Figures:
    """Copy a topic in transactions of `records` records, with confluent-kafka."""
    count = scale.copied
    source, copy = target.create(1), target.create(1)
    batch, in_batch = frames.batch(64 << 10, RECORD_BYTES)
    target.send(frames.produce(source, 0, batch) for _ in range(count // in_batch + 1))
    command = [sys.executable, "-m", "bench.loads.transaction_load", "copy", target.server.bootstrap, source, copy]
    outcome = target.run([*command, str(count), str(records)])
    for topic in (source, copy):
        target.delete(topic)
    return {"MB/s": outcome.bytes / outcome.seconds / 1e6, "CPU s/GB": outcome.cpu_s_per_gb}


def share(target: Target, scale: Scale, *, consumers: int) -> Figures:
    """Consume and acknowledge records of 100 bytes in a share group; six partitions, confluent-kafka."""
    topic, _ = target.fill(6, 100, max(2, scale.shared * 120 // 1_000_000))
    command = [sys.executable, "-m", "bench.loads.share_load", target.server.bootstrap, topic]
    outcome = target.run([*command, str(scale.shared), str(consumers)])
    return {"msg/s": outcome.requests / outcome.seconds, "CPU us/op": outcome.cpu_us_per_request}


def many_groups(group: Group, kind: str, scale: Scale, runs: int) -> Iterator[Figures]:
    """Fill `__consumer_offsets` once; then time starts after a clean stop, until every offset can be fetched."""
    with tempfile.TemporaryDirectory(prefix="bench-") as folder:
        server = group.server(kind, Path(folder))
        try:
            server.start()
            topic = Target(server).create(1)
            names = [f"group-{n}" for n in range(scale.groups)]
            _fill(server, topic, names)
            for _ in range(runs):
                server.stop(STOP_TIMEOUT_S)
                started = time.monotonic()
                server.spawn()
                first = first_metadata(server, started)
                loaded = committed_offsets(server, started, topic, names)
                yield {"clean start s": first, "clean all s": loaded, "load s": loaded - first}
        finally:
            server.stop()


def _fill(server: Server, topic: str, names: list[str]) -> None:
    """Create the groups, each with a member and a committed offset."""
    find_coordinators(server, names[:1])
    address = (server.host, server.port)
    for at in range(0, len(names), CONCURRENT):
        members: list[Member] = []
        for number, name in enumerate(names[at : at + CONCURRENT]):
            member = CommittingMember(address, name, topic, 1)
            member.number = number
            member.join()
            members.append(member)
        run_until_assigned(members, len(members))
        for joined in members:
            joined.socket.close()


def cases() -> Iterator[Case]:
    """The cases of the group, in order."""
    for protocol in ("classic", "consumer"):
        for members in (1, 10, 100):
            limit = {1: 100.0, 100: 3000.0}.get(members)
            goals = {"p50 ms": Goal(limit=limit)} if limit else {}
            measure = partial(join, protocol=protocol, members=members)
            yield Case(f"join, {members} {protocol} member{'s'[: members > 1]}", measure, goals)
        yield Case(f"replace a killed {protocol} member", partial(replace, protocol=protocol), {}, quick=False)
    better = {"CPU us/op": Goal(1.0)}
    for connections in (1, 50):
        goals = {"commits/s": Goal(1.0), **better}
        yield Case(f"offset commits, {connections} conn.", partial(commits, connections=connections), goals)
    for producers, records in ((1, 1), (1, 10), (10, 10)):
        name = f"transactions of {records} rec., {producers} prod."
        measure = partial(transactions, producers=producers, records=records)
        yield Case(name, measure, {"txn/s": Goal(1.0), **better})
    yield Case(
        "exactly-once copy, 100 rec.", partial(exactly_once, records=100), {"MB/s": Goal(1.0), "CPU s/GB": Goal(1.0)}
    )
    for consumers in (1, 5):
        name = f"share group, {consumers} consumer{'s'[: consumers > 1]}"
        yield Case(name, partial(share, consumers=consumers), {"msg/s": Goal(1.0), **better})
    yield Case(
        "10,000 groups at start", many_groups, {"load s": Goal(limit=2.0)}, Mode.OWN_SERVER_ALL_RUNS, quick=False
    )


def warm_up(target: Target, scale: Scale) -> None:
    """Warm up."""
    few = Scale(seconds=3.0, warmup_s=1.0, copied=2000, shared=40_000)
    for protocol in ("classic", "consumer"):
        join(target, few, protocol=protocol, members=10)
    for _ in range(scale.warmup_rounds):
        commits(target, few, connections=20)
        transactions(target, few, producers=10, records=5)
    exactly_once(target, few, records=100)
    share(target, few, consumers=2)
