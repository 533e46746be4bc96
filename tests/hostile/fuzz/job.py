"""One broker under fuzz: started, attacked, stopped with SIGTERM, checked on the disk, and started again on its data.

A job does its frames in rounds of `ROUND`; every fourth round begins with an empty data directory. Seed, job and round
decide the frames, as far as the broker's responses are equal.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import NamedTuple

from barnabas.wire.errors import ErrorCode, KafkaError, ProtocolError
from barnabas.wire.frame import parse_response_header
from barnabas.wire.messages.groups.classic_groups import DeleteGroupsRequest, ListGroupsRequest
from barnabas.wire.messages.metadata import MetadataRequest
from barnabas.wire.messages.topics import CreatableTopic, CreatableTopicConfig, CreateTopicsRequest, DeleteTopicsRequest
from tests.hostile.attacker import frame
from tests.hostile.fuzz import doors
from tests.hostile.fuzz.doors import DOORS, SECRET, SECRET_TOPIC, settings
from tests.hostile.fuzz.mutations import Mutations
from tests.hostile.fuzz.traffic import Traffic
from tests.hostile.fuzz.watch import BrokerEndedError, Watch
from tests.hostile.harness import HealthyClient, Victim
from tests.support.processes.server import free_port
from tests.support.requests.absurd_values import HEALTHY_TOPIC, PARTITIONS, TOPICS, Absurd, Learned, served
from tests.support.requests.raw_client import RawClient

ROUND = 200_000
ROUNDS_ON_ONE_DIRECTORY = 4
FRAMES_BETWEEN_CLEANUPS = 5000
LEARN_EVERY = 3
ILLEGAL_SASL_STATE = int(ErrorCode.ILLEGAL_SASL_STATE).to_bytes(2, "big")
OF_ANY_API = 0.4
"""How many of the absurd requests are of any API where most are of some."""
HEALTHY_PAUSE_S = 0.01
CONFIG = {
    "group.initial.rebalance.delay.ms": "0",
    "log.segment.bytes": "1048576",
    "log.retention.bytes": "4194304",
    "offsets.topic.num.partitions": "4",
    "transaction.state.log.num.partitions": "4",
    "share.coordinator.state.topic.num.partitions": "4",
    "max.connections": "200",
}


class Task(NamedTuple):
    """What a job has to do."""

    seed: int
    job: int
    mutated: int
    absurd: int
    directory: Path
    findings: Path
    door: str = "plain"
    parent: int = 0
    """The process that waits for the outcome: without it a job ends."""


class Outcome(NamedTuple):
    """What a job has done."""

    findings: int
    counts: Counter[str]
    peak_memory: int
    stall_s: float
    restarts: int


def run_job(task: Task) -> Outcome:
    """Do all rounds."""
    mutated, absurd = task.mutated, task.absurd
    counts: Counter[str] = Counter()
    findings = restarts = peak = 0
    stall_s = 0.0
    victim: Victim | None = None
    number = port = 0
    while mutated or absurd:
        share = min(1.0, ROUND / (mutated + absurd))
        some_mutated, some_absurd = round(mutated * share), round(absurd * share)
        if not some_mutated and not some_absurd:
            some_mutated, some_absurd = mutated, absurd
        mutated -= some_mutated
        absurd -= some_absurd
        if victim is None or number % ROUNDS_ON_ONE_DIRECTORY == 0:
            if victim is not None:
                shutil.rmtree(victim.data_dir.parent)
            victim, port = victim_of(task.door, task.directory / f"job-{task.job}-{number}" / "data")
        began = time.monotonic()
        current = Round(victim, port, task, number)
        done = current.run(some_mutated, some_absurd)
        findings += current.findings
        counts += current.counts
        peak = max(peak, current.peak_memory)
        stall_s = max(stall_s, current.stall_s)
        restarts += 1
        if not done:
            victim = None
        rate = (some_mutated + some_absurd) / (time.monotonic() - began)
        print(
            f"{time.strftime('%H:%M:%S')} job {task.job} round {number}: {some_mutated} mutated, {some_absurd} absurd, "
            f"{rate:.0f} frames/s, {dict(current.counts)}, memory {current.peak_memory >> 20} MB, "
            f"longest stall {current.stall_s:.3f} s, {current.findings} findings; left: {mutated} and {absurd}",
            flush=True,
        )
        number += 1
    return Outcome(findings, counts, peak, stall_s, restarts)


def victim_of(door: str, data: Path) -> tuple[Victim, int]:
    """A broker with a door, and the port of the door; its other port is for the healthy client."""
    victim = Victim(data, config=CONFIG)
    victim.port = free_port()
    more, port = settings(DOORS[door], data.parent, victim.port)
    victim.config |= more
    if "listeners" in more:
        victim.listener = ""
    return victim, port


class Round:
    """One start of a broker."""

    def __init__(self, victim: Victim, port: int, task: Task, number: int) -> None:
        self._victim = victim
        self._port = port
        self._door = DOORS[task.door]
        self._task = task
        self._number = number
        self._title = f"{task.door} seed {task.seed} job {task.job} round {number}"
        self._random = Random(f"{task.seed} {task.job} {number}")
        self._learned = Learned()
        self._absurd = Absurd(self._random, self._learned)
        self._mutations = Mutations(self._random, self._absurd, self._door.keys)
        self._most = [api for api in served() if api.request.api_key in self._door.keys] or served()
        self._served_ids: set[bytes] = set()
        self._watch: Watch | None = None
        self._sent = self._next_cleanup = 0
        self._responses = 0
        self.findings = 0
        self.counts: Counter[str] = Counter()
        self.peak_memory = 0
        self.stall_s = 0.0

    def run(self, mutated: int, absurd: int) -> bool:
        """Attack, stop, check; False if the broker cannot be used further."""
        victim = self._victim
        victim.start()
        healthy = HealthyClient(victim, pause_s=HEALTHY_PAUSE_S)
        admin = RawClient(victim.bootstrap, "fuzz-admin")
        self.prepare(admin)
        traffic = Traffic(self._random, self._door, self._port, self._on_response)
        watch = self._watch = Watch(victim, healthy, traffic, self._title, self._task.findings)
        usable = False
        healthy.start()
        try:
            traffic.run(self._frames(mutated, absurd), lambda: self._between(watch, admin))
            traffic.close()
            healthy.wait_rounds(2, fail_when_stalled=False)
            healthy.stop()
            watch.look(now=True)
            usable = self._stop(watch)
        except BrokerEndedError:
            victim.kill9()
        except Exception as error:
            watch.report(f"the fuzz failed: {error!r}", traffic.frames_in_flight())
            victim.kill9()
        finally:
            traffic.close()
            admin.close()
            with contextlib.suppress(BaseException):
                healthy.stop()
        self.findings = watch.count
        self.counts = traffic.counts
        self.peak_memory = watch.peak_memory
        self.stall_s = watch.stall_s
        return usable

    def _stop(self, watch: Watch) -> bool:
        """Send SIGTERM; check the exit code and the disk."""
        code = self._victim.stop()
        if code != 0:
            watch.report(f"SIGTERM ended the broker with code {code}:\n{self._victim.log()[-2000:]}", [])
            return False
        command = [sys.executable, "-m", "barnabas", "storage", "check", str(self._victim.data_dir)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            watch.report(f"storage check found damage:\n{done.stdout[-3000:]}{done.stderr[-1000:]}", [])
            return False
        return True

    # --- frames

    def _frames(self, mutated: int, absurd: int) -> Iterator[bytes]:
        """All frames of the round: absurd ones in between the mutated ones, in runs."""
        random = self._random
        while mutated or absurd:
            self._sent += 1
            if random.random() * (mutated + absurd) < mutated:
                mutated -= 1
                frame = self._mutations.frame()
            else:
                absurd -= 1
                frame = self._absurd_frame()
            if int.from_bytes(frame[4:6], "big") in self._door.keys:
                self._served_ids.add(bytes(frame[8:12]))
            yield frame

    def _absurd_frame(self) -> bytes:
        """A request with a correlation id that says how its response is decoded."""
        api = self._random.choice(served() if self._random.random() < OF_ANY_API else self._most)
        request, version = self._absurd.request(api)
        correlation_id = api.request.api_key << 8 | version | 1 << 24
        return frame(request, version, correlation_id)

    def _on_response(self, data: bytes) -> None:
        self._responses += 1
        if self._door.is_secret and SECRET in data:
            assert self._watch is not None
            self._watch.report(f"the content of {SECRET_TOPIC} is in a response", [data])
        correlation_id = int.from_bytes(data[:4], "big")
        if self._door.keys:
            self._check_refused(data)
        if self._responses % LEARN_EVERY or correlation_id >> 24 != 1:
            return
        api_key, version = correlation_id >> 8 & 0xFFFF, correlation_id & 0xFF
        response_class = next((api.response for api in served() if api.request.api_key == api_key), None)
        if response_class is None:
            return
        with contextlib.suppress(ProtocolError, KafkaError):  # a mutated request had this id
            _, start = parse_response_header(data, api_key, version)
            self._learned.learn(response_class.decode(data[start:], version))

    def _check_refused(self, data: bytes) -> None:
        """Where few APIs are served, other requests are answered ILLEGAL_SASL_STATE at most.

        A response without the correlation id of a request of these few APIs answers another one, unless it is the
        token of a SCRAM server, which has no header after SaslHandshake v0.
        """
        if bytes(data[:4]) not in self._served_ids and ILLEGAL_SASL_STATE not in data and not data.startswith(b"r="):
            assert self._watch is not None
            self._watch.report("a request is answered before the log-in", [data])

    # --- between the frames

    def prepare(self, admin: RawClient) -> None:
        present = {topic.name: topic for topic in admin(MetadataRequest(topics=None), 12).topics}
        missing = [
            CreatableTopic(
                name=name,
                num_partitions=PARTITIONS,
                replication_factor=1,
                configs=[CreatableTopicConfig(name="cleanup.policy", value="compact")] if name == "compacted" else [],
            )
            for name in TOPICS
            if name not in present
        ]
        if missing:
            admin(CreateTopicsRequest(topics=missing, timeout_ms=10_000), 7)
        for topic in admin(MetadataRequest(topics=None), 12).topics:
            if topic.name == HEALTHY_TOPIC:
                self._learned.ignore(topic.topic_id)
        if self._door.is_secret:
            doors.prepare(admin)

    def _between(self, watch: Watch, admin: RawClient) -> None:
        watch.look()
        if self._task.parent not in (0, os.getppid()):
            self._victim.kill9()
            os._exit(1)
        if self._sent >= self._next_cleanup:
            self._next_cleanup = self._sent + FRAMES_BETWEEN_CLEANUPS
            self._clean_up(admin)
            self.prepare(admin)

    def _clean_up(self, admin: RawClient) -> None:
        """Delete topics and groups that the fuzz has made, so that their number is bounded."""
        needed = {*TOPICS, HEALTHY_TOPIC, SECRET_TOPIC}
        names = [topic.name for topic in admin(MetadataRequest(topics=None), 12).topics if not topic.is_internal]
        gone = [name for name in names if name not in needed]
        if len(gone) > 10:
            admin(DeleteTopicsRequest(topic_names=gone, timeout_ms=10_000), 5)
        groups = [group.group_id for group in admin(ListGroupsRequest(), 5).groups]
        if len(groups) > 50:
            admin(DeleteGroupsRequest(groups_names=groups), 2)
