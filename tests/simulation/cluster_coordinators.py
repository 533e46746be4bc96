"""The runs about coordinators that move, one class for each kind of client."""

from __future__ import annotations

from collections import Counter

from tests.simulation.coordinator_run import CoordinatorRun
from tests.simulation.transaction_clients import IN, OUT, PARTITIONS, TransactionClients

FIND_COORDINATOR, FETCH, PRODUCE = 10, 1, 0
OFFSET_COMMIT, OFFSET_FETCH = 8, 9
INIT_PRODUCER_ID, ADD_PARTITIONS, ADD_OFFSETS, END_TXN, WRITE_MARKERS, TXN_OFFSET_COMMIT = 22, 24, 25, 26, 27, 28


class ClusterTransactions(TransactionClients, CoordinatorRun):
    """Transactions: a transaction is visible completely or not at all, and the copiers copy exactly once."""

    transactions = (5, 20)
    apis = (
        *(PRODUCE, FIND_COORDINATOR, INIT_PRODUCER_ID, ADD_PARTITIONS, ADD_PARTITIONS, ADD_OFFSETS),
        *(END_TXN, END_TXN, WRITE_MARKERS, WRITE_MARKERS, TXN_OFFSET_COMMIT, OFFSET_FETCH),
    )

    def __init__(self, name: str, *, is_verbose: bool = False) -> None:
        CoordinatorRun.__init__(self, name, {IN: PARTITIONS, OUT: PARTITIONS}, {}, is_verbose=is_verbose)
        TransactionClients.__init__(self, self.world)

    def start_clients(self) -> None:
        """Writers and copiers of both generations."""
        random = self.world.random
        writers = [f"writer{n}" for n in range(random.choice((1, 2, 3)))]
        copiers = [f"copier{n}" for n in range(PARTITIONS)] if random.random() < 0.7 else []
        self.begin({name: random.choice((1, 2, 2)) for name in (*writers, *copiers)}, writers, copiers)

    def is_done(self) -> bool:
        """Whether every writer is done or was killed for good."""
        return self.is_written()

    def visible(self, topic: str) -> Counter[bytes]:
        """All values of a topic under read_committed."""
        return self.visible_values(topic, lambda records: self.ledger.check_seen(topic, records))

    def check_end(self) -> None:
        """Everything is written, copied and visible."""
        CoordinatorRun.check_end(self)
        self.check_visible()
