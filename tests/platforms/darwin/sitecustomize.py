"""Makes a Python on Linux as much like one on macOS as it gets; for processes with this directory in PYTHONPATH.

Names that only Linux has are removed from os, socket, select, fcntl and resource, sys.platform is "darwin", and these
behave as on macOS:

- sendfile has macOS' parameters, and sends a part only;
- flock and lockf exclude each other, also in one process; F_FULLFSYNC exists, and each use adds a line to DARWIN_SYNCS;
- a descriptor that is ready for reading and writing is reported twice, as kqueue does;
- the soft limit of open files is DARWIN_OPEN_FILES if set, and the hard one is infinite, which cannot be set.

kqueue itself cannot be had: the selector is epoll's, and trio keeps its epoll.
"""

import errno
import fcntl
import os
import resource
import select
import selectors
import socket
import subprocess  # noqa: F401 - what chooses by sys.platform is imported before it changes
import sys
import tempfile
import urllib.request  # noqa: F401
import uuid  # noqa: F401
from pathlib import Path
from types import SimpleNamespace

import psutil  # noqa: F401
from trio._core import _io_epoll

_io_epoll.select = SimpleNamespace(**vars(select))  # trio keeps its epoll

LINUX_ONLY = {
    os: (
        "O_DIRECT O_LARGEFILE O_NOATIME O_PATH O_RSYNC O_TMPFILE POSIX_FADV_DONTNEED POSIX_FADV_NORMAL "
        "POSIX_FADV_WILLNEED RWF_APPEND RWF_DSYNC RWF_HIPRI RWF_NOWAIT RWF_SYNC SCHED_BATCH SCHED_IDLE copy_file_range "
        "eventfd eventfd_read eventfd_write fdatasync getrandom getresuid memfd_create pidfd_open pipe2 "
        "posix_fadvise posix_fallocate sched_getaffinity sched_getparam sched_getscheduler sched_param "
        "sched_setaffinity sched_setparam sched_setscheduler setxattr splice"
    ),
    socket: "MSG_MORE MSG_CMSG_CLOEXEC SOCK_CLOEXEC SOCK_NONBLOCK SO_BINDTODEVICE TCP_CORK TCP_QUICKACK",
    select: "epoll",
    fcntl: "F_GETPIPE_SZ F_SETPIPE_SZ F_OFD_GETLK F_OFD_SETLK F_OFD_SETLKW F_ADD_SEALS",
    resource: "prlimit RLIMIT_NICE RLIMIT_OFILE RLIMIT_RTPRIO RLIMIT_SIGPENDING",
}
OPEN_MAX = 10_240
FULL_SYNC = 51

_sendfile, _fcntl, _flock, _lockf = os.sendfile, fcntl.fcntl, fcntl.flock, fcntl.lockf
_getrlimit, _setrlimit = resource.getrlimit, resource.setrlimit
_flocked: set[tuple[int, int]] = set()


def sendfile(out_fd, in_fd, offset, count, headers=(), trailers=(), flags=0):
    """Send at most 100,000 bytes."""
    return _sendfile(out_fd, in_fd, offset, min(count, 100_000))


def fcntl_(fd, command, argument=0):
    """F_FULLFSYNC, which network file systems refuse, and the rest."""
    if command != FULL_SYNC:
        return _fcntl(fd, command, argument)
    if "DARWIN_NETWORK_DISK" in os.environ:
        raise OSError(errno.ENOTSUP, os.strerror(errno.ENOTSUP))
    if "DARWIN_SYNCS" in os.environ:
        with open(os.environ["DARWIN_SYNCS"], "a") as syncs:
            syncs.write(f"{Path(f'/proc/self/fd/{fd}').readlink()}\n")
    return os.fsync(fd)


def flock(fd, operation):
    """Remember the file."""
    _flock(fd, operation)
    status = os.fstat(fd if isinstance(fd, int) else fd.fileno())
    _flocked.add((status.st_dev, status.st_ino))


def lockf(fd, command, length=0, start=0, whence=0):
    """Refuse a lock on a file that this process has locked with flock."""
    status = os.fstat(fd)
    if (status.st_dev, status.st_ino) in _flocked:
        raise BlockingIOError(errno.EAGAIN, os.strerror(errno.EAGAIN))
    _lockf(fd, command, length, start, whence)


def getrlimit(kind):
    """The soft limit of open files as it was set, the hard one infinite."""
    soft, hard = _getrlimit(kind)
    return (soft, resource.RLIM_INFINITY) if kind == resource.RLIMIT_NOFILE else (soft, hard)


def setrlimit(kind, limits):
    """Refuse more open files than OPEN_MAX."""
    if kind == resource.RLIMIT_NOFILE:
        soft, _ = limits
        if soft == resource.RLIM_INFINITY or soft > OPEN_MAX:
            raise ValueError("current limit exceeds maximum limit")
        limits = (soft, _getrlimit(kind)[1])
    _setrlimit(kind, limits)


class TwiceSelector(selectors.EpollSelector):
    """Reports each event on its own, as `KqueueSelector` does."""

    def select(self, timeout=None):
        """READ and WRITE of one descriptor as two entries."""
        single = (selectors.EVENT_READ, selectors.EVENT_WRITE)
        return [(key, event) for key, ready in super().select(timeout) for event in single if ready & event]


for module, names in LINUX_ONLY.items():
    for name in names.split():
        if hasattr(module, name):
            delattr(module, name)
os.sendfile, fcntl.fcntl, fcntl.flock, fcntl.lockf = sendfile, fcntl_, flock, lockf
resource.getrlimit, resource.setrlimit = getrlimit, setrlimit
fcntl.F_FULLFSYNC = FULL_SYNC
selectors.DefaultSelector = TwiceSelector
if "DARWIN_OPEN_FILES" in os.environ:
    _setrlimit(resource.RLIMIT_NOFILE, (int(os.environ["DARWIN_OPEN_FILES"]), _getrlimit(resource.RLIMIT_NOFILE)[1]))
tempfile._O_TMPFILE_WORKS = False
sys.platform = "darwin"
