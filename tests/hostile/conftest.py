"""Brokers to attack: one for the tests of a file, which is started again after a test that it failed, or one's own."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.hostile.harness import Victim, needs_linux
from tests.hostile.secured import LISTENERS, SecuredVictim

StartVictim = Callable[..., Victim]


def pytest_addoption(parser: pytest.Parser) -> None:
    """`--listener`: every attack over another security protocol."""
    parser.addoption("--listener", choices=LISTENERS, help="the listener that tests/hostile attacks (PLAINTEXT)")


def new_victim(request: pytest.FixtureRequest, data_dir: Path, **options: Any) -> Victim:
    """A broker with the listener of this run, not started."""
    listener = request.config.getoption("--listener", None) or "PLAINTEXT"
    return SecuredVictim(data_dir, listener, **options)


@contextmanager
def module_victim(
    request: pytest.FixtureRequest, folders: pytest.TempPathFactory, config: dict[str, str] | None = None
) -> Iterator[Victim]:
    """A broker for the tests of a file: each calls its `start_if_ended` first."""
    needs_linux()
    victim = new_victim(request, folders.mktemp("victim") / "data", config=config)
    victim.start()
    try:
        yield victim
    finally:
        victim.stop()


@pytest.fixture(scope="module")
def _module_victim(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Victim]:
    with module_victim(request, tmp_path_factory) as victim:
        yield victim


@pytest.fixture
def victim(_module_victim: Victim) -> Victim:
    """One broker for all tests of a file; started again if an earlier test has ended it."""
    _module_victim.start_if_ended()
    return _module_victim


@pytest.fixture
def start_victim(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[StartVictim]:
    """A factory `start_victim(config=None, **options of Victim)`: a broker that a test may stop."""
    needs_linux()
    started: list[Victim] = []

    def start(config: dict[str, str] | None = None, **options: Any) -> Victim:
        victim = new_victim(request, tmp_path / f"victim-{len(started)}" / "data", config=config, **options)
        started.append(victim)
        victim.start()
        return victim

    yield start
    for victim in started:
        victim.stop()
