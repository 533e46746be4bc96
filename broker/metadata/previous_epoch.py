"""Which broker epoch a start may claim to continue (PreviousBrokerEpoch, KIP-966).

A broker that claims its previous epoch keeps its place among the eligible leader replicas: it promises that it still
has all records of that time. After a clean stop the marker of the stop has that epoch, as in Kafka. After a crash Kafka
claims nothing. With `barnabas.log.sync=always` this broker has on disk all records that it has acknowledged, reported
to a leader or counted for a high watermark, so it claims its epoch also then, if

- the epoch was written to every log directory before the broker was unfenced, and
- each directory has the same id as then, none is missing, and
- no log was found damaged below its synced end.

Otherwise, and with every other flush policy, the claim is -1.
"""

from __future__ import annotations

import json
import logging
from typing import TYPE_CHECKING, Final

from barnabas.broker.config.keys.own import ALWAYS, LOG_SYNC
from barnabas.storage.directories.checkpoints import replace_file

if TYPE_CHECKING:
    from barnabas.broker.config.server_config import ServerConfig
    from barnabas.storage.directories.log_dirs import LogDirs
    from barnabas.storage.files import Files

logger = logging.getLogger("kafka.server.BrokerLifecycleManager")

EPOCH_FILE: Final = "barnabas-broker-epoch"
NO_CLAIM: Final = -1


def claimed_epoch(config: ServerConfig, files: Files, log_dirs: LogDirs, *, is_damaged: bool) -> int:
    """The epoch to claim, -1 for none. `is_damaged`: a log was found damaged when it was opened."""
    if is_damaged or len(log_dirs.working) < len(log_dirs.dirs):
        return NO_CLAIM
    if all(log_dir.had_clean_shutdown for log_dir in log_dirs.dirs):
        epochs = {log_dir.clean_epoch for log_dir in log_dirs.dirs}
    elif config[LOG_SYNC] == ALWAYS:
        epochs = {_written(files, log_dir.path, log_dir.directory_id) for log_dir in log_dirs.dirs}
    else:
        return NO_CLAIM
    return epochs.pop() if len(epochs) == 1 else NO_CLAIM


def write_epoch(config: ServerConfig, files: Files, log_dirs: LogDirs, epoch: int) -> None:
    """Write the epoch of this registration to every log directory; may be called in a thread.

    With a flush policy that does not sync before it acknowledges, an earlier epoch is removed instead: a later start
    must not claim it. OSError when a disk refuses it.
    """
    if config[LOG_SYNC] != ALWAYS:
        forget_epoch(files, log_dirs)
        return
    for log_dir in log_dirs.working:
        state = {"version": 0, "brokerEpoch": epoch, "directoryId": log_dir.directory_id}
        replace_file(files, f"{log_dir.path}/{EPOCH_FILE}", json.dumps(state, separators=(",", ":")).encode())


def forget_epoch(files: Files, log_dirs: LogDirs) -> None:
    """Remove the written epochs. OSError when a disk refuses it."""
    for log_dir in log_dirs.working:
        path = f"{log_dir.path}/{EPOCH_FILE}"
        if files.exists(path):
            files.unlink(path)
            files.sync_dir(log_dir.path)


def _written(files: Files, path: str, directory_id: str) -> int:
    """The epoch in a log directory, -1 if it has none of this directory."""
    try:
        state = json.loads(files.read_file(f"{path}/{EPOCH_FILE}"))
        return int(state["brokerEpoch"]) if state["directoryId"] == directory_id else NO_CLAIM
    except FileNotFoundError:
        return NO_CLAIM
    except (ValueError, KeyError, TypeError) as error:
        logger.warning("Cannot read %s/%s: %s", path, EPOCH_FILE, error)
        return NO_CLAIM
