"""Background jobs: a failure of one is logged and ends neither the job nor the broker."""

from __future__ import annotations

from pathlib import Path

import pytest
from trio.testing import MockClock

from barnabas.broker.background import BackgroundJobs
from barnabas.broker.replicas.cleaning.cleaner import LogCleaner
from tests.support.memory.broker import MemoryBroker


@pytest.mark.trio
async def test_a_cleaner_that_fails_is_started_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, autojump_clock: MockClock
) -> None:
    runs = []

    async def run(cleaner: LogCleaner) -> None:
        runs.append(cleaner)
        if len(runs) < 3:
            raise ZeroDivisionError

    monkeypatch.setattr(LogCleaner, "run", run)
    memory = MemoryBroker(tmp_path)
    await BackgroundJobs(memory.broker, None)._clean_logs()  # type: ignore[arg-type]  # no reactor is needed
    memory.close()
    assert len(runs) == 3
    assert caplog.text.count("The log cleaner failed") == 2
