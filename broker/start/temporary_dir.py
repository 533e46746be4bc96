"""The directory of a broker that keeps no data: made at its start with mode 0700, and removed at its end."""

from __future__ import annotations

import logging
import os
from pathlib import Path

from barnabas.broker.start.start_errors import data_errors

logger = logging.getLogger("kafka.server.KafkaServer")


def make_temporary_dir() -> str:
    """Make a directory for one broker, on the file system of temporary data. StartError if that fails."""
    path = f"{os.environ.get('TMPDIR') or '/tmp'}/barnabas-{os.urandom(6).hex()}"  # noqa: S108 - mode 0700
    with data_errors(path):
        Path(path).mkdir(0o700)
    return path


def remove_temporary_dir(path: str) -> None:
    """Remove a directory with its contents, or log that it cannot be removed."""
    import shutil

    shutil.rmtree(path, ignore_errors=True)
    if os.path.lexists(path):
        logger.warning("%s cannot be removed", path)
