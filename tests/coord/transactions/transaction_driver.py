"""Acts as the broker of a TransactionCoordinator.

Requested markers stay in `driver.markers` until a test writes them, so that every step between prepare and complete can
be tested.
"""

from __future__ import annotations

from itertools import count

from barnabas.coord.transactions.config import TransactionConfig
from barnabas.coord.transactions.coordinator import TransactionCoordinator
from barnabas.wire.errors import ErrorCode
from barnabas.wire.messages.produce import InitProducerIdRequest
from barnabas.wire.messages.transactions import EndTxnRequest
from tests.coord.coordinator_driver import CoordinatorDriver

FIRST_ID = 1000
T0, T1 = ("t", 0), ("t", 1)


class Driver(CoordinatorDriver):
    def __init__(self, **config):
        super().__init__()
        self.config = TransactionConfig(**config)
        self.ids = count(FIRST_ID)
        self.log = []
        self.markers = []
        self.coordinator = self.fresh()
        self.coordinator.loaded(self.at)

    def fresh(self):
        return TransactionCoordinator(self.config, lambda: next(self.ids))

    def append(self, key, value):
        self.log.append((key, value))
        self.coordinator.replay(key, value, self.at)

    def handle(self, result):
        applied = super().handle(result)
        self.markers += getattr(applied, "markers", ())
        return applied

    def restart(self):
        """Load a new coordinator from the log; the markers requested before are lost."""
        self.markers.clear()
        self.coordinator = self.fresh()
        for key, value in self.log:
            self.coordinator.replay(key, value, self.at)
        self.handle(self.coordinator.loaded(self.at))

    def transaction(self, transactional_id="x"):
        return self.coordinator.transactions.get(transactional_id)

    def state(self, transactional_id="x"):
        transaction = self.transaction(transactional_id)
        return None if transaction is None else transaction.state

    # ---- requests

    def init(self, transactional_id="x", *, expected=(-1, -1), timeout_ms=60_000, version=5, **fields):
        """The response of InitProducerId."""
        ticket = f"init{next(self.tickets)}"
        request = InitProducerIdRequest(
            transactional_id=transactional_id,
            transaction_timeout_ms=timeout_ms,
            producer_id=expected[0],
            producer_epoch=expected[1],
            **fields,
        )
        self.handle(self.coordinator.init_producer_id(request, ticket, version, self.at))
        return self.answers[ticket]

    def producer(self, transactional_id="x", **options):
        """A new producer's id and epoch."""
        response = self.init(transactional_id, **options)
        assert response.error_code == 0, ErrorCode(response.error_code)
        return response.producer_id, response.producer_epoch

    def add(self, producer, *partitions, transactional_id="x", client_version=2):
        """The one error of AddPartitionsToTxn."""
        ticket = f"add{next(self.tickets)}"
        result = self.coordinator.add_partitions(
            transactional_id, *producer, partitions or (T0,), client_version, ticket, self.at
        )
        self.handle(result)
        (error,) = set(outcomes(self.answers[ticket]).values())
        return error

    def verify(self, producer, *partitions, transactional_id="x"):
        """The errors of a verification, by partition."""
        ticket = f"verify{next(self.tickets)}"
        self.handle(self.coordinator.verify_partitions(transactional_id, *producer, partitions, ticket))
        return outcomes(self.answers[ticket])

    def end_answer(self, producer, commit, *, transactional_id="x", version=5):
        ticket = f"end{next(self.tickets)}"
        request = EndTxnRequest(
            transactional_id=transactional_id, producer_id=producer[0], producer_epoch=producer[1], committed=commit
        )
        self.handle(self.coordinator.end(request, ticket, version, self.at))
        return self.answers[ticket]

    def end(self, producer, commit, **options):
        """The error of EndTxn."""
        return ErrorCode(self.end_answer(producer, commit, **options).error_code)

    # ---- markers

    def write_markers(self, *partitions, of=None):
        """Report markers as written in these partitions or in all."""
        requested = self.markers.copy() if of is None else [of]
        for markers in requested:
            written = partitions or markers.partitions
            self.handle(self.coordinator.markers_written(markers, written, self.at))
            if not partitions and markers in self.markers:
                self.markers.remove(markers)

    def finish(self, producer, commit, *partitions, version=5):
        """Run one transaction; the producer id and epoch for the next one."""
        assert self.add(producer, *partitions) == ErrorCode.NONE
        response = self.end_answer(producer, commit, version=version)
        assert response.error_code == 0
        self.write_markers()
        return (response.producer_id, response.producer_epoch) if version >= 5 else producer


def outcomes(result):
    return {
        (topic.name, partition.partition_index): ErrorCode(partition.partition_error_code)
        for topic in result.topic_results
        for partition in topic.results_by_partition
    }
