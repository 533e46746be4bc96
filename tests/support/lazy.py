"""Modules of a test file that are imported when a test first uses them, not when pytest collects the file.

It is for modules that are slow to import and used by few files, as pandas, matplotlib and PySpark: every process of a
parallel run collects all files, and runs the tests of some.
"""

from __future__ import annotations

import importlib
import warnings
from importlib.util import find_spec
from typing import Any

import pytest


class LazyModule:
    """Stands for a module: the first attribute that is asked for imports it.

    It has no names with two underscores, and none of pytest's: pytest asks every object of a test file for those.
    """

    def __init__(self, name: str) -> None:
        self.__dict__["_name"] = name

    def __getattr__(self, attribute: str) -> Any:
        if attribute.startswith(("__", "_pytest", "pytest", "_mock_name")):
            raise AttributeError(attribute)
        with warnings.catch_warnings():  # warnings of an import are not the test's
            warnings.simplefilter("ignore")
            module = importlib.import_module(self.__dict__["_name"])
        value = getattr(module, attribute)
        self.__dict__[attribute] = value
        return value


def lazy(name: str) -> Any:
    """The module of this name. `monkeypatch.setattr` needs the module itself: import it in the test for that."""
    return LazyModule(name)


def skip_without(*names: str) -> None:
    """Skip the tests of the file that calls this unless these are installed. They are not imported for it."""
    for name in names:
        if find_spec(name) is None:
            pytest.skip(f"{name} is not installed", allow_module_level=True)
