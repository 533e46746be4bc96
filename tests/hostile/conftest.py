"""Brokers to attack: one for the tests of a file, which is started again after a test that it failed, or one's own."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.hostile.harness import Victim, needs_linux
from tests.hostile.secured import LISTENERS, SecuredVictim

StartVictim = Callable[..., Victim]


def pytest_addoption(parser: pytest.Parser) -> None:
    """`--listener`: every attack over another security protocol."""
    parser.addoption("--listener", choices=LISTENERS, help="the listener that tests/hostile attacks (PLAINTEXT)")


def _victim(request: pytest.FixtureRequest, data_dir: Path, **options: Any) -> Victim:
    listener = request.config.getoption("--listener", None) or "PLAINTEXT"
    return SecuredVictim(data_dir, listener, **options)


@pytest.fixture(scope="module")
def _module_victim(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Victim]:
    needs_linux()
    victim = _victim(request, tmp_path_factory.mktemp("victim") / "data")
    victim.start()
    yield victim
    victim.stop()


@pytest.fixture
def victim(_module_victim: Victim) -> Victim:
    """One broker for all tests of a file; started again if an earlier test has ended it."""
    assert _module_victim.process is not None
    if _module_victim.process.poll() is not None:
        _module_victim.start()
    return _module_victim


@pytest.fixture
def start_victim(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[StartVictim]:
    """A factory `start_victim(config=None, **options of Victim)`: a broker that a test may stop."""
    needs_linux()
    started: list[Victim] = []

    def start(config: dict[str, str] | None = None, **options: Any) -> Victim:
        victim = _victim(request, tmp_path / f"victim-{len(started)}" / "data", config=config, **options)
        started.append(victim)
        victim.start()
        return victim

    yield start
    for victim in started:
        victim.stop()
