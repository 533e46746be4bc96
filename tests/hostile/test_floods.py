"""Each flood for a few steps, beside a healthy client: nobody waits, and memory stays bounded.

Floods whose limits do not disturb each other share a broker; `python -m tests.hostile.floods` runs each for seconds
against a broker of its own, on every listener.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.hostile.floods import FLOODS
from tests.hostile.floods.run import Flood, Run
from tests.hostile.harness import beside_healthy_client, needs_linux
from tests.hostile.secured import SecuredVictim

LISTENER = "SASL_SSL"


def is_shared(flood: Flood) -> bool:
    """Whether the flood is one of those against the same broker."""
    return LISTENER in flood.listeners and not any(key.startswith("max.connection") for key in flood.config)


@pytest.fixture(scope="module")
def flooded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SecuredVictim]:
    needs_linux()
    config = {key: value for flood in FLOODS if is_shared(flood) for key, value in flood.config.items()}
    victim = SecuredVictim(tmp_path_factory.mktemp("flooded") / "data", LISTENER, config=config)
    victim.start()
    yield victim
    victim.stop()


def attack(victim: SecuredVictim, flood: Flood, folder: Path) -> None:
    """The flood, and then somebody new, who must be let in."""
    with beside_healthy_client(victim, memory_limit=flood.memory) as healthy:
        run = Run(victim, steps=flood.steps, beside=healthy, folder=folder)
        with contextlib.closing(run):
            flood.act(run)
            assert run.steps == flood.steps or healthy.is_stalled
            healthy.wait_rounds(3)


@pytest.mark.parametrize("flood", list(filter(is_shared, FLOODS)), ids=lambda flood: flood.name)
def test_flood(flooded: SecuredVictim, flood: Flood, tmp_path: Path) -> None:
    assert flooded.process is not None
    if flooded.process.poll() is not None:
        flooded.start()
    attack(flooded, flood, tmp_path)


@pytest.mark.parametrize("flood", [flood for flood in FLOODS if not is_shared(flood)], ids=lambda flood: flood.name)
def test_flood_against_its_own_broker(flood: Flood, tmp_path: Path) -> None:
    needs_linux()
    victim = SecuredVictim(tmp_path / "data", flood.listeners[-1], config=dict(flood.config))
    victim.start()
    try:
        attack(victim, flood, tmp_path)
    finally:
        victim.stop()
