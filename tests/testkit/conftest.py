"""Loads the plugin with the Spark session of the tests."""

from __future__ import annotations

import pytest


def pytest_configure(config: pytest.Config) -> None:
    """Load it."""
    config.pluginmanager.import_plugin("tests.support.spark.session")
