"""What the most expensive request of each kind costs a broker with 2,000 partitions and 1,000 groups.

    python -m tests.hostile.costs [--elements 50000] [--all] [API ...]

Each request of `absurd.py` is sent to a broker in this process, at the limit of elements; those that change topics are
also sent with valid changes of as many topics as a request may create. Printed are the longest time
that the event loop was held (the dispatch, or one turn of work in slices), the CPU time of all together, and how far
the resident memory grew. The exit code is 1 if a request holds the loop for more than 250 ms or takes more than 100 MB.
"""

from __future__ import annotations

import argparse
import gc
import resource
import signal
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from barnabas.broker.server import GC_THRESHOLDS
from barnabas.coord.cluster.changes.topic_changes import MAX_PARTITIONS_PER_REQUEST
from barnabas.wire.errors import ProtocolError
from barnabas.wire.frame import message_for
from barnabas.wire.messages.groups.classic_groups import (
    FindCoordinatorRequest,
    JoinGroupRequest,
    JoinGroupRequestProtocol,
)
from barnabas.wire.messages.groups.offsets import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
)
from barnabas.wire.messages.produce import InitProducerIdRequest, InitProducerIdResponse
from barnabas.wire.messages.topics import CreatableTopic, CreateTopicsRequest, CreateTopicsResponse
from barnabas.wire.types import uuid_to_text
from tests.hostile.fuzz.absurd import Case, Names, cases, changes
from tests.support.memory.broker import MemoryBroker

HELD_LIMIT_S = 0.250
MEMORY_LIMIT = 100 << 20
GIVE_UP_S = 30.0
ADDRESS_SPACE = 3 << 30


class EndlessError(BaseException):
    """A request is given up; the handlers do not catch it."""


def _give_up(*_: object) -> None:
    raise EndlessError


class CostlyBroker:
    """A broker with topics, groups and transactional ids; its slices run on the clock of the CPU."""

    def __init__(self, folder: Path, *, topics: int = 1000, partitions: int = 1000, groups: int = 1000) -> None:
        sets = {"barnabas.log.sync": "os", "auto.create.topics.enable": "false"}
        self.memory = MemoryBroker(folder, sets)
        self.client = self.memory.client()
        self._create("wide", partitions)
        for start in range(0, topics, 1000):
            self._create_all([f"t.{index}" for index in range(start, min(topics, start + 1000))])
        for key_type, key in enumerate(("group-0", "transaction-0", f"s:{uuid_to_text(bytes(16))}:0")):
            self.client.send(FindCoordinatorRequest(key_type=key_type, coordinator_keys=[key]), 6)
            self.memory.advance(0)
            self.client.answers()
        image = self.memory.broker.image
        every = [OffsetCommitRequestTopic(name="wide", partitions=self._commits(partitions))]
        self._commit("group-0", every)
        for index in range(1, groups):
            self._commit(f"group-{index}", [OffsetCommitRequestTopic(name="wide", partitions=self._commits(1))])
        ids = [f"transaction-{index}" for index in range(min(100, groups))]
        for one in ids:
            self.client.send(InitProducerIdRequest(transactional_id=one, transaction_timeout_ms=60_000), 4)
            self.memory.advance(0)
            (answer,) = self.client.answers()
            assert isinstance(answer, InitProducerIdResponse)
            assert answer.error_code == 0
        self.names = Names(
            ["wide", *[name for name in image.topics if name.startswith("t.")]],
            [image.topics["wide"].topic_id, *[one.topic_id for name, one in image.topics.items() if name[:2] == "t."]],
            [f"group-{index}" for index in range(groups)],
            ids,
        )
        self._join("classic")

    def _create(self, name: str, partitions: int) -> None:
        self.memory.create_topic(name, partitions)

    def _create_all(self, names: list[str]) -> None:
        topics = [CreatableTopic(name=name, num_partitions=1, replication_factor=1) for name in names]
        self.client.send(CreateTopicsRequest(topics=topics), 7)
        self.memory.advance(0)
        (response,) = self.client.answers()
        assert isinstance(response, CreateTopicsResponse)

    @staticmethod
    def _commits(count: int) -> list[OffsetCommitRequestPartition]:
        return [OffsetCommitRequestPartition(partition_index=index, committed_offset=1) for index in range(count)]

    def _commit(self, group: str, topics: list[OffsetCommitRequestTopic]) -> None:
        request = OffsetCommitRequest(group_id=group, generation_id_or_member_epoch=-1, topics=topics)
        self.client.send(request, 9)
        self.memory.advance(0)
        (response,) = self.client.answers()
        assert isinstance(response, OffsetCommitResponse)
        assert response.topics[0].partitions[0].error_code == 0

    def _join(self, group: str) -> None:
        protocol = JoinGroupRequestProtocol(name="range", metadata=b"")
        joiner = self.memory.client()
        joiner.send(
            JoinGroupRequest(
                group_id=group,
                session_timeout_ms=10_000,
                rebalance_timeout_ms=10_000,
                protocol_type="consumer",
                protocols=[protocol],
            ),
            3,
        )

    def close(self) -> None:
        self.memory.close()


class Cost(NamedTuple):
    """What one request has cost."""

    held_s: float
    total_s: float
    memory: int
    outcome: str

    @property
    def is_too_high(self) -> bool:
        return self.held_s > HELD_LIMIT_S or self.memory > MEMORY_LIMIT


class _Threads:
    """Runs what waits for a disk, and notes its CPU time: threads do it in a broker that serves."""

    def __init__(self) -> None:
        self.total_s = 0.0

    def __call__(self, work: Callable[[], None]) -> None:
        begin = time.process_time()
        try:
            work()
        finally:
            self.total_s += time.process_time() - begin


def _status(name: str) -> int:
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(name + ":"):
            return int(line.split()[1]) * 1024
    raise KeyError(name)


def measure(world: CostlyBroker, case: Case) -> Cost:
    """Send one request on a connection of its own, and do all its work in slices."""
    memory = world.memory
    client = memory.client()
    try:
        frame = client.frame(case.request, case.version)
    except Exception as error:
        return Cost(0, 0, 0, f"cannot be encoded: {error}")
    data = memoryview(bytearray(frame))
    gc.collect()
    Path("/proc/self/clear_refs").write_text("5")
    resident = _status("VmRSS")
    loop = memory.broker.loop
    begin = time.process_time() - memory.clock.now

    def now() -> float:
        return time.process_time() - begin

    loop.slices._now = loop.now = now  # a slice ends after its time, as in a broker that serves
    disk = memory.disk
    disk.is_paused = True
    outcome = "answered"
    turns: list[float] = []
    started = time.process_time()
    signal.setitimer(signal.ITIMER_PROF, GIVE_UP_S)
    try:
        client.connection.receive(data, memory.clock.now)
        loop.end_turn()
        turns.append(time.process_time() - started)
        while client.connection.delayed is not None and (disk.held or loop.timers.next_deadline() <= now()):
            in_threads = _Threads()
            started = time.process_time()
            if disk.held:
                disk.run(in_threads)
            loop.timers.fire(now())
            turns.append(time.process_time() - started - in_threads.total_s)
    except ProtocolError as error:
        outcome = f"closed: {error}"
    except EndlessError:
        outcome = f"more than {GIVE_UP_S} s"
        turns.append(time.process_time() - started)
    signal.setitimer(signal.ITIMER_PROF, 0)
    memory.run_all()
    disk.is_paused = False
    loop.slices._now = loop.now = lambda: memory.clock.now
    grown = _status("VmHWM") - resident
    if client.connection.delayed is not None:
        outcome = "waits"
    size = client.connection.out_bytes
    if size:
        outcome += f", {size} bytes"
    client.connection.close()
    memory.clients.remove(client)
    return Cost(max(turns, default=0.0), sum(turns), grown, f"{len(data)} bytes, {outcome}")


def main() -> int:
    """Print a table; returns the exit code."""
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--elements", type=int, default=29_500)
    arguments.add_argument("--all", action="store_true", help="also print what is within the limits")
    arguments.add_argument("api", nargs="*", help="only these, for example METADATA")
    options = arguments.parse_args()
    too_high = 0
    signal.signal(signal.SIGPROF, _give_up)
    resource.setrlimit(resource.RLIMIT_AS, (ADDRESS_SPACE, ADDRESS_SPACE))
    with tempfile.TemporaryDirectory() as folder:
        world = CostlyBroker(Path(folder))
        gc.freeze()
        gc.set_threshold(*GC_THRESHOLDS)
        new = [f"new.{index}" for index in range(min(options.elements, MAX_PARTITIONS_PER_REQUEST))]
        chosen = [case for case in changes(new) if not options.api or case.name.split()[0] in options.api]
        for case in (*chosen, *cases(world.names, options.elements, options.api)):
            message_for(case.request.api_key)
            cost = measure(world, case)
            too_high += cost.is_too_high
            if options.all or cost.is_too_high:
                print(
                    f"{case.name:75} held {cost.held_s * 1000:7.0f} ms  of {cost.total_s * 1000:7.0f} ms  "
                    f"+{cost.memory >> 20:4} MB  {cost.outcome[:90]}",
                    flush=True,
                )
        world.close()
    print(f"{too_high} requests hold the loop for more than {HELD_LIMIT_S} s or take more than {MEMORY_LIMIT >> 20} MB")
    return 1 if too_high else 0


if __name__ == "__main__":
    sys.exit(main())
