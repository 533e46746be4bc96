"""Each operation on files fails once while a snapshot is taken, restored, forked or saved: all or nothing."""

from __future__ import annotations

import errno
import logging
import os
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import trio

from barnabas.broker.config.load import load
from barnabas.broker.config.server_config import ServerConfig
from barnabas.kit.clusters.clusters import Clusters
from barnabas.kit.clusters.options import Options
from barnabas.kit.clusters.virtual_cluster import VirtualCluster
from barnabas.kit.errors import ControlError, NotFoundError
from barnabas.kit.operations.registry import perform
from tests.support.disks.failing_calls import FailingCalls

CODES = [errno.EIO, errno.ENOSPC]
VALUE = "eA=="
LOOKED_AT = ("stat .lock",)
"""What a broker asks every few seconds, whether its disk answers: on a slow machine in the middle of a snapshot."""


def _config_of(keys: Mapping[str, str]) -> ServerConfig:
    return load({"listeners": "PLAINTEXT://127.0.0.1:0", **keys}, {}, None, "dev")


@asynccontextmanager
async def opened(brokers: int | None) -> AsyncIterator[tuple[Clusters, VirtualCluster]]:
    """The clusters of a process, and one with a record."""
    async with trio.open_nursery() as nursery:
        clusters = Clusters(VirtualCluster(0, None), _config_of, 1000, nursery)
        cluster = await clusters.open(Options(brokers=brokers, keys={"num.partitions": "1"}))
        await produce(cluster)
        yield clusters, cluster
        nursery.cancel_scope.cancel()


async def produce(cluster: VirtualCluster) -> None:
    """One more record."""
    await perform(cluster, "produce", {"topic": "orders", "records": [{"value": VALUE}]})


async def count(cluster: VirtualCluster) -> int:
    """How many records there are."""
    result: Any = await perform(cluster, "records", {"topic": "orders"})
    return len(result["records"])


class Attempts:
    """Does something with one operation after the other that fails, until all that there are have failed once."""

    def __init__(self, folder: Path, caplog: pytest.LogCaptureFixture) -> None:
        self._folder = folder
        self._caplog = caplog
        self.number = 0
        self.refused = 0
        self.last = ""

    def directories(self, but_of: VirtualCluster | None = None) -> set[str]:
        """The directories that exist now, except directories that cannot be removed according to the log.

        The directory of a cluster, created when another process could first read it, is either complete or absent.
        """
        reported = {record.getMessage().partition(" cannot be removed")[0] for record in self._caplog.records}
        paths = {entry.path for entry in os.scandir(self._folder)} - reported
        if but_of is not None:
            log_dirs = but_of.broker.log_dirs
            path = log_dirs.dirs[0].path
            assert (path in paths) == log_dirs.files.is_published
            paths -= {path}
        return paths

    async def once(self, act: Callable[[], Awaitable[Any]]) -> tuple[bool, Any]:
        """One attempt: whether there was an operation to fail, and the outcome; a refusal is a ControlError."""
        self.number += 1
        outcome: Any
        code = CODES[self.number % 2]
        with FailingCalls(self._folder, self.number, code, LOOKED_AT) as files:
            try:
                outcome = await act()
            except ControlError as error:
                outcome = error
        self.last = files.counted[self.number - 1] if files.has_failed else "nothing"
        if isinstance(outcome, ControlError):
            self.refused += 1
            assert files.has_failed, outcome
            if not self.last.startswith("stat "):  # Python takes that for "it is no directory"
                assert os.strerror(code) in str(outcome), (self.last, str(outcome))
            assert "\n" not in str(outcome)
        assert [record for record in self._caplog.records if record.exc_info] == []
        return files.has_failed, outcome


@pytest.fixture
def attempts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> Attempts:
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setenv("TMPDIR", str(folder))
    caplog.set_level(logging.WARNING)
    return Attempts(folder, caplog)


pytestmark = pytest.mark.trio


async def test_a_snapshot(attempts: Attempts) -> None:
    async with opened(None) as (clusters, cluster):
        has_failed = True
        while has_failed:
            before = attempts.directories(cluster)
            has_failed, outcome = await attempts.once(cluster.take_snapshot)
            if not isinstance(outcome, ControlError):
                fork = await clusters.fork(clusters.snapshots[outcome])
                assert await count(fork) == await count(cluster)
                clusters.close(fork.id)
                clusters.snapshots.remove(outcome)
                await fork.ended.wait()
            assert attempts.directories(cluster) == before, attempts.last
        await produce(cluster)
        assert await count(cluster) == 2
    assert attempts.refused > 5


async def test_a_fork(attempts: Attempts) -> None:
    async with opened(None) as (clusters, cluster):
        has_failed = True
        while has_failed:
            before = attempts.directories(cluster)
            has_failed, outcome = await attempts.once(lambda: perform(cluster, "fork", {}))
            if not isinstance(outcome, ControlError):
                fork = clusters[outcome["id"]]
                assert await count(fork) == 1
                await produce(fork)
                clusters.close(fork.id)
                await fork.ended.wait()
            assert len(clusters.all()) == 2, "the one of the process, and the one of this test"
            assert attempts.directories(cluster) == before, attempts.last
            assert await count(cluster) == 1
    assert attempts.refused > 10


async def test_a_restore(attempts: Attempts) -> None:
    async with opened(None) as (clusters, cluster):
        number = await cluster.take_snapshot()
        address, has_failed = cluster.bootstrap, True
        while has_failed:
            await produce(cluster)
            had, before = await count(cluster), len(attempts.directories())
            has_failed, outcome = await attempts.once(lambda: cluster.restore(clusters.snapshots[number]))
            assert await count(cluster) == (had if isinstance(outcome, ControlError) else 1), attempts.last
            assert (len(attempts.directories()), cluster.bootstrap) == (before, address), attempts.last
    assert attempts.refused > 10


async def test_a_save(attempts: Attempts, tmp_path: Path) -> None:
    async with opened(None) as (clusters, cluster):
        snapshot = clusters.snapshots[await cluster.take_snapshot()]
        target = tmp_path / "temporary" / "saved"
        has_failed = True
        while has_failed:

            async def save() -> None:
                snapshot.save(target)

            has_failed, outcome = await attempts.once(save)
            assert target.exists() == (outcome is None), attempts.last
            if outcome is None:
                with pytest.raises(ControlError, match=r"Cannot make .*: File exists"):
                    snapshot.save(target)
                assert len(list(target.iterdir())) == len(list(snapshot.folder.iterdir()))
                for path in sorted(target.rglob("*"), reverse=True):
                    path.rmdir() if path.is_dir() else path.unlink()
                target.rmdir()
    assert attempts.refused > 5


async def test_three_brokers_are_forked_as_a_whole_or_not_at_all(attempts: Attempts) -> None:
    async with opened(3) as (clusters, cluster):
        number = await cluster.take_snapshot()
        for first in range(0, 600, 37):
            attempts.number = first
            before = attempts.directories()
            _, outcome = await attempts.once(lambda: clusters.fork(clusters.snapshots[number]))
            if not isinstance(outcome, ControlError):
                assert await count(outcome) == 1
                clusters.close(outcome.id)
                await outcome.ended.wait()
            assert len(clusters.all()) == 2
            assert attempts.directories() == before, attempts.last
            assert await count(cluster) == 1
    assert attempts.refused > 1


async def test_three_brokers_are_restored_or_have_ended(attempts: Attempts) -> None:
    async with opened(3) as (clusters, cluster):
        number = await cluster.take_snapshot()
        for first in range(0, 600, 74):
            attempts.number = first
            _, outcome = await attempts.once(partial(cluster.restore, clusters.snapshots[number]))
            if cluster in clusters.all():
                assert await count(cluster) == 1
                continue
            assert isinstance(outcome, ControlError)
            assert "The cluster has ended" in str(outcome)
            with pytest.raises(NotFoundError):
                clusters[cluster.id]
            cluster = await clusters.fork(clusters.snapshots[number])
        assert len(attempts.directories()) == 2, "the cluster and the snapshot"
    assert attempts.refused
