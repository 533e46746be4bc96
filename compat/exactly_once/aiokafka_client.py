"""A client process with aiokafka that writes a history; its role is `write` or `read`.

`python -m compat.exactly_once.aiokafka_client ROLE NAME=VALUE...` with the settings of `confluent_client`: an
idempotent writer, or a member of a group of the classic protocol that commits the records it has read. SIGTERM ends it.
"""

from __future__ import annotations

import asyncio  # noqa: TID251 - the library under test is asyncio's
import random
import signal
import sys
import time
from collections.abc import Iterable
from pathlib import Path

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, ConsumerRebalanceListener, TopicPartition
from aiokafka.errors import KafkaError

from compat.checker.history import Writer

OUTSTANDING = 300
REQUEST_MS = 120_000
"""How long aiokafka may try to deliver a record."""


class Client(ConsumerRebalanceListener):
    """Settings, history, and the end by SIGTERM of both roles."""

    def __init__(self, settings: dict[str, str]) -> None:
        self.settings = settings
        self.history = Writer(Path(settings["history"]), settings["process"])
        self.bootstrap = settings["bootstrap"].split(",")
        self._is_over = asyncio.Event()
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, self._is_over.set)

    @property
    def is_stopping(self) -> bool:
        """Whether SIGTERM was received."""
        return self._is_over.is_set()

    # -- the writer

    async def write(self) -> None:
        """Write numbered values until SIGTERM. Values that are finally refused have no answer in the history."""
        settings, chance = self.settings, random.Random(f"{self.settings['seed']} {self.settings['process']}")
        producer = AIOKafkaProducer(
            bootstrap_servers=self.bootstrap, enable_idempotence=True, linger_ms=2, request_timeout_ms=REQUEST_MS
        )
        await producer.start()
        room = asyncio.Semaphore(OUTSTANDING)
        rate, began, number = float(settings["rate"]), time.monotonic(), 0
        while not self.is_stopping:
            if number > (time.monotonic() - began) * rate:
                await asyncio.sleep(0.005)
                continue
            await room.acquire()
            fields = {
                "topic": settings["source"],
                "partition": chance.randrange(int(settings["partitions"])),
                "value": f"{settings['process']}/{number}",
            }
            number += 1
            self.history.write("send", **fields)
            await self._send(producer, fields, room)
        await producer.stop()

    async def _send(self, producer: AIOKafkaProducer, fields: dict[str, object], room: asyncio.Semaphore) -> None:
        def answered(future: asyncio.Future[object]) -> None:
            room.release()
            if future.cancelled() or (error := future.exception()) is not None:
                text = "cancelled" if future.cancelled() else repr(error)
                self.history.write("note", text=f"{fields['value']}: {text}")
                return
            self.history.write("sent", offset=future.result().offset, **fields)

        value = str(fields["value"]).encode()
        try:
            future = await producer.send(fields["topic"], value, partition=fields["partition"])
        except KafkaError as error:
            room.release()
            self.history.write("note", text=f"{fields['value']}: {error!r}")
            return
        future.add_done_callback(answered)

    # -- the member of a group

    def on_partitions_assigned(self, assigned: Iterable[TopicPartition]) -> None:
        """Called by the consumer."""
        self.history.write("assigned", partitions=[list(partition) for partition in assigned])

    def on_partitions_revoked(self, revoked: Iterable[TopicPartition]) -> None:
        """Called by the consumer."""
        self.history.write("revoked", partitions=[list(partition) for partition in revoked])

    async def read(self) -> None:
        """Read the source, and commit the records read."""
        settings, session_ms = self.settings, int(self.settings["session_ms"])
        group = f"{settings['group']}-readers"
        consumer = AIOKafkaConsumer(
            bootstrap_servers=self.bootstrap,
            group_id=group,
            enable_auto_commit=False,
            auto_offset_reset="earliest",
            isolation_level="read_committed",
            session_timeout_ms=session_ms,
            heartbeat_interval_ms=session_ms // 5,
            fetch_max_wait_ms=50,
        )
        consumer.subscribe([settings["source"]], listener=self)
        await consumer.start()
        while not self.is_stopping:
            batches = await consumer.getmany(timeout_ms=200, max_records=200)
            rows = [
                [record.topic, record.partition, record.offset, record.value.decode()]
                for records in batches.values()
                for record in records
            ]
            if rows:
                self.history.write("poll", records=rows, isolation="read_committed")
                offsets = {(topic, partition): offset + 1 for topic, partition, offset, _ in rows}
                await self._commit(consumer, group, offsets)
        await consumer.stop()

    async def _commit(self, consumer: AIOKafkaConsumer, group: str, offsets: dict[tuple[str, int], int]) -> None:
        event = {"group": group, "offsets": [[*where, offset] for where, offset in offsets.items()]}
        self.history.write("committing_offsets", **event)
        try:
            await consumer.commit({TopicPartition(*where): offset for where, offset in offsets.items()})
        except KafkaError as error:
            self.history.write("note", text=f"commit: {error!r}")
            return
        self.history.write("committed_offsets", **event)


async def main() -> None:
    """Run the role of the first argument."""
    client = Client(dict(argument.split("=", 1) for argument in sys.argv[2:]))
    await {"write": client.write, "read": client.read}[sys.argv[1]]()
    client.history.write("closed")


if __name__ == "__main__":
    asyncio.run(main())
