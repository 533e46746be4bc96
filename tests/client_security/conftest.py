"""One secured broker for all tests of this process: a test uses users, topics and entities of its own."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.support.processes.commands import Ran, run_command
from tests.support.processes.secured import Secured


@pytest.fixture(scope="session", params=["barnabas", pytest.param("kafka", marks=[pytest.mark.jvm, pytest.mark.soak])])
def secured(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Secured]:
    secured_broker = Secured(tmp_path_factory.mktemp("secured"), request.param)
    with secured_broker.server:
        yield secured_broker


@pytest.fixture
def admin(secured: Secured) -> Callable[..., Ran]:
    """`admin("user", "list")` as the user of the tests themselves."""

    def run(*arguments: str, **options: str) -> Ran:
        own = {"bootstrap": secured.harness, "BARNABAS_COMMAND_CONFIG": secured.command_config}
        return run_command(*arguments, **own, **options)

    return run


@pytest.fixture
def config_file(tmp_path: Path) -> Callable[[dict[str, str]], str]:
    """Writes a client.properties and returns its path."""

    def write(properties: dict[str, str]) -> str:
        path = tmp_path / "client.properties"
        path.write_text("".join(f"{key}={value}\n" for key, value in properties.items()))
        return str(path)

    return write
