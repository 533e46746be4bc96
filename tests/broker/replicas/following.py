"""A leader and a follower of one partition without a network: a fetcher, and a leader that answers from its log."""

from __future__ import annotations

from collections.abc import Callable, Generator
from math import inf
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from barnabas.broker.config.load import load
from barnabas.broker.event_loop.loop import Loop
from barnabas.broker.event_loop.steps import StepRunner
from barnabas.broker.replicas.fetchers.context import FetchContext
from barnabas.broker.replicas.fetchers.fetcher import Fetcher
from barnabas.broker.replicas.partition import Partition
from barnabas.coord.cluster.topic_image import UNASSIGNED_DIRECTORY, PartitionImage
from barnabas.storage.directories.deletions import Deletions
from barnabas.storage.files import UnsyncedFiles
from barnabas.storage.log import Log
from barnabas.wire.errors import ErrorCode, KafkaError
from barnabas.wire.messages.fetch import (
    FetchableTopicResponse,
    FetchRequest,
    FetchRequestFetchPartition,
    FetchResponse,
    FetchResponseEpochEndOffset,
    FetchResponsePartitionData,
)
from barnabas.wire.messages.list_offsets import (
    ListOffsetsPartitionResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopicResponse,
)
from tests.support.logs.log_driver import TOPIC_ID, open_log

LEADER, FOLLOWER = 1, 2


class Clock:
    """Both clocks, in seconds."""

    def __init__(self) -> None:
        self.now = 100.0


class Disk:
    """The executor of syncs: they end when the test says so, or at once."""

    def __init__(self) -> None:
        self.is_slow = False
        self.waiting: list[tuple[Callable[[], None], Callable[[Exception | None], None]]] = []

    def submit(self, work: Callable[[], None], then: Callable[[Exception | None], None]) -> None:
        """Run the work later."""
        self.waiting.append((work, then))

    def finish(self) -> bool:
        """Run what waits; whether there was anything."""
        waiting, self.waiting = self.waiting, []
        for work, then in waiting:
            failure = None
            try:
                work()
            except OSError as error:
                failure = error
            then(failure)
        return bool(waiting)


class FakeLeader:
    """Answers fetches from logs, with sessions, as the other broker would; and keeps the requests."""

    def __init__(self, logs: dict[int, Log]) -> None:
        self.logs = logs
        self.epoch = 0
        self.high_watermark = 0
        self.keeps_sessions = True
        self.errors: list[ErrorCode] = []
        """For the next requests as a whole."""
        self.partition_errors: dict[int, list[ErrorCode]] = {}
        self.is_unreachable = False
        self.is_stalled = False
        """Whether it answers nothing."""
        self.requests: list[Any] = []
        self.waiting: tuple[Any, Callable[[Any], None]] | None = None
        self.disconnects = 0
        self.clock = Clock()
        self.deadline = inf
        """Until when the request in flight may be held back."""
        self._session: dict[int, FetchRequestFetchPartition] = {}
        self._session_id = 0
        self._session_epoch = 0
        self._counted: Any = None

    def send(self, request: Any, then: Callable[[Any], None], *, timeout_s: float) -> None:
        """Keep the request until it is answered."""
        assert self.waiting is None, "one request at a time"
        assert timeout_s > 0
        self.requests.append(request)
        self.waiting = (request, then)
        self.deadline = self.clock.now + getattr(request, "max_wait_ms", 0) / 1000

    def disconnect(self) -> None:
        """The request in flight fails."""
        self.disconnects += 1
        if self.waiting is not None:
            (_, then), self.waiting = self.waiting, None
            then(KafkaError(ErrorCode.NETWORK_EXCEPTION))

    def answer(self, *, even_if_empty: bool = False) -> bool:
        """Answer the request in flight, if there is one and something to say; whether it was answered."""
        if self.waiting is None or self.is_stalled:
            return False
        request, then = self.waiting
        if self.is_unreachable:
            response: Any = KafkaError(ErrorCode.NETWORK_EXCEPTION, "nobody is there")
        elif isinstance(request, ListOffsetsRequest):
            response = self._list_offsets(request)
        else:
            response = self._fetch(request, even_if_empty=even_if_empty)
        if response is None:
            return False
        self.waiting, self.deadline = None, inf
        then(response)
        return True

    def _list_offsets(self, request: ListOffsetsRequest) -> ListOffsetsResponse:
        requested = request.topics[0].partitions[0]
        log = self.logs[requested.partition_index]
        offset = log.log_end_offset if requested.timestamp == -1 else log.log_start_offset
        partition = ListOffsetsPartitionResponse(partition_index=requested.partition_index, offset=offset)
        return ListOffsetsResponse(topics=[ListOffsetsTopicResponse(name="t", partitions=[partition])])

    def _fetch(self, request: FetchRequest, *, even_if_empty: bool) -> FetchResponse | None:
        if self.errors:
            return FetchResponse(error_code=self.errors.pop(0))
        partitions = self._partitions(request)
        answers = [data for partition in partitions.values() if (data := self._read(partition)) is not None]
        changed = [data for data in answers if data.records or data.error_code or data.diverging_epoch.epoch >= 0]
        if not changed and not even_if_empty and request.session_epoch != 0:
            return None
        topics = [FetchableTopicResponse(topic="t", topic_id=TOPIC_ID, partitions=answers)]
        return FetchResponse(session_id=self._session_id, responses=topics)

    def _partitions(self, request: FetchRequest) -> dict[int, FetchRequestFetchPartition]:
        named = {partition.partition: partition for topic in request.topics for partition in topic.partitions}
        if request.session_epoch == 0:
            self._session, self._session_epoch = dict(named), 1
            self._session_id = 77 if self.keeps_sessions else 0
            return named
        assert request.session_id == self._session_id
        if request is not self._counted:
            assert request.session_epoch == self._session_epoch
            self._session_epoch += 1
            self._counted = request
        for topic in request.forgotten_topics_data:
            for index in topic.partitions:
                self._session.pop(index, None)
        self._session.update(named)
        return self._session

    def _read(self, partition: FetchRequestFetchPartition) -> FetchResponsePartitionData:
        log = self.logs[partition.partition]
        data = FetchResponsePartitionData(
            partition_index=partition.partition,
            high_watermark=self.high_watermark,
            log_start_offset=log.log_start_offset,
            records=b"",
        )
        errors = self.partition_errors.get(partition.partition)
        if errors:
            data.error_code = int(errors.pop(0))
        elif partition.current_leader_epoch != self.epoch:
            data.error_code = int(ErrorCode.FENCED_LEADER_EPOCH)
        else:
            self._read_log(log, partition, data)
        return data

    @staticmethod
    def _read_log(log: Log, partition: FetchRequestFetchPartition, data: FetchResponsePartitionData) -> None:
        if partition.last_fetched_epoch >= 0:
            epoch, end = log.end_offset_for_epoch(partition.last_fetched_epoch)
            if epoch < partition.last_fetched_epoch or end < partition.fetch_offset:
                data.diverging_epoch = FetchResponseEpochEndOffset(epoch=epoch, end_offset=end)
                return
        try:
            limit = log.log_end_offset
            read = log.read(
                partition.fetch_offset, partition.partition_max_bytes, limit_offset=limit, min_one_batch=True
            )
        except KafkaError as error:
            data.error_code = int(error.code)
            return
        if read.slice is not None:
            data.records = memoryview(read.slice.read())


class Failures:
    """What happens to log directories."""

    def __init__(self) -> None:
        self.checkpoints: list[tuple[str, int]] = []
        self.reported: list[str] = []
        self.offline: list[str] = []
        self.refuses = False
        self.log: Log | None = None

    def write_checkpoint(self, name: str) -> Generator[None, None, bool]:
        """A checkpoint that is written at once."""
        assert self.log is not None
        self.checkpoints.append((name, self.log.recovery_point_to_write))
        yield None
        return not self.refuses

    def report_log(self, topic: str, index: int, operation: str, error: OSError) -> None:
        """An operation on a log has failed."""
        self.reported.append(operation)

    def report_unreadable(self, topic: str, index: int, directory: str, error: OSError) -> None:
        """A read has failed."""
        self.reported.append("read")

    def take_offline(self, log_dir: object, operation: str, error: Exception) -> None:
        """A sync has failed."""
        self.offline.append(operation)


class Following:
    """A follower of partitions of one leader."""

    def __init__(self, directory: Path, leader: FakeLeader, count: int = 1, settings: dict[str, str] | None = None):
        self.clock = Clock()
        self.disk = Disk()
        self.leader = leader
        leader.clock = self.clock
        self.loop = Loop(lambda: self.clock.now, lambda: int(self.clock.now * 1000))
        self.files = UnsyncedFiles()
        self.failures = Failures()
        self.config = load({"node.id": str(FOLLOWER), **(settings or {})}, {}, None, "dev")
        self.runner = StepRunner(self.loop, self.disk)
        log_dirs: Any = SimpleNamespace(deletions=Deletions(self.files), dir_of=lambda topic, index: "the directory")
        self.persists = 0
        self.context = FetchContext(
            self.loop,
            self.config,
            self.runner,
            log_dirs,
            self.failures,  # type: ignore[arg-type]
            lambda leader_id, purpose: leader,
            image=SimpleNamespace,  # type: ignore[arg-type,return-value]
            broker_epoch=lambda: 42,
            persist_log_starts=self._persist,
        )
        self.partitions = [self._open(directory, index) for index in range(count)]
        self.failures.log = self.partitions[0].log
        self.fetcher = Fetcher(self.context, LEADER, 0)

    def _persist(self) -> None:
        self.persists += 1

    def _open(self, directory: Path, index: int) -> Partition:
        log = open_log(directory / f"follower-{index}", files=self.files)
        partition = Partition(
            "t",
            index,
            TOPIC_ID,
            log,
            loop=self.loop,
            failures=self.failures,  # type: ignore[arg-type]
            on_failure=lambda partition, reason: partition.close(ErrorCode.KAFKA_STORAGE_ERROR),
            on_damage=lambda partition, reason: partition.fail(reason),
            lead=lambda partition: SimpleNamespace(stop=lambda error: None, update=lambda *_, **__: None),  # type: ignore[arg-type,return-value]
        )
        self.set_role(partition, LEADER, 0)
        return partition

    def set_role(self, partition: Partition, leader: int, epoch: int) -> None:
        """What the metadata says of the leader."""
        assigned = PartitionImage(
            replicas=(LEADER, FOLLOWER),
            directories=(UNASSIGNED_DIRECTORY,) * 2,
            isr=(LEADER, FOLLOWER),
            removing_replicas=(),
            adding_replicas=(),
            elr=(),
            last_known_elr=(),
            leader=leader,
            leader_recovery_state=0,
            leader_epoch=epoch,
            partition_epoch=partition.partition_epoch + 1,
        )
        partition.update(assigned, FOLLOWER)

    def follow(self) -> None:
        """Begin to follow all partitions."""
        for partition in self.partitions:
            self.fetcher.add(partition)

    @property
    def log(self) -> Log:
        """The log of the first partition."""
        return self.partitions[0].log

    def turn(self) -> None:
        """End a turn, and do the work of threads unless the disk is slow."""
        self.loop.timers.fire(self.clock.now)
        self.loop.end_turn()
        while not self.disk.is_slow and self.disk.finish():
            self.loop.timers.fire(self.clock.now)
            self.loop.end_turn()

    def run(self, seconds: float = 0.0) -> None:
        """Answer and go on until nothing happens any more for so long."""
        end = self.clock.now + seconds
        for _ in range(10_000):
            self.turn()
            if self.leader.answer():
                continue
            self.turn()
            if self.leader.answer(even_if_empty=self.clock.now >= self.leader.deadline):
                continue
            following = min(self.loop.timers.next_deadline(), self.leader.deadline)
            if following > end:
                self.clock.now = end
                return
            self.clock.now = max(self.clock.now, following)
        raise AssertionError("the follower never comes to rest")
