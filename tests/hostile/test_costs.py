"""The work for an absurd request grows with its elements and no faster: counted in calls of functions, for every API.

`make test` takes the newest version of each API, `soak` the oldest too; `python -m tests.hostile.costs` measures the
same requests at the limit of elements.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest

from barnabas.broker.apis.registry import BROKER_APIS
from barnabas.wire.errors import ProtocolError
from tests.hostile.costs import CostlyBroker
from tests.hostile.fuzz.absurd import Case, cases, changes
from tests.support.cases import for_each

FEW, MANY = 120, 240
MOST_GROWTH = 2.6
"""How much more calls twice as many elements may take: more than two, since parts and steps have their own."""
FIXED_CALLS = 3000
"""Calls that do not depend on the elements but may differ: topics that the first request has created, for example."""


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[CostlyBroker]:
    world = CostlyBroker(Path(tmp_path_factory.mktemp("costs")), topics=20, partitions=20, groups=20)
    yield world
    world.close()


def _calls(world: CostlyBroker, case: Case) -> int:
    """The number of function calls that serving the request takes, all work in slices included."""
    client = world.memory.client()
    frame = client.frame(case.request, case.version)
    count = 0

    def counted(_frame: object, event: str, _argument: object) -> None:
        nonlocal count
        count += event in ("call", "c_call")

    sys.setprofile(counted)
    try:
        client.feed(frame)
        world.memory.advance(0)
    except ProtocolError:
        pass
    finally:
        sys.setprofile(None)
        client.connection.close()
        world.memory.clients.remove(client)
    return count


VERSIONS = ["newest", pytest.param("oldest", marks=pytest.mark.soak)]


@pytest.mark.parametrize("which", VERSIONS)
@for_each("api", [key.name for key in BROKER_APIS])
def test_twice_the_elements_take_twice_the_calls(world: CostlyBroker, api: str, which: str) -> None:
    few, many = (of_version(which, cases(world.names, count, [api])) for count in (FEW, MANY))
    assert few
    for case, other in zip(few, many, strict=True):
        _calls(world, case)  # codecs are compiled with their first use
        calls = _calls(world, case)
        more = _calls(world, other)
        assert more <= MOST_GROWTH * calls + FIXED_CALLS, f"{case.name}: {calls} calls became {more}"


def of_version(which: str, found: Iterable[Case]) -> list[Case]:
    """The cases of one version of an API: the newest, or the oldest."""
    every = list(found)
    versions = [case.version for case in every]
    version = max(versions) if which == "newest" else min(versions)
    return [case for case in every if case.version == version]


def test_changes_of_twice_the_topics_take_twice_the_calls(world: CostlyBroker) -> None:
    def calls(count: int, run: str) -> dict[str, int]:
        return {case.name: _calls(world, case) for case in changes([f"{run}.{index}" for index in range(count)])}

    calls(FEW, "first")  # codecs are compiled with their first use
    few, many = calls(FEW, "few"), calls(MANY, "many")
    assert {name: more for name, more in many.items() if more > MOST_GROWTH * few[name] + FIXED_CALLS} == {}
