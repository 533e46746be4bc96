"""Deletes the segments that exceed retention.ms or retention.bytes, every log.retention.check.interval.ms (rule L5).

The order is Kafka's: the log starts move and are persisted, then the files are renamed, and removed
file.delete.delay.ms later. Compacted logs are checked too, since DeleteRecords may have moved their start while the
disk failed.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

import trio

from barnabas.storage.cleaning import retention
from barnabas.storage.damage import DamagedLog
from barnabas.wire.errors import KafkaError

if TYPE_CHECKING:
    from barnabas.broker.event_loop.loop import Loop
    from barnabas.broker.replicas.partition import Partition
    from barnabas.broker.replicas.partitions import Partitions

logger = logging.getLogger("kafka.log.LogManager")

INITIAL_DELAY_S = 30.0
"""Delay before the first check (Kafka's `log.initial.task.delay.ms`), seconds."""


class Retention:
    """Applies retention to all partitions of a broker."""

    def __init__(self, loop: Loop, partitions: Partitions) -> None:
        self._loop = loop
        self._partitions = partitions
        self._warned: dict[Partition, int] = {}  # the timestamp in the future that was logged

    async def check(self) -> None:
        """Check every partition once, with a checkpoint after each so that requests do not wait."""
        for partition in list(self._partitions):
            if not partition.is_closed:
                self._check_partition(partition)
            await trio.lowlevel.checkpoint()
        self._warned = {warned: timestamp for warned, timestamp in self._warned.items() if not warned.is_closed}
        self._partitions.persist_log_starts()

    def _check_partition(self, partition: Partition) -> None:
        log = partition.log
        try:
            for expired in retention.expire(log, self._loop.now_ms(), self._loop.now()):
                logger.info(
                    "Deleting %d segments of %s-%d up to base offset %d due to %s breach",
                    *(expired.segments, partition.topic, partition.index, expired.last_base_offset, expired.reason),
                )
            self._warn_of_future(partition)
        except DamagedLog as error:
            partition.damaged(str(error))
        except (OSError, KafkaError) as error:
            logger.error("Cannot apply retention to %s-%d: %s", partition.topic, partition.index, error)

    def _warn_of_future(self, partition: Partition) -> None:
        """Log a timestamp in the future once, not at each check."""
        timestamp = retention.future_timestamp(partition.log, self._loop.now_ms())
        if timestamp is None:
            self._warned.pop(partition, None)
        elif self._warned.get(partition) != timestamp:
            self._warned[partition] = timestamp
            logger.warning(
                "The oldest segment of %s-%d holds the timestamp %d, which lies in the future: "
                "retention.ms does not delete it before that time has passed",
                *(partition.topic, partition.index, timestamp),
            )
