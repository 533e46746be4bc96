"""T4, T7-T9: producers, a network that delays, repeats and reorders requests, and crashes at every step.

One seed is one run; `BARNABAS_EXAMPLES` sets how many are run, `BARNABAS_SEED` the first. A crash loses the unsynced
end of the coordinator's log; replies and markers are sent only after their records are synced. Partitions lose nothing.
At the end all faults stop, and each transaction must have the same outcome in all its partitions, which is the one that
its producer was told.
"""

from __future__ import annotations

from collections import defaultdict
from itertools import count
from random import Random

from barnabas.coord.machine import Moment
from barnabas.coord.transactions.config import TransactionConfig
from barnabas.coord.transactions.coordinator import TransactionCoordinator
from barnabas.coord.transactions.states import IDLE
from barnabas.wire.errors import ErrorCode
from barnabas.wire.messages.produce import InitProducerIdRequest
from barnabas.wire.messages.transactions import EndTxnRequest
from tests.coord.coordinator_driver import START_MS
from tests.coord.transactions.transaction_driver import outcomes
from tests.support.volume import for_each_seed, seeds

SEEDS = seeds("BARNABAS_EXAMPLES", 20)
PARTITIONS = [("t", index) for index in range(3)]
BUSY = {ErrorCode.CONCURRENT_TRANSACTIONS, ErrorCode.NOT_COORDINATOR}


class DataPartition:
    """The producer state of one partition and what became of each record (see `storage.producers.producer_state`)."""

    def __init__(self):
        self.epochs = {}
        self.open = defaultdict(list)
        self.outcomes = {}
        self.sequences = {}

    def append(self, producer_id, epoch, sequence, record):
        if epoch < self.epochs.get(producer_id, -1):
            return ErrorCode.INVALID_PRODUCER_EPOCH
        if epoch > self.epochs.get(producer_id, -1):
            self.sequences[producer_id] = 0
        if sequence != self.sequences[producer_id]:
            return ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
        self.epochs[producer_id] = epoch
        self.sequences[producer_id] += 1
        self.open[producer_id].append(record)
        return ErrorCode.NONE

    def mark(self, producer_id, epoch, commit):
        """T8: a marker has the epoch of the next transaction, or it is a retry and no transaction is open."""
        current = self.epochs.get(producer_id, -1)
        if epoch > current:
            self.epochs[producer_id] = epoch
            self.sequences[producer_id] = 0
            for record in self.open.pop(producer_id, ()):
                self.outcomes[record] = commit
        else:
            assert epoch == current, "a marker from before the current epoch"
            assert not self.open.get(producer_id), "a marker that would end a later transaction"


class TransactionWorld:
    def __init__(self, seed):
        self.random = Random(seed)
        self.config = TransactionConfig(abort_interval_ms=5_000)
        self.ids = count(1)
        self.generations = count(1)
        self.now = 0.0
        self.log = []
        self.synced = 0
        self.unsynced = []  # (length of the log that has to be synced, result)
        self.network = []  # calls in flight
        self.partitions = {partition: DataPartition() for partition in PARTITIONS}
        self.is_lossy = True
        self.coordinator = None
        self.start()

    @property
    def at(self):
        return Moment(self.now, START_MS + int(self.now * 1000))

    def start(self):
        self.coordinator = TransactionCoordinator(self.config, lambda: next(self.ids))
        for key, value in self.log:
            self.coordinator.replay(key, value, self.at)
        self.handle(self.coordinator.loaded(self.at))

    def crash(self):
        del self.log[self.synced :]
        self.unsynced.clear()
        self.network = [call for call in self.network if not getattr(call, "is_inside", False)]
        self.start()

    def handle(self, result):
        for key, value in result.records:
            self.log.append((key, value))
            self.coordinator.replay(key, value, self.at)
        self.unsynced.append((len(self.log), result))

    def sync(self):
        self.synced = len(self.log)
        ready, self.unsynced = self.unsynced, []
        for _, result in ready:
            for reply in result.replies:
                reply.ticket(reply.made())
            for markers in result.markers:
                for partition in sorted(markers.partitions):
                    self.mark_soon(self.coordinator, markers, partition)

    def mark_soon(self, coordinator, markers, partition):
        def call():
            self.partitions[partition].mark(markers.producer_id, markers.producer_epoch, markers.is_commit)
            if coordinator is self.coordinator:
                self.handle(coordinator.markers_written(markers, [partition], self.at))

        call.is_inside = True
        self.network.append(call)

    def send(self, call):
        """Send a request; it may be lost, delayed or repeated."""
        self.network.append(call)
        if self.is_lossy:
            chance = self.random.random()
            if chance < 0.1:
                self.network.remove(call)
            elif chance < 0.3:
                self.network.append(call)

    def step(self):
        chance = self.random.random()
        if self.network and chance < 0.6:
            self.network.pop(self.random.randrange(len(self.network)))()
        elif chance < 0.9:
            self.sync()
        else:
            self.now += self.random.choice([0.01, 1.0, 6.0])
            if (deadline := self.coordinator.next_deadline()) is not None and deadline <= self.now:
                self.handle(self.coordinator.tick(self.at))


class Producer:
    """A client of KIP-890, which retries a request until there is a response."""

    def __init__(self, world, transactional_id):
        self.world, self.transactional_id = world, transactional_id
        self.numbers = count(1)
        self.results = {}  # transaction: True committed, False certainly not
        self.restart()

    def restart(self):
        """Replace the process by a new one without state."""
        self.producer = None
        self.request = None
        self.waited = 0
        self.transaction = None
        self.ending = None
        self.generation = next(self.world.generations)

    def step(self):
        world, random = self.world, self.world.random
        if self.request is not None:
            self.waited += 1
            if self.waited % 20 == 0:
                world.send(self.request)
        elif self.producer is None:
            self.ask(self.send_init, self.on_init)
        elif self.transaction is None:
            self.transaction = (self.transactional_id, self.generation, next(self.numbers))
            self.results[self.transaction] = False
            self.left = random.sample(PARTITIONS, random.randint(0, len(PARTITIONS)))
            self.sequences = dict.fromkeys(PARTITIONS, 0)
            self.ending = None
        elif self.left and self.ending is None:
            partition = random.choice(self.left)
            self.ask(self.produce(partition), self.on_produced(partition))
        else:
            if self.ending is None:
                wrote = any(self.sequences.values())
                self.ending = wrote and random.random() < 0.6
            if self.ending:
                self.results.pop(self.transaction, None)  # from here on only the response decides
            self.ask(self.send_end(self.ending), self.on_end)

    def ask(self, request, on_answer):
        generation, once = self.generation, object()
        self.once = once

        def answer(message):
            if self.generation == generation and self.once is once:
                self.once = self.request = None
                on_answer(message)

        self.waited = 0
        self.request = lambda: request(answer)
        self.world.send(self.request)

    def send_init(self, response):
        world = self.world
        request = InitProducerIdRequest(transactional_id=self.transactional_id, transaction_timeout_ms=20_000)
        world.handle(world.coordinator.init_producer_id(request, response, 5, world.at))

    def on_init(self, message):
        if message.error_code == 0:
            self.producer = (message.producer_id, message.producer_epoch)
            self.transaction = None
        else:
            assert message.error_code in BUSY

    def produce(self, partition):
        producer, record, world = self.producer, (self.transaction, partition), self.world
        sequence = self.sequences[partition]

        def request(response):
            def added(result):
                (error,) = outcomes(result).values()
                if error == ErrorCode.NONE:
                    error = world.partitions[partition].append(*producer, sequence, (*record, sequence))
                response(error)

            world.handle(
                world.coordinator.add_partitions(self.transactional_id, *producer, [partition], 2, added, world.at)
            )

        return request

    def on_produced(self, partition):
        def on_answer(error):
            if error in (ErrorCode.NONE, ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER):  # the latter: written before
                self.sequences[partition] += 1
                if self.sequences[partition] == 2:
                    self.left.remove(partition)
            elif error not in BUSY:
                self.producer = None

        return on_answer

    def send_end(self, commit):
        producer, world = self.producer, self.world

        def request(response):
            end = EndTxnRequest(
                transactional_id=self.transactional_id,
                producer_id=producer[0],
                producer_epoch=producer[1],
                committed=commit,
            )
            world.handle(world.coordinator.end(end, response, 5, world.at))

        return request

    def on_end(self, message):
        if message.error_code == 0:
            self.results[self.transaction] = self.ending
            self.producer = (message.producer_id, message.producer_epoch)
            self.transaction = None
        elif message.error_code not in BUSY:
            self.producer = None


def run(seed):
    """Run one seed; the numbers of committed and of aborted transactions with data."""
    world = TransactionWorld(seed)
    random = world.random
    producers = [Producer(world, name) for name in ("a", "a", "b")]  # two of them fence each other
    for _ in range(1200):
        chance = random.random()
        if chance < 0.01:
            world.crash()
        elif chance < 0.015:
            random.choice(producers).restart()
        elif chance < 0.4:
            random.choice(producers).step()
        else:
            world.step()
    world.is_lossy = False
    for _ in range(60):  # no new requests: open transactions end or time out
        world.now += 1.0
        while world.network:
            world.network.pop(random.randrange(len(world.network)))()
        if (deadline := world.coordinator.next_deadline()) is not None and deadline <= world.now:
            world.handle(world.coordinator.tick(world.at))
        world.sync()
    assert all(item.state in IDLE for item in world.coordinator.transactions.values()), "a transaction is not complete"
    kinds_by_transaction = defaultdict(set)
    for partition in world.partitions.values():
        assert not any(partition.open.values()), "data without a marker"
        for (transaction, *_), committed in partition.outcomes.items():
            kinds_by_transaction[transaction].add(committed)
    assert all(len(kinds) == 1 for kinds in kinds_by_transaction.values()), "a torn transaction"
    results = {key: value for item in producers for key, value in item.results.items()}
    assert not {key for key, kinds in kinds_by_transaction.items() if key in results and results[key] not in kinds}, (
        "not the outcome in the response"
    )
    return sum(True in kinds for kinds in kinds_by_transaction.values()), sum(
        False in kinds for kinds in kinds_by_transaction.values()
    )


def test_every_transaction_has_one_outcome_everywhere():
    for_each_seed(SEEDS, run, "BARNABAS_EXAMPLES")


def test_some_runs_commit_and_some_abort():
    committed, aborted = map(sum, zip(*(run(seed) for seed in range(10)), strict=True))
    assert committed > 20
    assert aborted > 20
