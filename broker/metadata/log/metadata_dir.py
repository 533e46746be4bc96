"""The directory of the metadata log, for every role: opens the log, and writes snapshots beside its segments."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import TYPE_CHECKING

from barnabas.broker.config.keys.controller import (
    METADATA_LOG_DIR,
    METADATA_LOG_SEGMENT_BYTES,
    METADATA_LOG_SEGMENT_MS,
)
from barnabas.broker.metadata.log.snapshots import NewSnapshot
from barnabas.coord.topic_names import CLUSTER_METADATA_TOPIC
from barnabas.storage import layout
from barnabas.storage.log_config import LogConfig
from barnabas.wire.configdef import INT_MAX, ConfigError
from barnabas.wire.types import ONE_UUID

if TYPE_CHECKING:
    from barnabas.broker.config.server_config import ServerConfig
    from barnabas.broker.event_loop.loop import Loop
    from barnabas.broker.event_loop.steps import Steps
    from barnabas.broker.log_dir_failures import LogDirFailures
    from barnabas.coord.cluster.image import ClusterImage
    from barnabas.storage.directories.log_dir import LogDir
    from barnabas.storage.directories.log_dirs import LogDirs
    from barnabas.storage.log import Log

logger = logging.getLogger("kafka.server.MetadataLog")


def open_metadata_log(loop: Loop, config: ServerConfig, log_dirs: LogDirs) -> Log:
    """Open `__cluster_metadata-0`, or make it. Raises the errors of opening a log; ConfigError for metadata.log.dir."""
    log_config = LogConfig()
    log_config.segment_bytes = config[METADATA_LOG_SEGMENT_BYTES]
    log_config.segment_ms = config[METADATA_LOG_SEGMENT_MS]
    log_config.max_message_bytes = INT_MAX
    return log_dirs.open_log(
        CLUSTER_METADATA_TOPIC,
        0,
        log_config,
        topic_id=ONE_UUID,
        now_ms=loop.now_ms(),
        now=loop.now(),
        home=_new_log_dir(config, log_dirs),
    )


def _new_log_dir(config: ServerConfig, log_dirs: LogDirs) -> LogDir:
    """The log directory for a new metadata log: metadata.log.dir, else the first."""
    path = config[METADATA_LOG_DIR]
    if path is None:
        return log_dirs.dirs[0]
    for log_dir in log_dirs.dirs:
        if str(Path(path).absolute()) == log_dir.path:
            return log_dir
    raise ConfigError(f"metadata.log.dir={path} must be one of log.dirs")


def write_snapshot(
    loop: Loop,
    log_dirs: LogDirs,
    failures: LogDirFailures,
    log: Log,
    image: ClusterImage,
    previous: tuple[int, int] | None = None,
) -> Steps[None]:
    """Write the image as a snapshot, then delete the segments it covers; the image must not change meanwhile.

    `previous` is (end offset, epoch) of an older snapshot that is kept, with the records after it, for other brokers.
    """
    start = image.offset + 1 if previous is None else previous[0]
    snapshot = NewSnapshot(log, image, previous)
    yield from snapshot.encode(loop.now_ms())
    yield snapshot.write
    log.roll(loop.now())
    log.advance_log_start_offset(start)
    yield from failures.write_checkpoint(layout.LOG_START_CHECKPOINT)
    deleted = log.delete_segments_below(start)
    log_dirs.deletions.schedule(deleted, loop.now() + log.config.file_delete_delay_ms / 1000)
    logger.info("Wrote snapshot %s of the metadata", snapshot.name)
