"""Deleting what retention.ms and retention.bytes no longer keep, every log.retention.check.interval.ms (rule L5).

The order is Kafka's: log starts move, are persisted, then files are renamed, and removed file.delete.delay.ms later.
Compacted logs are visited too, since DeleteRecords may have moved their start while the disk failed.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

import trio

from barnabas.storage import retention
from barnabas.storage.damage import DamagedLog
from barnabas.wire.errors import KafkaError

if TYPE_CHECKING:
    from barnabas.broker.context import Broker
    from barnabas.broker.replicas.partition import Partition

logger = logging.getLogger("kafka.log.LogManager")

INITIAL_DELAY_S = 30.0
"""Kafka's `log.initial.task.delay.ms`: a broker that has just started has more urgent things to do."""


class Retention:
    """The retention of all partitions of a broker, and what it has warned of."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self._warned: dict[tuple[str, int], int] = {}

    async def check(self) -> None:
        """One round over all partitions, giving way to requests after each."""
        broker = self._broker
        for partition in list(broker.partitions):
            if not partition.is_gone:
                self._check_partition(partition)
            await trio.lowlevel.checkpoint()
        broker.partitions.persist_log_starts()

    def _check_partition(self, partition: Partition) -> None:
        log = partition.log
        try:
            for expired in retention.expire(log, self._broker.now_ms(), self._broker.now()):
                logger.info(
                    "Deleting %d segments of %s-%d up to base offset %d due to %s breach",
                    *(expired.segments, partition.topic, partition.index, expired.last_base_offset, expired.reason),
                )
            self._warn_of_future(partition)
        except DamagedLog as error:
            partition.fail(str(error))
        except (OSError, KafkaError) as error:
            logger.error("Cannot apply retention to %s-%d: %s", partition.topic, partition.index, error)

    def _warn_of_future(self, partition: Partition) -> None:
        """Say it once a timestamp, not at each check."""
        key = (partition.topic, partition.index)
        timestamp = retention.future_timestamp(partition.log, self._broker.now_ms())
        if timestamp is None:
            self._warned.pop(key, None)
        elif self._warned.get(key) != timestamp:
            self._warned[key] = timestamp
            logger.warning(
                "The oldest segment of %s-%d holds the timestamp %d, which lies in the future: "
                "retention.ms does not delete it before it has come and gone",
                *(*key, timestamp),
            )
