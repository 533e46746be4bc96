"""A broker in this process with two log directories, and what tests of moves between them ask of it."""

from __future__ import annotations

from pathlib import Path

from barnabas.wire.errors import ErrorCode as E
from barnabas.wire.messages.configs import (
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsRequestAlterableConfig,
    IncrementalAlterConfigsRequestAlterConfigsResource,
    IncrementalAlterConfigsResponse,
)
from barnabas.wire.messages.fetch import FetchResponse
from barnabas.wire.messages.log_dirs import (
    AlterReplicaLogDir,
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirsResponse,
    AlterReplicaLogDirTopic,
    DescribeLogDirsRequest,
    DescribeLogDirsResponse,
)
from tests.support.memory.broker import MemoryBroker
from tests.support.requests.fetch import append, at, fetch, values

KEY = "replica.alter.log.dirs.io.max.bytes.per.second"


class Moving:
    """A broker with two directories and a topic."""

    def __init__(self, path: Path, sets: dict[str, str] | None = None) -> None:
        self.path = path
        self.sets = sets
        self.memory = self.start()

    def start(self) -> MemoryBroker:
        self.memory = MemoryBroker(self.path / "a", self.sets, more_dirs=[self.path / "b"])
        return self.memory

    def dir_of(self, topic: str = "t") -> str:
        log_dir = self.memory.broker.log_dirs.dir_of(topic, 0)
        assert log_dir is not None
        return log_dir.path

    def other(self, topic: str = "t") -> str:
        return str(self.path / "b") if self.dir_of(topic) == str(self.path / "a") else str(self.path / "a")

    def alter(self, path: str, topic: str = "t", version: int = 2) -> int:
        request = AlterReplicaLogDirsRequest(
            dirs=[AlterReplicaLogDir(path=path, topics=[AlterReplicaLogDirTopic(name=topic, partitions=[0])])]
        )
        response = self.memory.client().ask(request, version, AlterReplicaLogDirsResponse)
        return response.results[0].partitions[0].error_code

    def throttle(self, rate: int | None) -> None:
        """Limit the bytes that are copied per second; None sets the limit back."""
        config = IncrementalAlterConfigsRequestAlterableConfig(
            name=KEY, config_operation=0 if rate is not None else 1, value=None if rate is None else str(rate)
        )
        resource = IncrementalAlterConfigsRequestAlterConfigsResource(
            resource_type=4, resource_name=str(self.memory.broker.node_id), configs=[config]
        )
        response = self.memory.client().ask(
            IncrementalAlterConfigsRequest(resources=[resource]), 1, IncrementalAlterConfigsResponse
        )
        assert response.responses[0].error_code == 0, response

    def half_moved(self) -> str:
        """Begin a move and let it wait for its quota after a part of the log; the target."""
        for number in range(20):
            append(self.memory, "t", b"%d" % number + bytes(50_000))
        target = self.other()
        self.throttle(10_000)
        assert self.alter(target) == E.NONE
        self.settle()
        return target

    def settle(self, seconds: float = 2.0) -> None:
        """Do everything that is due within some seconds."""
        self.memory.broker.loop.end_turn()
        for _ in range(int(seconds * 10)):
            self.memory.advance(0.1)
            self.memory.broker.loop.end_turn()

    def read(self) -> list[bytes | None]:
        response = self.memory.client().ask(fetch(at(0)), 11, FetchResponse)
        return [value for _, value in values(response.responses[0].partitions[0])]

    def described(self) -> list[tuple[str, bool, int]]:
        response = self.memory.client().ask(DescribeLogDirsRequest(topics=None), 4, DescribeLogDirsResponse)
        return [
            (result.log_dir, part.is_future_key, part.offset_lag)
            for result in response.results
            for topic in result.topics
            if topic.name == "t"
            for part in topic.partitions
        ]

    def names(self, path: str) -> list[str]:
        return sorted(entry.name for entry in Path(path).iterdir() if entry.is_dir() and entry.name.startswith("t-"))
