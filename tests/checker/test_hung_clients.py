"""A client of a run that writes nothing is replaced as hung, unless it has nothing to do."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace

import pytest

from compat.exactly_once.run import Run


class Silent:
    """A client that has written nothing for a minute."""

    process_name = "copy-0#1"

    def __init__(self, role: str) -> None:
        self.role = role
        self.starts = 0

    def check(self) -> None:
        pass

    def silent_s(self) -> float:
        return 60.0

    def kill9(self) -> None:
        pass

    def start(self) -> None:
        self.starts += 1


def test_a_silent_client_counts_as_hung_only_when_nobody_makes_steps(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A copier whose partitions were read to their ends was killed every 45 s, and with it each generation."""
    now = 0.0
    monkeypatch.setattr("compat.exactly_once.run.time.monotonic", lambda: now)
    run = Run(SimpleNamespace(bootstrap="127.0.0.1:1"), "confluent", tmp_path, 1)
    run.silence_s = 45.0
    clients = {name: Silent(name.partition("-")[0]) for name in ("copy-0", "read-0", "write-0")}
    run.slots = clients  # type: ignore[assignment]
    with (tmp_path / "copy-1#1.jsonl").open("w") as history:
        for _ in range(5):
            now += 40.0
            history.write(json.dumps({"type": "committed", "txn": "t"}) + "\n")
            history.flush()
            run.check_clients()
    assert run.hung == 0
    now += 46.0
    run.check_clients()
    run.driver.close()
    assert {name: client.starts for name, client in clients.items()} == {"copy-0": 1, "read-0": 1, "write-0": 0}
