"""The directory of a broker that keeps no data: made at its start with mode 0700, and removed at its end."""

from __future__ import annotations

import logging
import os
from pathlib import Path

from barnabas.broker.start_errors import data_errors

logger = logging.getLogger("kafka.server.KafkaServer")


def make_temporary_dir() -> str:
    """Make a directory of its own for a broker, on the file system that temporary data is on. StartError."""
    path = f"{os.environ.get('TMPDIR') or '/tmp'}/barnabas-{os.urandom(6).hex()}"  # noqa: S108 - mode 0700
    with data_errors(path):
        Path(path).mkdir(0o700)
    return path


def remove_temporary_dir(path: str) -> None:
    """Remove one with what is in it; what cannot be removed is told to the operator."""
    import shutil

    shutil.rmtree(path, ignore_errors=True)
    if os.path.lexists(path):
        logger.warning("%s cannot be removed", path)
