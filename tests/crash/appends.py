"""Random appends to the logs of a broker: plain, idempotent and transactional batches, markers and repeats."""

from __future__ import annotations

from dataclasses import dataclass
from random import Random

from barnabas.storage.append.batch_check import Origin, check_batches
from barnabas.storage.append.offset_assignment import AppendInfo, assign_offsets
from barnabas.storage.log import Log
from barnabas.wire.batches.records import NO_TIMESTAMP, BatchBuilder, end_txn_marker
from tests.crash.host import Counters, Host, is_compacted
from tests.crash.ledger import Appended, Batch, Key, Ledger, Record, Written

MAX_SEQUENCE = 2**31 - 1


@dataclass
class Producer:
    """The client side of an idempotent or transactional producer of one partition."""

    producer_id: int
    epoch: int
    sequence: int
    transactional: bool
    is_open: bool = False
    last: tuple[bytes, int] | None = None  # the last batch as sent, and its offset


class Appender:
    """The producers of all partitions; `host` is replaced when the broker restarts."""

    def __init__(self, host: Host, random: Random, ledger: Ledger, counters: Counters) -> None:
        self.host = host
        self.random = random
        self.ledger = ledger
        self.counters = counters
        self.producers: dict[Key, list[Producer]] = {}

    def append(self, key: Key, log: Log) -> None:
        """Append one batch of a random kind."""
        if self.random.random() < 0.25:
            self._append_plain(key, log)
        else:
            self._append_produced(key, log, self._producer(key))

    def _producer(self, key: Key) -> Producer:
        known = self.producers[key]
        if len(known) < 3 and self.random.random() < 0.4:
            first = self.random.choice((0, 0, MAX_SEQUENCE - 2))
            known.append(Producer(self.counters.new_id(), 0, first, transactional=self.random.random() < 0.6))
        return self.random.choice(known) if known else self._producer(key)

    def _records(self, key: Key) -> tuple[Record, ...]:
        keyed = is_compacted(key[0])
        sizes = (5, 120) if keyed else self.random.choice(((10, 40), (10, 40), (100, 300), (300, 430)))
        count = self.random.randint(1, 3)
        return tuple(
            (
                b"%d" % self.random.randrange(6) if keyed else None,
                None if keyed and self.random.random() < 0.2 else self.random.randbytes(self.random.randint(*sizes)),
            )
            for _ in range(count)
        )

    def _build(
        self, records: tuple[Record, ...], producer: tuple[int, int, int], *, transactional: bool = False
    ) -> tuple[bytearray, tuple[int, ...]]:
        """Build a batch; also its timestamps."""
        builder = BatchBuilder(
            codec=self.random.choice((0, 0, 0, 3)),
            producer_id=producer[0],
            producer_epoch=producer[1],
            base_sequence=producer[2],
            transactional=transactional,
        )
        stamps = tuple(1_000 + self.random.randrange(60) for _ in records)
        for timestamp, (key, value) in zip(stamps, records, strict=True):
            builder.append(timestamp, key, value)
        return bytearray(builder.build()), stamps

    def _append_plain(self, key: Key, log: Log) -> None:
        records = self._records(key)
        batch, stamps = self._build(records, (-1, -1, -1))
        self._write(key, log, batch, stamps, (-1, -1, -1), records)

    def _append_produced(self, key: Key, log: Log, producer: Producer) -> None:
        if producer.last is not None and self.random.random() < 0.1:
            self._repeat(log, producer)
            return
        if producer.is_open and self.random.random() < 0.4:
            self._end_transaction(key, log, producer)
            return
        if not producer.is_open and self.random.random() < 0.05:
            producer.epoch += 1
            producer.sequence = 0
        records = self._records(key)
        identity = (producer.producer_id, producer.epoch, producer.sequence)
        batch, stamps = self._build(records, identity, transactional=producer.transactional)
        sent = bytes(batch)
        first = self._write(key, log, batch, stamps, identity, records, transactional=producer.transactional)
        producer.last = sent, first
        producer.is_open = producer.transactional
        producer.sequence = (producer.sequence + len(records)) % (MAX_SEQUENCE + 1)

    def _repeat(self, log: Log, producer: Producer) -> None:
        """A client that missed the response sends its last batch again (I1)."""
        assert producer.last is not None
        if self.host.setup.follows:
            return  # the leader has answered it
        sent, first = producer.last
        info = log.append_as_leader(
            memoryview(bytearray(sent)),
            leader_epoch=self.counters.leader_epoch,
            now_ms=self.host.now_ms,
            now=self.host.now,
        )
        assert (info.duplicate, info.first_offset) == (True, first), f"{producer} got {info}"

    def _end_transaction(self, key: Key, log: Log, producer: Producer) -> None:
        commits = self.random.random() < 0.5
        marker = end_txn_marker(
            commit=commits,
            producer_id=producer.producer_id,
            producer_epoch=producer.epoch,
            coordinator_epoch=3,
            timestamp_ms=1_030,
        )
        identity = (producer.producer_id, producer.epoch, -1)
        self._write(key, log, bytearray(marker), (1_030,), identity, (), marker=commits)
        producer.is_open = False

    def _lead(self, log: Log, batch: bytearray, origin: Origin) -> AppendInfo:
        return log.append_as_leader(
            memoryview(batch),
            leader_epoch=self.counters.leader_epoch,
            now_ms=self.host.now_ms,
            now=self.host.now,
            origin=origin,
        )

    def _follow(self, log: Log, batch: bytearray, origin: Origin) -> AppendInfo:
        """What a follower does: the leader has assigned the offsets, and sends a part of the next batch as well."""
        records = memoryview(batch)
        first = log.log_end_offset
        headers = check_batches(records, log.config, origin, self.host.now_ms)
        last = assign_offsets(records, headers, first, self.counters.leader_epoch, NO_TIMESTAMP)
        rest = bytes(batch[: self.random.choice((0, 10, 60))])
        appended = log.append_as_follower(memoryview(bytes(batch) + rest), now=self.host.now)
        assert appended == (len(batch), 1)
        return AppendInfo(first, last, NO_TIMESTAMP, log.log_start_offset)

    def _write(
        self,
        key: Key,
        log: Log,
        batch: bytearray,
        timestamps: tuple[int, ...],
        producer: tuple[int, int, int],
        records: tuple[Record, ...],
        *,
        transactional: bool = False,
        marker: bool | None = None,
    ) -> int:
        note = self.host.disk.note(None)  # set below: the crash may come before the append returns
        self.host.now += 0.01
        origin: Origin = "client" if marker is None else "coordinator"
        info = (self._follow if self.host.setup.follows else self._lead)(log, batch, origin)
        assert not info.duplicate
        coordinator_epoch = -1 if marker is None else 3
        written = Batch(
            info.first_offset,
            info.last_offset,
            bytes(batch),
            timestamps,
            self.counters.leader_epoch,
            producer,
            transactional,
            marker,
            coordinator_epoch,
            records,
        )
        note.what = Appended(key, written)
        self.ledger.take(note.what)
        self.host.promise(Written(key, info.last_offset + 1), self.ledger)
        if self.host.setup.policy != "always":
            log.high_watermark = log.log_end_offset
        return info.first_offset
