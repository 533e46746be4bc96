"""Runs the command line in a separate process."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

from tests.support.processes.commands import Ran, call_command, run_command


@pytest.fixture
def run(broker) -> Callable[..., Ran]:
    """`run("topic", "list")` against the session's broker."""

    def against_broker(*arguments: str, **options: Any) -> Ran:
        return run_command(*arguments, bootstrap=broker.bootstrap, **options)

    return against_broker


@pytest.fixture
def call(broker) -> Callable[..., Ran]:
    """`call("topic", "list")`: as `run`, but in this process."""
    return partial(call_command, bootstrap=broker.bootstrap)
