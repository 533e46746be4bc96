"""The user's Python functions, named in a job's file as `module:function`."""

from __future__ import annotations

import sys
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

from barnabas.spark.errors import MistakeError


def load(name: str) -> Callable[..., Any]:
    """Import the function; the current directory is searched too. MistakeError if that fails."""
    module_name, colon, attribute = name.partition(":")
    if not (colon and module_name and attribute):
        raise MistakeError(f"{name!r} is not a function: write module:function")
    here = str(Path.cwd())
    if here not in sys.path:
        sys.path.insert(0, here)
    try:
        module = import_module(module_name)
    except ImportError as error:
        raise MistakeError(f"{name} cannot be imported: {error} (searched in {here} and Python's path)") from error
    except Exception as error:  # the user's module may raise anything
        raise MistakeError(f"{name} cannot be imported: {type(error).__name__}: {error}") from error
    function = getattr(module, attribute, None)
    if not callable(function):
        raise MistakeError(f"{module_name} has no function {attribute} ({module.__file__})")
    return function  # type: ignore[no-any-return]
