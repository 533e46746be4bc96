"""Dead-letter queues of share groups: records that were rejected, or delivered too often, in a topic (KIP-1191).

A record there has headers that say where it was, and key and value where the group asks for them
(`errors.deadletterqueue.copy.record.enable`). It is in partition n of the queue when it was in n of its topic, as far
as the queue has so many. What cannot be written after some attempts is given up with a line in the log: a queue
that is missing must not hold up a group. Source: Kafka 4.4 `ShareGroupDLQStateManager`.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Final

from barnabas.broker.config.keys.general import (
    ERRORS_DEADLETTERQUEUE_AUTO_CREATE_TOPICS_ENABLE,
    ERRORS_DEADLETTERQUEUE_TOPIC_NAME_PREFIX,
)
from barnabas.wire.errors import ErrorCode, KafkaError
from barnabas.wire.records import BatchBuilder, CorruptRecord, Record, iter_batches, iter_records

if TYPE_CHECKING:
    from barnabas.broker.context import Broker
    from barnabas.broker.replicas.partition import Partition
    from barnabas.coord.share_partitions.change import DeadLetters
    from barnabas.coord.share_state.key import SharePartitionKey

logger = logging.getLogger("kafka.server.share.dlq.ShareGroupDLQ")

ATTEMPTS: Final = 5
BACKOFF_S: Final = 1.0
MAX_READ_BYTES: Final = 1 << 20
_PASSING = frozenset({ErrorCode.KAFKA_STORAGE_ERROR, ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.NOT_ENOUGH_REPLICAS})
_RECORD_OVERHEAD = 64


class DeadLetterQueues:
    """Writes records to the dead-letter queues of groups."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker

    def send(
        self,
        key: SharePartitionKey,
        source: Partition,
        letters: DeadLetters,
        done: Callable[[], None],
        attempt: int = 1,
    ) -> None:
        """Write records of a share partition to its group's queue; `done` is called when they are there or given up."""

        def failed(error: KafkaError) -> None:
            if error.code in _PASSING and attempt < ATTEMPTS and not self._broker.is_stopping:
                self._broker.timers.at(
                    self._broker.now() + BACKOFF_S * 2 ** (attempt - 1),
                    lambda: self.send(key, source, letters, done, attempt + 1),
                )
                return
            logger.error(
                "Records %d to %d of %r are not in the dead-letter queue of group %s: %s",
                *(letters.first_offset, letters.last_offset, source, key.group_id, error),
            )
            done()

        try:
            queue = self._queue(key.group_id, source.index)
            last = self._append(queue, key, source, letters)
        except KafkaError as error:
            failed(error)
            return
        queue.when_committed(last, lambda error: failed(KafkaError(error)) if error else done())

    def _queue(self, group_id: str, index: int) -> Partition:
        """The queue's partition. KafkaError says what is wrong with the group's or the topic's configuration."""
        broker = self._broker
        name = broker.group_configs(group_id).errors_deadletterqueue_topic_name
        prefix = broker.config[ERRORS_DEADLETTERQUEUE_TOPIC_NAME_PREFIX]
        if not name.startswith(prefix):
            raise _refusal(f"the name {name} does not begin with {prefix}, which the broker asks for")
        if name.startswith("__"):
            raise _refusal(f"the name {name} begins with __")
        if name not in broker.image.topics:
            if not broker.config[ERRORS_DEADLETTERQUEUE_AUTO_CREATE_TOPICS_ENABLE]:
                raise _refusal(f"there is no topic {name}, and the broker does not create it")
            broker.controller.auto_create_dead_letter_queue(name)
        partitions = broker.image.topics[name].partitions
        queue = broker.partitions.get(name, index % len(partitions))
        if not queue.log.config.errors_deadletterqueue_group_enable:
            raise _refusal(f"errors.deadletterqueue.group.enable is not set for the topic {name}")
        return queue

    def _append(self, queue: Partition, key: SharePartitionKey, source: Partition, letters: DeadLetters) -> int:
        """Append the records to the queue, in as many batches as `max.message.bytes` asks for; the last offset."""
        broker = self._broker
        copies = broker.group_configs(key.group_id).errors_deadletterqueue_copy_record_enable
        originals = _originals(source, letters) if copies else {}
        limit = queue.log.config.max_message_bytes
        last = -1
        builder = BatchBuilder()
        for offset in range(letters.first_offset, letters.last_offset + 1):
            record = originals.get(offset)
            headers = _headers(key, source, letters, offset)
            content = (None, None) if record is None else (record.key, record.value)
            size = _RECORD_OVERHEAD + sum(len(part) for part in content if part is not None)
            size += sum(len(name) + len(text) + 4 for name, text in headers)
            if builder.count and builder.size_estimate + size > limit:
                last = queue.append(memoryview(bytearray(builder.build())), broker.now()).last_offset
                builder = BatchBuilder()
            builder.append(broker.now_ms(), *content, headers)
        if builder.count:
            last = queue.append(memoryview(bytearray(builder.build())), broker.now()).last_offset
        return last


def _refusal(reason: str) -> KafkaError:
    return KafkaError(ErrorCode.INVALID_CONFIG, reason)


def _headers(key: SharePartitionKey, source: Partition, letters: DeadLetters, offset: int) -> list[tuple[str, bytes]]:
    headers = [
        ("__dlq.errors.topic", source.topic),
        ("__dlq.errors.partition", str(source.index)),
        ("__dlq.errors.offset", str(offset)),
        ("__dlq.errors.group", key.group_id),
        ("__dlq.errors.delivery.count", str(letters.delivery_count)),
    ]
    if letters.reason:
        headers.append(("__dlq.errors.message", letters.reason))
    return [(name, text.encode()) for name, text in headers]


def _originals(source: Partition, letters: DeadLetters) -> dict[int, Record]:
    """The records themselves, as far as they can be read: the queue is told of the others without key and value."""
    found: dict[int, Record] = {}
    try:
        for record in _read(source, letters.first_offset, letters.last_offset):
            if letters.first_offset <= record.offset <= letters.last_offset:
                found[record.offset] = record
    except (KafkaError, CorruptRecord, OSError) as error:
        logger.warning("Cannot copy all of %d to %d of %r: %s", *letters[:2], source, error)
    return found


def _read(source: Partition, first: int, last: int) -> Iterator[Record]:
    log = source.log
    offset = max(first, log.log_start_offset)
    while offset <= last:
        read = log.read(offset, MAX_READ_BYTES, limit_offset=log.high_watermark, min_one_batch=True)
        if read.slice is None:
            return
        for batch in iter_batches(read.slice.read(), partial_ok=True):
            if batch.base_offset > last:
                return
            if not batch.is_control:
                yield from iter_records(batch)
            offset = batch.next_offset
