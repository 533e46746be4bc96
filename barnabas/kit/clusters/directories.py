"""Directories of temporary data: made whole or not at all, and removed with their content."""

from __future__ import annotations

import logging
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from shutil import rmtree

from barnabas.kit.errors import ControlError

logger = logging.getLogger("barnabas.control")


def new_path() -> Path:
    """The path of a directory that does not exist yet, on the file system that temporary data is on."""
    return Path(f"{os.environ.get('TMPDIR') or tempfile.gettempdir()}/barnabas-{os.urandom(6).hex()}")


@contextmanager
def new_directory(path: Path) -> Iterator[None]:
    """Make a directory, and fill it. ControlError if that fails: then nothing is left of it."""
    try:
        path.mkdir(mode=0o700)
    except OSError as error:
        raise ControlError(f"Cannot make {path}: {error.strerror}") from error
    try:
        yield
    except BaseException as error:
        remove(path)
        if isinstance(error, OSError):
            raise ControlError(f"Cannot write {path}: {error.strerror or error}") from error
        raise


def remove(path: Path) -> None:
    """Remove a directory; a failure is logged."""
    rmtree(path, ignore_errors=True)
    if os.path.lexists(path):
        logger.warning("%s cannot be removed", path)
