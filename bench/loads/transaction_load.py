"""Transactions with confluent-kafka, run as a separate process; prints the same lines as `load.c`, per transaction.

python -m bench.loads.transaction_load commit HOST:PORT TOPIC PRODUCERS RECORDS WARMUP_S SECONDS
python -m bench.loads.transaction_load copy HOST:PORT TOPIC TARGET COUNT RECORDS
"""

from __future__ import annotations

import os
import sys
import threading
import time
import uuid

from confluent_kafka import Consumer, Producer, TopicPartition

from bench.loads.confluent_load import TIMEOUT_S, result

RECORD_BYTES = 100


def _producer(bootstrap: str) -> Producer:
    producer = Producer({"bootstrap.servers": bootstrap, "transactional.id": f"bench-{uuid.uuid4()}", "linger.ms": 0})
    producer.init_transactions(TIMEOUT_S)
    return producer


class TransactionLoop:
    """A producer that commits one transaction after the other."""

    def __init__(self, bootstrap: str, topic: str, records: int) -> None:
        self.producer = _producer(bootstrap)
        self.topic = topic
        self.records = records
        self.samples: list[tuple[int, int]] = []
        self.stopped = False

    def run(self) -> None:
        """Commit until `stopped`; a sample is the end time and the duration of a transaction, nanoseconds."""
        producer, value = self.producer, os.urandom(RECORD_BYTES)
        while not self.stopped:
            began = time.monotonic_ns()
            producer.begin_transaction()
            for _ in range(self.records):
                producer.produce(self.topic, value, partition=0)
            producer.commit_transaction(TIMEOUT_S)
            ended = time.monotonic_ns()
            self.samples.append((ended, ended - began))


def commit(bootstrap: str, topic: str, producers: int, records: int, warmup_s: float, seconds: float) -> None:
    """Commit transactions with several producers concurrently."""
    loops = [TransactionLoop(bootstrap, topic, records) for _ in range(producers)]
    threads = [threading.Thread(target=loop.run, daemon=True) for loop in loops]
    for thread in threads:
        thread.start()
    time.sleep(warmup_s)
    print("start", flush=True)
    started = time.monotonic_ns()
    time.sleep(seconds)
    ended = time.monotonic_ns()
    print("end", flush=True)
    for loop in loops:
        loop.stopped = True
    for thread in threads:
        thread.join(TIMEOUT_S)
    samples = [took for loop in loops for end, took in loop.samples if started < end <= ended]
    if not samples:
        raise SystemExit("no transaction was committed")
    result(len(samples), len(samples) * records * RECORD_BYTES, (ended - started) / 1e9, samples)


def copy(bootstrap: str, topic: str, target: str, count: int, records: int) -> None:
    """Copy a topic of one partition exactly once, with the offsets in the same transactions."""
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": f"bench-{uuid.uuid4()}",
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
            "fetch.queue.backoff.ms": 5,
        }
    )
    producer = _producer(bootstrap)
    consumer.subscribe([topic])
    batch = _read(consumer, records)
    copied = size = 0
    samples: list[int] = []
    print("start", flush=True)
    started = time.monotonic()
    while True:
        began = time.monotonic_ns()
        producer.begin_transaction()
        for message in batch:
            producer.produce(target, message.value(), partition=0)
            size += len(message)
        copied += len(batch)
        position = TopicPartition(topic, 0, batch[-1].offset() + 1)
        producer.send_offsets_to_transaction([position], consumer.consumer_group_metadata(), TIMEOUT_S)
        producer.commit_transaction(TIMEOUT_S)
        samples.append(time.monotonic_ns() - began)
        if copied >= count:
            break
        batch = _read(consumer, min(records, count - copied))
    took = time.monotonic() - started
    print("end", flush=True)
    consumer.close()
    result(len(samples), size, took, samples)


def _read(consumer: Consumer, count: int):
    batch = []
    deadline = time.monotonic() + TIMEOUT_S
    while len(batch) < count:
        batch += [message for message in consumer.consume(count - len(batch), 1.0) if message.error() is None]
        if time.monotonic() > deadline:
            raise SystemExit("no more records were received")
    return batch


def main() -> None:
    """Run the load named on the command line."""
    mode, bootstrap, topic, *rest = sys.argv[1:]
    if mode == "commit":
        commit(bootstrap, topic, int(rest[0]), int(rest[1]), float(rest[2]), float(rest[3]))
    elif mode == "copy":
        copy(bootstrap, topic, rest[0], int(rest[1]), int(rest[2]))
    else:
        raise SystemExit(f"unknown load {mode}")


if __name__ == "__main__":
    main()
