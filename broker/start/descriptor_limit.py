"""The limit of open files of the process, which also limits connections."""

from __future__ import annotations

import logging
import resource

from barnabas.broker.start.start_errors import StartError
from barnabas.storage.open_files import MIN_DESCRIPTORS

logger = logging.getLogger("kafka.server.KafkaServer")

UNLIMITED = 2**31 - 1
"""The limit where the system has none."""
_OPEN_MAX = 10_240
"""The limit on macOS where its hard limit is infinite, which it does not allow; also the limit of a JVM there."""


def raise_descriptor_limit() -> int:
    """Raise the soft limit of open files to the hard one, as a JVM does; the limit from here on.

    StartError when it is too low to serve.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != hard and not _set_soft_limit(hard, hard) and soft < _OPEN_MAX and not _set_soft_limit(_OPEN_MAX, hard):
        logger.warning("At most %d files and connections can be open: the limit cannot be raised", soft)
    limit = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    if limit == resource.RLIM_INFINITY:
        return UNLIMITED
    if limit < MIN_DESCRIPTORS:
        raise StartError(f"The limit of open files is {limit} (ulimit -n): at least {MIN_DESCRIPTORS} are needed")
    return limit


def _set_soft_limit(limit: int, hard: int) -> bool:
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (limit, hard))
    except (OSError, ValueError):
        return False
    return True
