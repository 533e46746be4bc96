"""What systems other than Linux do differently with files: syncs and locks. Chosen once, at import.

macOS has no `fdatasync`, and its `fsync` leaves the data in the disk's own cache, which a power failure empties:
fcntl's F_FULLFSYNC empties it. File systems that do not know it (network shares) get `fsync`, as Go and SQLite do.
"""

from __future__ import annotations

import errno
import fcntl
import os
import sys

_FULL_SYNC: int | None = getattr(fcntl, "F_FULLFSYNC", None)
_NOT_SUPPORTED = frozenset({errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOTTY, errno.EINVAL})


def _sync_fully(fd: int) -> None:
    """Make a file or a directory durable, on macOS."""
    assert _FULL_SYNC is not None
    try:
        fcntl.fcntl(fd, _FULL_SYNC)
    except OSError as error:
        if error.errno not in _NOT_SUPPORTED:
            raise
        os.fsync(fd)


sync = os.fsync if _FULL_SYNC is None else _sync_fully
"""Make a file or a directory durable, with all its attributes."""
sync_data = getattr(os, "fdatasync", sync) if _FULL_SYNC is None else _sync_fully
"""Make a file's data durable, and its size."""

_LOCKS_ARE_SEPARATE = sys.platform == "linux"


def lock(fd: int) -> bool:
    """Take the exclusive lock of an open file until it is closed; False when another has it.

    `flock` also works inside one process. A JVM takes the POSIX lock. On Linux the two do not know each other, so both
    are taken; elsewhere they exclude each other, also in one process, so one is enough and the other would be refused.
    """
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if _LOCKS_ARE_SEPARATE:
            fcntl.lockf(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except (BlockingIOError, PermissionError):
        return False
    return True
