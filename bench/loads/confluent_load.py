"""A load generator with confluent-kafka, run as a separate process; prints the same lines as `load.c`.

python -m bench.loads.confluent_load produce HOST:PORT TOPIC COUNT SIZE ACKS [KEY=VALUE ...]
python -m bench.loads.confluent_load consume HOST:PORT TOPIC COUNT [KEY=VALUE ...]
python -m bench.loads.confluent_load latency HOST:PORT TOPIC RATE WARMUP_S SECONDS LINGER_MS
"""

from __future__ import annotations

import os
import struct
import subprocess
import sys
import time

from confluent_kafka import OFFSET_BEGINNING, OFFSET_END, Consumer, Producer, TopicPartition

TIMEOUT_S = 120.0
LATENCY_BYTES = 100


def produce(bootstrap: str, topic: str, count: int, size: int, acks: str, **config: str) -> None:
    """Produce `count` records of `size` bytes at full speed, and wait until all are acknowledged."""
    producer = Producer(
        {
            "bootstrap.servers": bootstrap,
            "acks": acks,
            "linger.ms": 5,
            "queue.buffering.max.messages": count + 1000,
            "queue.buffering.max.kbytes": 2_000_000,
            **config,
        }
    )
    errors: list[object] = []
    producer.produce(topic, b"first", partition=0, on_delivery=lambda error, _: error and errors.append(error))
    producer.flush(TIMEOUT_S)
    values = [os.urandom(size) for _ in range(64)]
    send = producer.produce
    print("start", flush=True)
    started = time.monotonic()
    for n in range(count):
        send(topic, values[n & 63])
    unsent = producer.flush(TIMEOUT_S)
    took = time.monotonic() - started
    print("end", flush=True)
    if unsent or errors:
        raise SystemExit(f"{unsent} records were not acknowledged; errors: {errors[:3]}")
    result(count, count * size, took, [])


def _reader(bootstrap: str, **config: object) -> Consumer:
    settings = {
        "bootstrap.servers": bootstrap,
        "group.id": "bench",
        "enable.auto.commit": False,
        "fetch.queue.backoff.ms": 5,
    }
    return Consumer(settings | config)


def _partitions(consumer: Consumer, topic: str) -> list[int]:
    return sorted(consumer.list_topics(topic, timeout=30).topics[topic].partitions)


def consume(bootstrap: str, topic: str, count: int, **config: str) -> None:
    """Consume `count` records from the beginning of all partitions, without a group."""
    consumer = _reader(bootstrap, **config)
    partitions = _partitions(consumer, topic)
    received = size = 0
    print("start", flush=True)
    started = time.monotonic()
    consumer.assign([TopicPartition(topic, partition, OFFSET_BEGINNING) for partition in partitions])
    while received < count:
        messages = consumer.consume(min(10_000, count - received), 5.0)
        if time.monotonic() - started > TIMEOUT_S:
            raise SystemExit(f"only {received} of {count} records were received")
        received += len(messages)
        for message in messages:
            size += len(message)
    took = time.monotonic() - started
    print("end", flush=True)
    consumer.close()
    result(received, size, took, [])


def latency(bootstrap: str, topic: str, rate: int, warmup_s: float, seconds: float, linger_ms: int) -> None:
    """Measure the latency from `produce` in another process to `poll` in this one, at a constant rate."""
    consumer = _reader(bootstrap)
    consumer.assign([TopicPartition(topic, partition, OFFSET_END) for partition in _partitions(consumer, topic)])
    consumer.poll(1.0)
    sender = [
        sys.executable,
        "-m",
        "bench.loads.confluent_load",
        "send",
        bootstrap,
        topic,
        str(rate),
        str(warmup_s + seconds + 1),
        str(linger_ms),
    ]
    samples: list[int] = []
    with subprocess.Popen(sender) as process:
        measure_from = _first(consumer) + int(warmup_s * 1e9)
        _collect(consumer, measure_from, [])
        print("start", flush=True)
        _collect(consumer, measure_from + int(seconds * 1e9), samples)
        print("end", flush=True)
        if process.wait(TIMEOUT_S):
            raise SystemExit("the sender failed")
    consumer.close()
    result(len(samples), len(samples) * LATENCY_BYTES, seconds, samples)


def _first(consumer: Consumer) -> int:
    deadline = time.monotonic() + TIMEOUT_S
    while time.monotonic() < deadline:
        message = consumer.poll(1.0)
        if message is not None and message.error() is None:
            return int(struct.unpack_from(">q", message.value())[0])
    raise SystemExit("no record was received")


def _collect(consumer: Consumer, until_ns: int, samples: list[int]) -> None:
    poll, now_ns, unpack = consumer.poll, time.monotonic_ns, struct.Struct(">q").unpack_from
    deadline = until_ns + int(TIMEOUT_S * 1e9)
    while True:
        message = poll(1.0)
        now = now_ns()
        if message is None:
            if now > deadline:
                raise SystemExit("no more records were received")
            continue
        if message.error() is not None:
            continue
        (sent,) = unpack(message.value())
        samples.append(now - sent)
        if sent >= until_ns:
            return


def send(bootstrap: str, topic: str, rate: int, seconds: float, linger_ms: int) -> None:
    """Produce records with the time in their value, every millisecond."""
    producer = Producer({"bootstrap.servers": bootstrap, "linger.ms": linger_ms, "socket.nagle.disable": True})
    padding = bytes(LATENCY_BYTES - 8)
    producer.list_topics(topic, timeout=30)
    pack, now_ns = struct.Struct(">q").pack, time.monotonic_ns
    tick_ns = 1_000_000
    per_tick = max(1, rate // 1000)
    due = now_ns()
    end = due + int(seconds * 1e9)
    while due < end:
        wait_s = (due - now_ns()) / 1e9
        if wait_s > 0:
            time.sleep(wait_s)
        for _ in range(per_tick):
            producer.produce(topic, pack(now_ns()) + padding)
        producer.poll(0)
        due += tick_ns
    if producer.flush(TIMEOUT_S):
        raise SystemExit("records were not acknowledged")


def result(count: int, size: int, took: float, samples: list[int]) -> None:
    """Print the result line, as `load.c` does; samples are in nanoseconds."""
    samples = sorted(samples) or [0]
    p50, p99, max_us = (samples[int(q * (len(samples) - 1))] / 1000 for q in (0.5, 0.99, 1))
    counts = f"requests={count} bytes={size} seconds={took:.6f}"
    print(f"result {counts} p50_us={p50:.1f} p99_us={p99:.1f} max_us={max_us:.1f}", flush=True)


def main() -> None:
    """Run the load named on the command line."""
    mode, bootstrap, topic, *rest = sys.argv[1:]
    config = dict(argument.split("=", 1) for argument in rest if "=" in argument)
    if mode == "produce":
        produce(bootstrap, topic, int(rest[0]), int(rest[1]), rest[2], **config)
    elif mode == "consume":
        consume(bootstrap, topic, int(rest[0]), **config)
    elif mode == "latency":
        latency(bootstrap, topic, int(rest[0]), float(rest[1]), float(rest[2]), int(rest[3]))
    elif mode == "send":
        send(bootstrap, topic, int(rest[0]), float(rest[1]), int(rest[2]))
    else:
        raise SystemExit(f"unknown load {mode}")


if __name__ == "__main__":
    main()
