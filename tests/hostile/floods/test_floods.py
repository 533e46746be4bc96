"""Each flood for a few steps, beside a healthy client, which is not delayed; and memory stays bounded.

Floods of one listener share a broker: limits that would disturb others are set while their flood goes on. `python -m
tests.hostile.floods` runs each for seconds against a broker of its own, on every listener.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from barnabas.wire.messages.configs import (
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsRequestAlterableConfig,
    IncrementalAlterConfigsRequestAlterConfigsResource,
)
from tests.hostile.attacker import Attacker
from tests.hostile.floods import FLOODS
from tests.hostile.floods.run import Flood, Run
from tests.hostile.harness import beside_healthy_client, needs_linux
from tests.hostile.secured import SecuredVictim

LISTENER = "SASL_SSL"
DYNAMIC = ("max.connections.per.ip", "max.connection.creation.rate")
"""Keys that are set for one flood."""
BROKER, SET, DELETE = 4, 0, 1


def is_shared(flood: Flood) -> bool:
    """Whether the flood is one of those against the same broker."""
    return LISTENER in flood.listeners


@pytest.fixture(scope="module")
def flooded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SecuredVictim]:
    needs_linux()
    keys = [setting for flood in FLOODS if is_shared(flood) for setting in flood.config.items()]
    config = {key: value for key, value in keys if key not in DYNAMIC}
    victim = SecuredVictim(tmp_path_factory.mktemp("flooded") / "data", LISTENER, config=config)
    victim.start()
    yield victim
    victim.stop()


@contextlib.contextmanager
def dynamic(victim: SecuredVictim, config: Mapping[str, str]) -> Iterator[None]:
    """Keys of the broker, for the time of a flood; they are changed over one connection."""
    if not config:
        yield
        return
    with Attacker(victim) as administrator:
        alter(administrator, SET, config)
        yield
        alter(administrator, DELETE, dict.fromkeys(config, None))


def alter(administrator: Attacker, operation: int, config: Mapping[str, str | None]) -> None:
    """Set keys of the broker, or take them away."""
    changes = [
        IncrementalAlterConfigsRequestAlterableConfig(name=key, value=value, config_operation=operation)
        for key, value in config.items()
    ]
    of_all = IncrementalAlterConfigsRequestAlterConfigsResource(resource_type=BROKER, resource_name="", configs=changes)
    (response,) = administrator(IncrementalAlterConfigsRequest(resources=[of_all]), 1).responses
    assert response.error_code == 0, response


def attack(victim: SecuredVictim, flood: Flood, folder: Path) -> None:
    """Run the flood; then a new client must be able to connect."""
    with beside_healthy_client(victim, memory_limit=flood.memory) as healthy:
        run = Run(victim, steps=flood.steps, beside=healthy, folder=folder)
        with contextlib.closing(run):
            flood.act(run)
            assert run.steps == flood.steps or healthy.is_stalled
            healthy.wait_rounds(3)


@pytest.mark.parametrize("flood", list(filter(is_shared, FLOODS)), ids=lambda flood: flood.name)
def test_flood(flooded: SecuredVictim, flood: Flood, tmp_path: Path) -> None:
    flooded.start_if_ended()
    with dynamic(flooded, {key: value for key, value in flood.config.items() if key in DYNAMIC}):
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
