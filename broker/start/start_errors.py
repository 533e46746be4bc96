"""Why a broker cannot start, as one sentence: errors of addresses, data directories and their disks."""

from __future__ import annotations

import errno
from contextlib import contextmanager
from typing import TYPE_CHECKING

from barnabas.coord.cluster.image import UnknownMetadataError
from barnabas.storage.damage import DamagedLog
from barnabas.storage.directories.checkpoints import CorruptCheckpoint
from barnabas.storage.directories.log_dirs import DataDirLocked, DataDirMismatch
from barnabas.storage.layout import LOCK
from barnabas.wire.errors import ErrorCode, KafkaError

if TYPE_CHECKING:
    from collections.abc import Iterator


class StartError(Exception):
    """The broker cannot start, for a reason that the user can fix; the text is one sentence."""


def why_not_bound(host: str, port: int, error: OSError) -> str:
    """Why listening at an address fails, in one sentence, with the process that has the address if it is known."""
    reason = error.strerror or str(error)
    if error.errno == errno.EADDRINUSE:
        from barnabas.broker.start.holders import holder_of_port

        reason = f"{reason}{holder_of_port(port)}; --listen takes another address, with port 0 a free one"
    return f"Cannot listen on {host or '*'}:{port}: {reason}"


@contextmanager
def data_errors(paths: str) -> Iterator[None]:
    """Raise StartError, with one sentence, for errors of the data directories or their disks."""
    try:
        yield
    except DataDirLocked as error:
        from barnabas.broker.start.holders import holder_of_lock

        holders = filter(None, (holder_of_lock(f"{path}/{LOCK}") for path in paths.split(",")))
        raise StartError(f"{error}{next(holders, '')}") from error
    except (DataDirMismatch, CorruptCheckpoint, DamagedLog, UnknownMetadataError) as error:
        raise StartError(str(error)) from error
    except (OSError, KafkaError) as error:
        cause = error.__cause__ if isinstance(error, KafkaError) else error
        if isinstance(cause, OSError):
            where = f"{cause.filename}: " if isinstance(cause.filename, str) and cause.filename != paths else ""
            raise StartError(f"Cannot use the data directory {paths}: {where}{cause.strerror or cause}") from error
        if isinstance(error, KafkaError) and error.code == ErrorCode.KAFKA_STORAGE_ERROR:
            raise StartError(f"Cannot use the data directory {paths}: {error}") from error
        raise
