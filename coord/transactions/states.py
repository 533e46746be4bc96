"""The states of a transactional id and which may follow which (rule T2; Kafka's `TransactionState`).

The table is data: replay checks every transition against it, and tests try all 64 pairs. What EndTxn does in each state
is a table too, one before and one since KIP-890.
"""

from __future__ import annotations

from enum import Enum
from types import MappingProxyType


class TransactionState(Enum):
    """The state of a transactional id. Values are the names that DescribeTransactions and ListTransactions show.

    In every state a request with another producer id gets INVALID_PRODUCER_ID_MAPPING (49), and one with another
    producer epoch PRODUCER_FENCED (90), except for the retried EndTxn of KIP-890. The descriptions below are for
    requests that pass these checks. TV2: clients with `transaction.version` 2 (EndTxn from version 5 on).
    """

    EMPTY = "Empty"
    """The transactional id has a producer id and an epoch; no transaction since InitProducerId.

    InitProducerId: bumps the epoch. AddPartitionsToTxn, AddOffsetsToTxn: start the transaction -> Ongoing. EndTxn:
    INVALID_TXN_STATE (48); an abort of a TV2 client, which may not know whether anything was added, bumps the epoch
    -> PrepareAbort. The id expires after `transactional.id.expiration.ms` -> Dead.
    """

    ONGOING = "Ongoing"
    """Partitions were added to the transaction, and they may contain data of it.

    InitProducerId: aborts the transaction under a bumped epoch, CONCURRENT_TRANSACTIONS (51) until that is complete
    -> PrepareAbort. AddPartitionsToTxn, AddOffsetsToTxn: add partitions. EndTxn: -> PrepareCommit or PrepareAbort.
    Transaction timeout: aborted in the same way -> PrepareAbort.
    """

    PREPARE_COMMIT = "PrepareCommit"
    """The transaction is committed; its markers are being written, after a restart again.

    InitProducerId, AddPartitionsToTxn, AddOffsetsToTxn: CONCURRENT_TRANSACTIONS. EndTxn: CONCURRENT_TRANSACTIONS,
    since it may also be that of the next transaction. All markers written: -> CompleteCommit.
    """

    PREPARE_ABORT = "PrepareAbort"
    """The transaction is aborted; its markers are being written, after a restart again.

    InitProducerId, AddPartitionsToTxn, AddOffsetsToTxn: CONCURRENT_TRANSACTIONS. EndTxn: CONCURRENT_TRANSACTIONS,
    since it may also be that of the next transaction. All markers written: -> CompleteAbort.
    """

    COMPLETE_COMMIT = "CompleteCommit"
    """The last transaction is committed in every partition.

    InitProducerId: as in Empty. AddPartitionsToTxn, AddOffsetsToTxn: start the next transaction -> Ongoing. EndTxn: a
    retried commit gets the same response, anything else INVALID_TXN_STATE; a new abort of TV2 -> PrepareAbort. The id
    expires as in Empty -> Dead.
    """

    COMPLETE_ABORT = "CompleteAbort"
    """The last transaction is aborted in every partition.

    InitProducerId: as in Empty. AddPartitionsToTxn, AddOffsetsToTxn: start the next transaction -> Ongoing. EndTxn: a
    retried abort gets the same response, anything else INVALID_TXN_STATE; a new abort of TV2 -> PrepareAbort. The id
    expires as in Empty -> Dead.
    """

    DEAD = "Dead"
    """Expired: a tombstone is in the log. Never written as a state.

    InitProducerId: assigns a new producer id. AddPartitionsToTxn, AddOffsetsToTxn, EndTxn: INVALID_PRODUCER_ID_MAPPING.
    """

    PREPARE_EPOCH_FENCE = "PrepareEpochFence"
    """In Kafka, between two records, while the old producer is being fenced. Never written as a state.

    InitProducerId, AddPartitionsToTxn, AddOffsetsToTxn, EndTxn: not used by Barnabas, which fences and writes
    PrepareAbort in one record.
    """

    def __str__(self) -> str:
        return self.value

    @property
    def log_id(self) -> int:
        """The number of the state in TransactionLogValue."""
        return _LOG_IDS[self]


TransactionState.__hash__ = object.__hash__  # type: ignore[method-assign]  # the enumeration's hashes the name, in Python

_LOG_IDS = {state: number for number, state in enumerate(TransactionState)}
BY_LOG_ID = MappingProxyType({number: state for state, number in _LOG_IDS.items()})

IDLE = frozenset({TransactionState.EMPTY, TransactionState.COMPLETE_COMMIT, TransactionState.COMPLETE_ABORT})
"""No transaction is open: a new epoch may be assigned, and the id may expire."""

PREPARED = frozenset({TransactionState.PREPARE_COMMIT, TransactionState.PREPARE_ABORT})
"""The outcome is decided, and markers are being written."""

PREDECESSORS: dict[TransactionState, frozenset[TransactionState]] = {
    TransactionState.EMPTY: IDLE,
    TransactionState.ONGOING: IDLE | {TransactionState.ONGOING},
    TransactionState.PREPARE_COMMIT: frozenset({TransactionState.ONGOING}),
    TransactionState.PREPARE_ABORT: IDLE | {TransactionState.ONGOING, TransactionState.PREPARE_EPOCH_FENCE},
    TransactionState.COMPLETE_COMMIT: frozenset({TransactionState.PREPARE_COMMIT}),
    TransactionState.COMPLETE_ABORT: frozenset({TransactionState.PREPARE_ABORT}),
    TransactionState.DEAD: IDLE,
    TransactionState.PREPARE_EPOCH_FENCE: frozenset({TransactionState.ONGOING}),
}
"""For each state the states it may follow."""


class EndAction(Enum):
    """What the coordinator does with an EndTxn."""

    PREPARE = "prepare"
    """Write the outcome and request the markers."""
    REPEAT = "repeat"
    """Send the response again: the request is a retry whose first response was lost."""
    WAIT = "wait"
    """Answer CONCURRENT_TRANSACTIONS: the markers of the last transaction are still being written."""
    REFUSE = "refuse"
    """Answer INVALID_TXN_STATE."""


COMMIT, ABORT = True, False
RETRY, CURRENT = True, False

END_TXN: dict[tuple[TransactionState, bool], EndAction] = {
    (TransactionState.ONGOING, COMMIT): EndAction.PREPARE,
    (TransactionState.ONGOING, ABORT): EndAction.PREPARE,
    (TransactionState.PREPARE_COMMIT, COMMIT): EndAction.WAIT,
    (TransactionState.PREPARE_COMMIT, ABORT): EndAction.WAIT,
    (TransactionState.PREPARE_ABORT, COMMIT): EndAction.WAIT,
    (TransactionState.PREPARE_ABORT, ABORT): EndAction.WAIT,
    (TransactionState.COMPLETE_COMMIT, COMMIT): EndAction.REPEAT,
    (TransactionState.COMPLETE_ABORT, ABORT): EndAction.REPEAT,
}
"""Before KIP-890: by state and outcome. Anything else is refused."""

END_TXN_V2: dict[tuple[TransactionState, bool, bool], EndAction] = {
    (TransactionState.EMPTY, ABORT, CURRENT): EndAction.PREPARE,
    (TransactionState.ONGOING, COMMIT, CURRENT): EndAction.PREPARE,
    (TransactionState.ONGOING, ABORT, CURRENT): EndAction.PREPARE,
    (TransactionState.COMPLETE_COMMIT, ABORT, CURRENT): EndAction.PREPARE,
    (TransactionState.COMPLETE_COMMIT, COMMIT, RETRY): EndAction.REPEAT,
    (TransactionState.COMPLETE_ABORT, ABORT, CURRENT): EndAction.PREPARE,
    (TransactionState.COMPLETE_ABORT, ABORT, RETRY): EndAction.REPEAT,
}
"""Since KIP-890: by state, outcome, and whether the epoch is the one before the last bump. Anything else is refused.

In the prepared states every request waits, regardless of its epoch: an abort may have the epoch of the next transaction
before the markers of the last one are written, when nothing of the next one was sent.
"""

EPOCHS_ACCEPTED_V2: dict[TransactionState, frozenset[bool]] = {
    TransactionState.EMPTY: frozenset({CURRENT}),
    TransactionState.ONGOING: frozenset({CURRENT}),
    TransactionState.COMPLETE_COMMIT: frozenset({CURRENT, RETRY}),
    TransactionState.COMPLETE_ABORT: frozenset({CURRENT, RETRY}),
}
"""Since KIP-890: the epochs that EndTxn may have in a state; any other gets PRODUCER_FENCED."""
