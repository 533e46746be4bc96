"""Functions of the user's own, named in a job's file as `module:function`."""

from __future__ import annotations

import sys
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

from barnabas.pipeline.errors import MistakeError


def load(name: str) -> Callable[..., Any]:
    """The function; modules are also looked for in the current directory. MistakeError when there is none."""
    module_name, colon, attribute = name.partition(":")
    if not (colon and module_name and attribute):
        raise MistakeError(f"{name!r} names no function: write module:function")
    here = str(Path.cwd())
    if here not in sys.path:
        sys.path.insert(0, here)
    try:
        module = import_module(module_name)
    except ImportError as error:
        raise MistakeError(
            f"{name} cannot be imported: {error} (looked in {here} and where Python's packages are)"
        ) from error
    except Exception as error:  # whatever the user's own module does when it is imported
        raise MistakeError(f"{name} cannot be imported: {type(error).__name__}: {error}") from error
    found = getattr(module, attribute, None)
    if not callable(found):
        raise MistakeError(f"{module_name} has no function {attribute} ({module.__file__})")
    return found  # type: ignore[no-any-return]
