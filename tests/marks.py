"""A pytest plugin: the marks that a test has because of where it is, and skipping what this machine has no tools for.

A mark says what a test needs, not how long it takes: `client`, `jvm`, `spark`, `cluster`, `browser`; `soak` is proof by
volume (pyproject.toml lists them). Other marks than these are at the tests.
"""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
FOLDERS = {"tests/clients": "client", "tests/cluster": "cluster"}
"""Folders whose tests need nearly all a real client, or several brokers."""
TOOLS = {"jvm": ("java", "javac", "mvn"), "spark": ("java", "mvn"), "browser": ("chromium", "chromedriver")}
"""The programs that tests with a mark need."""


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Add the marks of the folders, before `-m` chooses."""
    folders = [(f"{ROOT / name}/", mark) for name, mark in FOLDERS.items()]
    for item in items:
        for folder, mark in folders:
            if str(item.path).startswith(folder):
                item.add_marker(mark)


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Skip the tests that need programs which are not installed."""
    for mark, tools in TOOLS.items():
        if item.get_closest_marker(mark) and (missing := [tool for tool in tools if shutil.which(tool) is None]):
            pytest.skip(f"{' and '.join(missing)} {'is' if len(missing) == 1 else 'are'} not installed")
