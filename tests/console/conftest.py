"""One console, and one browser, for all tests of this process, on the session's broker."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.support.console.browser import Browser, open_browser
from tests.support.console.running import RunningConsole, running_console


@pytest.fixture(scope="session")
def console(broker) -> Iterator[RunningConsole]:
    """A console of the session's broker: a test uses topics of its own."""
    with running_console(broker.bootstrap) as running:
        yield running


@pytest.fixture(scope="session")
def chromium() -> Iterator[Browser]:
    """The browser, on no console."""
    with open_browser() as browser:
        yield browser


@pytest.fixture
def browser(chromium: Browser, console: RunningConsole) -> Browser:
    """The browser, on the session's console, at a usual size."""
    chromium.url = console.url
    chromium.theme("light")
    chromium.size(1280)
    return chromium
