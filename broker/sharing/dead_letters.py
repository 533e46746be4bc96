"""Dead-letter queues of share groups: a topic for records that were rejected or delivered too often (KIP-1191).

A record in the queue has headers with its original topic, partition and offset; key and value are copied if the group
sets `errors.deadletterqueue.copy.record.enable`. Partition n of the source goes to partition n of the queue, modulo its
number of partitions, which another broker may lead (`dead_letter_targets`). After `ATTEMPTS` failed writes the records
are dropped with an error in the log, so that a missing queue does not block the group. Copying is done in slices: a
small batch may expand to many records.
Source: Kafka 4.4 `ShareGroupDLQStateManager`.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Generator
from typing import TYPE_CHECKING, Final

from barnabas.broker.config.keys.general import (
    ERRORS_DEADLETTERQUEUE_AUTO_CREATE_TOPICS_ENABLE,
    ERRORS_DEADLETTERQUEUE_TOPIC_NAME_PREFIX,
    REQUEST_TIMEOUT_MS,
)
from barnabas.broker.event_loop.guarded import log_failure
from barnabas.broker.event_loop.waiting import Future, in_slices, sleep_until, start
from barnabas.broker.sharing.dead_letter_targets import LedElsewhere, LedHere
from barnabas.wire.batches.records import BatchBuilder, CorruptRecord, Record, iter_batches, records_in_range
from barnabas.wire.errors import ErrorCode, KafkaError

if TYPE_CHECKING:
    from barnabas.broker.coordinators.services import BrokerServices
    from barnabas.broker.replicas.partition import Partition
    from barnabas.broker.sharing.dead_letter_targets import Target
    from barnabas.coord.groups.settings import GroupConfigs
    from barnabas.coord.share_partitions.change import DeadLetters
    from barnabas.coord.share_state.key import SharePartitionKey

logger = logging.getLogger("kafka.server.share.dlq.ShareGroupDLQ")

ATTEMPTS: Final = 5
BACKOFF_S: Final = 1.0
MAX_READ_BYTES: Final = 1 << 20
_RETRIABLE = frozenset(
    {
        ErrorCode.KAFKA_STORAGE_ERROR,
        ErrorCode.LEADER_NOT_AVAILABLE,
        ErrorCode.NETWORK_EXCEPTION,
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.NOT_ENOUGH_REPLICAS,
        ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND,
        ErrorCode.REQUEST_TIMED_OUT,
    }
)
MAX_EXPANDED_BYTES: Final = 16 << 20
"""Records of a batch that expands to more are not copied, because it is held in memory."""
RECORDS_OF_A_STEP: Final = 100

_RECORD_OVERHEAD = 64


class DeadLetterQueues:
    """Writes records to the dead-letter queues of groups."""

    def __init__(
        self,
        services: BrokerServices,
        group_configs: GroupConfigs,
        create_queue: Callable[[str, Callable[[KafkaError | None], None]], None],
        is_stopping: Callable[[], bool],
    ) -> None:
        """`create_queue` creates the topic of a queue by its name, then calls back, with a KafkaError if it failed."""
        self._services = services
        self._loop = services.loop
        self._group_configs = group_configs
        self._create_queue = create_queue
        self._is_stopping = is_stopping

    def send(self, key: SharePartitionKey, source: Partition, letters: DeadLetters, done: Callable[[], None]) -> None:
        """Copy records to their group's queue; `done` is called when they are committed there, or dropped."""

        def ended(error: Exception | None) -> None:
            if error is not None:
                log_failure(f"Writing to the dead-letter queue of group {key.group_id}", error)
            done()

        start(self._send(key, source, letters), self._loop.slices, ended)

    async def _send(self, key: SharePartitionKey, source: Partition, letters: DeadLetters) -> None:
        for attempt in range(ATTEMPTS):
            try:
                await self._write(key, source, letters)
                return
            except KafkaError as error:
                if error.code not in _RETRIABLE or attempt == ATTEMPTS - 1 or self._is_stopping():
                    logger.error(
                        "Cannot write records %d to %d of %r to the dead-letter queue of group %s: %s",
                        *(letters.first_offset, letters.last_offset, source, key.group_id, error),
                    )
                    return
            await sleep_until(self._loop.timers, self._loop.now() + BACKOFF_S * 2**attempt)

    async def _write(self, key: SharePartitionKey, source: Partition, letters: DeadLetters) -> None:
        name = self._name(key.group_id)
        if not self._services.has_topic(name):
            created: Future[None] = Future()
            self._create_queue(name, created.complete)
            await created
        queue, limit = self._queue(name, source.index)
        await in_slices(self._append(queue, limit, key, source, letters))
        committed: Future[ErrorCode] = Future()
        queue.when_committed(committed.complete)
        error = await committed
        if error:
            raise KafkaError(error)

    def _name(self, group_id: str) -> str:
        """The name of a group's queue. KafkaError if group or broker do not allow it."""
        config, image = self._services.config, self._services.image
        name = self._group_configs(group_id).errors_deadletterqueue_topic_name
        prefix = config[ERRORS_DEADLETTERQUEUE_TOPIC_NAME_PREFIX]
        if not name.startswith(prefix):
            raise _misconfigured(f"the name {name} does not start with the required prefix {prefix}")
        if name.startswith("__"):
            raise _misconfigured(f"the name {name} starts with __")
        if name not in image().topics and not config[ERRORS_DEADLETTERQUEUE_AUTO_CREATE_TOPICS_ENABLE]:
            raise _misconfigured(f"the topic {name} does not exist, and the broker may not create it")
        return name

    def _queue(self, name: str, index: int) -> tuple[Target, int]:
        """The queue's partition for a source partition, and its `max.message.bytes`.

        KafkaError if the topic does not allow it.
        """
        services = self._services
        image = services.image()
        topic = image.topics.get(name)
        if topic is None:
            raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        config = services.partitions.config_of(image, name)
        if not config.errors_deadletterqueue_group_enable:
            raise _misconfigured(f"errors.deadletterqueue.group.enable is not set for the topic {name}")
        number = index % len(topic.partitions)
        leader = topic.partitions[number].leader
        if leader < 0:
            raise KafkaError(ErrorCode.LEADER_NOT_AVAILABLE)
        if leader == services.config.node_id:
            return LedHere(services.partitions.get_leader(name, number), self._loop), config.max_message_bytes
        timeout_s = services.config[REQUEST_TIMEOUT_MS] / 1000
        client = services.client(leader, "dead-letters")
        return LedElsewhere(client, name, number, timeout_s), config.max_message_bytes

    def _append(
        self, queue: Target, limit: int, key: SharePartitionKey, source: Partition, letters: DeadLetters
    ) -> Generator[None, None, None]:
        """Append the records in batches of at most `limit` bytes, in steps."""
        loop = self._loop
        copies = self._group_configs(key.group_id).errors_deadletterqueue_copy_record_enable
        originals = (yield from _originals(source, letters)) if copies else {}
        builder = BatchBuilder()
        for offset in range(letters.first_offset, letters.last_offset + 1):
            record = originals.get(offset)
            headers = _headers(key, source, letters, offset)
            content = (None, None) if record is None else (record.key, record.value)
            size = _RECORD_OVERHEAD + sum(len(part) for part in content if part is not None)
            size += sum(len(name) + len(text) + 4 for name, text in headers)
            if builder.count and builder.size_estimate + size > limit:
                queue.append(builder.build())
                builder = BatchBuilder()
                yield
            builder.append(loop.now_ms(), *content, headers)
            if builder.count % RECORDS_OF_A_STEP == 0:
                yield
        if builder.count:
            queue.append(builder.build())


def _misconfigured(reason: str) -> KafkaError:
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


def _originals(source: Partition, letters: DeadLetters) -> Generator[None, None, dict[int, Record]]:
    """The original records, by offset, as far as they can be read; the others are sent without key and value."""
    records: dict[int, Record] = {}
    try:
        yield from _read(source, letters.first_offset, letters.last_offset, records)
    except (KafkaError, CorruptRecord, OSError) as error:
        logger.warning("Cannot copy all records %d to %d of %r: %s", *letters[:2], source, error)
    return records


def _read(source: Partition, first: int, last: int, records: dict[int, Record]) -> Generator[None, None, None]:
    """Put the records into `records` by offset, in steps: a small batch may expand to many records."""
    log = source.log
    offset = max(first, log.log_start_offset)
    while offset <= last and not source.is_closed:
        read = log.read(offset, MAX_READ_BYTES, limit_offset=log.high_watermark, min_one_batch=True)
        if read.slice is None:
            return
        for batch in iter_batches(read.slice.read(), partial_ok=True):
            if batch.base_offset > last:
                return
            if not batch.is_control:
                for record in (yield from records_in_range(batch, first, last, MAX_EXPANDED_BYTES)):
                    records[record.offset] = record
            offset = batch.next_offset
