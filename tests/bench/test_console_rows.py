"""The bench rows of the console measure what they state: each is run small, on Barnabas only."""

from __future__ import annotations

from pathlib import Path

import pytest

from bench.cases import console
from bench.cases.case import Group, Scale
from bench.cases.groups import PAGE_CACHE
from bench.target import Target

pytestmark = [pytest.mark.soak, pytest.mark.timeout(400)]  # 18 CPU s

BRIEF = Scale(seconds=0.2, warmup_s=0.1, console_records=3000, console_topics=500)


def test_pages_scans_and_memory_are_of_a_console_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(console, "SETTLE_S", 0)
    with Group("Test", "", (), barnabas=PAGE_CACHE, kafka={}).server("barnabas", tmp_path) as server:
        target = Target(server)
        started = console.start(target, BRIEF)
        assert started.keys() == {"ready s", "page ms", "page kB"}
        assert 20 < started["page kB"] < 120
        scanned = console.scan(target, BRIEF)
        assert 0 < scanned["CPU us/op"] < 1e6 * 10 / BRIEF.console_records
        for beside_export in (False, True):
            assert console.last_100(target, BRIEF, beside_export=beside_export).keys() == {"page ms"}
        assert console.orders(target, BRIEF.console_records) == console.orders(target, BRIEF.console_records)
        assert 20 < console.memory(target, BRIEF)["MB"] < 500


@pytest.mark.parametrize("side", ["barnabas", "kafka"])
def test_one_side_has_a_console(side: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    consoles = []
    console_of = console.Console
    monkeypatch.setattr(console, "Console", lambda bootstrap: consoles.append(bootstrap) or console_of(bootstrap))
    (group,) = (group for group in console.groups(BRIEF, PAGE_CACHE) if group.title == "Beside a console")
    with group.server(side, tmp_path) as server:
        figures = group.cases[0].measure(Target(server), BRIEF)
        assert figures.keys() == {"p99 ms", "req/s"}
        assert consoles == ([server.bootstrap] if side == "barnabas" else [])
