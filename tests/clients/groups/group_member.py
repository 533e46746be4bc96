"""One member of a consumer group, run as a separate process so that a test can kill it.

`python group_member.py LIBRARY '{"bootstrap": ..., "group": ..., "topic": ..., "diary": ..., "session_ms": ...}'`; some
take `strategy`, `instance` and `protocol` (classic, which is the default, or consumer) too. It writes its events to the
file `diary` as JSON lines: `assigned`, `revoked` and `lost` with the partitions, `record` for each record, `error`. A
batch is committed after it was written to the file, again if that fails: when the coordinator moves to another broker,
a commit may be answered with a retriable error or not at all, as with Kafka. On SIGTERM the member leaves the group and
exits.
"""

from __future__ import annotations

import asyncio  # noqa: TID251 - aiokafka's loop
import json
import signal
import sys
from pathlib import Path

HEARTBEAT_MS = 1_000


class Diary:
    """The events of a member, in a file that survives a kill."""

    def __init__(self, path):
        self.file = Path(path).open("a", buffering=1)  # noqa: SIM115 - open as long as the process lives

    def write(self, event, **values):
        self.file.write(json.dumps({"event": event} | values) + "\n")


def run_confluent_kafka(options, diary, is_over):
    from confluent_kafka import Consumer, KafkaError, KafkaException

    settings = {
        "bootstrap.servers": options["bootstrap"],
        "group.id": options["group"],
        "auto.offset.reset": "earliest",
        "enable.auto.commit": False,
        "reconnect.backoff.max.ms": 500,
    }
    if options.get("protocol") == "consumer":
        settings["group.protocol"] = "consumer"
    else:
        settings["session.timeout.ms"] = options["session_ms"]
        settings["heartbeat.interval.ms"] = HEARTBEAT_MS
        settings["partition.assignment.strategy"] = options.get("strategy", "range")
    if "instance" in options:
        settings["group.instance.id"] = options["instance"]
    consumer = Consumer(settings)

    def recorder(event):
        return lambda _, partitions: diary.write(event, partitions=[partition.partition for partition in partitions])

    consumer.subscribe(
        [options["topic"]], on_assign=recorder("assigned"), on_revoke=recorder("revoked"), on_lost=recorder("lost")
    )
    is_due = False
    while not is_over():
        messages = consumer.consume(100, 0.2)
        failed = [message.error() for message in messages if message.error()]
        if failed:
            is_fatal = any(error.fatal() or error.code() == KafkaError._FATAL for error in failed)
            diary.write("error", texts=[error.str() for error in failed], fatal=is_fatal)
            if is_fatal:
                return
        read = [message for message in messages if not message.error()]
        for message in read:
            diary.write(
                "record", partition=message.partition(), offset=message.offset(), value=message.value().decode()
            )
        is_due = is_due or bool(read)
        if is_due:
            try:
                consumer.commit(asynchronous=False)
                is_due = False
            except KafkaException as error:
                is_due = error.args[0].code() != KafkaError._NO_OFFSET  # nothing is left to commit
                diary.write("error", texts=[str(error)], fatal=False)
    consumer.close()


def run_kafka_python(options, diary, is_over):
    from kafka import ConsumerRebalanceListener, KafkaConsumer
    from kafka.coordinator.assignors.range import RangePartitionAssignor
    from kafka.errors import KafkaError

    class Listener(ConsumerRebalanceListener):
        def on_partitions_assigned(self, assigned):
            diary.write("assigned", partitions=sorted(assigned_partition.partition for assigned_partition in assigned))

        def on_partitions_revoked(self, revoked):
            diary.write("revoked", partitions=sorted(assigned_partition.partition for assigned_partition in revoked))

    consumer = KafkaConsumer(
        bootstrap_servers=options["bootstrap"],
        group_id=options["group"],
        auto_offset_reset="earliest",
        enable_auto_commit=False,
        session_timeout_ms=options["session_ms"],
        heartbeat_interval_ms=HEARTBEAT_MS,
        partition_assignment_strategy=[RangePartitionAssignor],
        reconnect_backoff_max_ms=500,
    )
    consumer.subscribe([options["topic"]], listener=Listener())
    is_due = False
    while not is_over():
        try:
            batches = consumer.poll(1000, max_records=100)  # with shorter sessions a join in progress may fail
            for partition, messages in batches.items():
                for message in messages:
                    diary.write(
                        "record", partition=partition.partition, offset=message.offset, value=message.value.decode()
                    )
            is_due = is_due or bool(batches)
            if is_due:
                consumer.commit()
                is_due = False
        except KafkaError as error:
            diary.write("error", texts=[repr(error)], fatal=False)
    consumer.close()


def run_aiokafka(options, diary, is_over):
    asyncio.run(_run_aiokafka(options, diary, is_over))


async def _run_aiokafka(options, diary, is_over):
    from aiokafka import AIOKafkaConsumer, ConsumerRebalanceListener
    from aiokafka.coordinator.assignors.range import RangePartitionAssignor
    from aiokafka.errors import KafkaError

    class Listener(ConsumerRebalanceListener):
        def on_partitions_assigned(self, assigned):
            diary.write("assigned", partitions=sorted(topic_partition.partition for topic_partition in assigned))

        def on_partitions_revoked(self, revoked):
            diary.write("revoked", partitions=sorted(topic_partition.partition for topic_partition in revoked))

    consumer = AIOKafkaConsumer(
        bootstrap_servers=options["bootstrap"],
        group_id=options["group"],
        auto_offset_reset="earliest",
        enable_auto_commit=False,
        session_timeout_ms=options["session_ms"],
        heartbeat_interval_ms=HEARTBEAT_MS,
        partition_assignment_strategy=[RangePartitionAssignor],
    )
    consumer.subscribe([options["topic"]], listener=Listener())
    await consumer.start()
    is_due = False
    while not is_over():
        try:
            batches = await consumer.getmany(timeout_ms=200, max_records=100)
            for partition, messages in batches.items():
                for message in messages:
                    diary.write(
                        "record", partition=partition.partition, offset=message.offset, value=message.value.decode()
                    )
            is_due = is_due or bool(batches)
            if is_due:
                await consumer.commit()
                is_due = False
        except KafkaError as error:
            diary.write("error", texts=[repr(error)], fatal=False)
    await consumer.stop()


def main():
    library, options = sys.argv[1], json.loads(sys.argv[2])
    stop = []
    signal.signal(signal.SIGTERM, lambda *_: stop.append(True))
    run = {"confluent-kafka": run_confluent_kafka, "kafka-python": run_kafka_python, "aiokafka": run_aiokafka}[library]
    run(options, Diary(options["diary"]), lambda: bool(stop))


if __name__ == "__main__":
    main()
