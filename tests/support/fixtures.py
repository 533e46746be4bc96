"""Fixtures of function scope made anew in the middle of a test, so that each of its cases has fixtures of its own.

pytest has no public way to do this: its private names are used only here, and tested in `test_cases.py`.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any

import pytest
from _pytest.tmpdir import tmppath_result_key

FUNCTION = "function"


def _of_the_test(request: pytest.FixtureRequest) -> Iterator[tuple[str, Any]]:
    """The name and definition of every fixture of function scope that the test has now, in the order of their names."""
    dynamic = {name: [definition] for name, definition in request._fixture_defs.items()}
    definitions = {**dynamic, **request._arg2fixturedefs}
    for name in request.fixturenames:
        for definition in definitions.get(name, ()):  # several if one replaces another of its name
            if definition.scope == FUNCTION:
                yield name, definition


def end(request: pytest.FixtureRequest) -> None:
    """Tear down the fixtures of function scope, as after a test. What one of them raises is raised after the others."""
    request.node.stash.setdefault(tmppath_result_key, {})  # of tmp_path, which expects to end once
    with ExitStack() as stack:
        for name, definition in _of_the_test(request):
            stack.callback(request._fixture_defs.pop, name, None)
            stack.callback(definition.finish, request)


def begin(request: pytest.FixtureRequest) -> dict[str, Any]:
    """Set up again the fixtures that pytest would set up for every test. Return their values by name."""
    names = dict.fromkeys(name for name, _ in _of_the_test(request) if name in request._arg2fixturedefs)
    return {name: request.getfixturevalue(name) for name in names}
