"""A secured broker for the tests of the guard."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.support.processes.secured import Secured


@pytest.fixture(scope="session")
def secured(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Secured]:
    """A broker with a listener of each security protocol, users and ACLs."""
    secured_broker = Secured(tmp_path_factory.mktemp("secured"), "barnabas")
    with secured_broker.server:
        yield secured_broker
