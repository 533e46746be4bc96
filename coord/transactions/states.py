"""The states of a transactional id and which may follow which (rule T2; Kafka's `TransactionState`).

The table is data: replay checks every step against it, tests try all 64 pairs. What EndTxn does in each state is data
too, once for each generation of the protocol (KIP-98, KIP-890).
"""

from __future__ import annotations

from enum import Enum
from types import MappingProxyType


class TransactionState(Enum):
    """Where a transactional id stands. Values are the names that DescribeTransactions and ListTransactions show.

    In every state a producer id that is not that of the transactional id answers INVALID_PRODUCER_ID_MAPPING (49),
    and another producer epoch than the current one PRODUCER_FENCED (90), except for the repeated EndTxn of KIP-890.
    What is told below holds for a request that passes these. TV2 stands for clients of `transaction.version` 2
    (EndTxn from version 5 on).
    """

    EMPTY = "Empty"
    """The transactional id has a producer id and an epoch; no transaction since InitProducerId.

    InitProducerId: the epoch is bumped, the answer is at once. AddPartitionsToTxn, AddOffsetsToTxn: the transaction
    starts -> Ongoing. EndTxn: INVALID_TXN_STATE (48); an abort of TV2, which may not know whether anything was added,
    bumps the epoch -> PrepareAbort. The id expires after `transactional.id.expiration.ms` -> Dead.
    """

    ONGOING = "Ongoing"
    """Partitions belong to the transaction, and data may be in them.

    InitProducerId: the transaction is aborted under a bumped epoch, CONCURRENT_TRANSACTIONS (51) until that is done
    -> PrepareAbort. AddPartitionsToTxn, AddOffsetsToTxn: more partitions. EndTxn: -> PrepareCommit or PrepareAbort.
    Longer than the transaction timeout: aborted like this -> PrepareAbort.
    """

    PREPARE_COMMIT = "PrepareCommit"
    """The transaction is committed; its markers are being written, also again after a restart.

    InitProducerId, AddPartitionsToTxn, AddOffsetsToTxn: CONCURRENT_TRANSACTIONS. EndTxn: CONCURRENT_TRANSACTIONS,
    since it may also be that of the next transaction. All markers written: -> CompleteCommit.
    """

    PREPARE_ABORT = "PrepareAbort"
    """The transaction is aborted; its markers are being written, also again after a restart.

    InitProducerId, AddPartitionsToTxn, AddOffsetsToTxn: CONCURRENT_TRANSACTIONS. EndTxn: CONCURRENT_TRANSACTIONS,
    since it may also be that of the next transaction. All markers written: -> CompleteAbort.
    """

    COMPLETE_COMMIT = "CompleteCommit"
    """The last transaction is committed in every partition.

    InitProducerId: as Empty. AddPartitionsToTxn, AddOffsetsToTxn: the next transaction starts -> Ongoing. EndTxn: a
    repeated commit is answered again, anything else INVALID_TXN_STATE; a new abort of TV2 -> PrepareAbort. The id
    expires as an Empty one -> Dead.
    """

    COMPLETE_ABORT = "CompleteAbort"
    """The last transaction is aborted in every partition.

    InitProducerId: as Empty. AddPartitionsToTxn, AddOffsetsToTxn: the next transaction starts -> Ongoing. EndTxn: a
    repeated abort is answered again, anything else INVALID_TXN_STATE; a new abort of TV2 -> PrepareAbort. The id
    expires as an Empty one -> Dead.
    """

    DEAD = "Dead"
    """Expired: a tombstone is in the log. Never written as a state.

    InitProducerId: a new producer id. AddPartitionsToTxn, AddOffsetsToTxn, EndTxn: INVALID_PRODUCER_ID_MAPPING.
    """

    PREPARE_EPOCH_FENCE = "PrepareEpochFence"
    """Between two records, in Kafka's own coordinator: the old producer is being fenced off. Never written as a state.

    InitProducerId, AddPartitionsToTxn, AddOffsetsToTxn, EndTxn: never seen, here fencing and PrepareAbort are one
    record.
    """

    def __str__(self) -> str:
        return self.value

    @property
    def log_id(self) -> int:
        """The number that stands for the state in TransactionLogValue."""
        return _LOG_IDS[self]


_LOG_IDS = {state: number for number, state in enumerate(TransactionState)}
BY_LOG_ID = MappingProxyType({number: state for state, number in _LOG_IDS.items()})

IDLE = frozenset({TransactionState.EMPTY, TransactionState.COMPLETE_COMMIT, TransactionState.COMPLETE_ABORT})
"""No transaction is under way: a new epoch may be given out, and the id may expire."""

PREPARED = frozenset({TransactionState.PREPARE_COMMIT, TransactionState.PREPARE_ABORT})
"""The outcome is decided and markers are being written."""

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


class End(Enum):
    """What an EndTxn leads to."""

    PREPARE = "prepare"
    """The outcome is written down; markers follow."""
    DONE = "done"
    """A repeated request whose first answer was lost: answered like the first."""
    WAIT = "wait"
    """The markers of the transaction before are still being written: CONCURRENT_TRANSACTIONS."""
    REFUSED = "refused"
    """INVALID_TXN_STATE."""


COMMIT, ABORT = True, False
RETRY, CURRENT = True, False

END_TXN: dict[tuple[TransactionState, bool], End] = {
    (TransactionState.ONGOING, COMMIT): End.PREPARE,
    (TransactionState.ONGOING, ABORT): End.PREPARE,
    (TransactionState.PREPARE_COMMIT, COMMIT): End.WAIT,
    (TransactionState.PREPARE_COMMIT, ABORT): End.WAIT,
    (TransactionState.PREPARE_ABORT, COMMIT): End.WAIT,
    (TransactionState.PREPARE_ABORT, ABORT): End.WAIT,
    (TransactionState.COMPLETE_COMMIT, COMMIT): End.DONE,
    (TransactionState.COMPLETE_ABORT, ABORT): End.DONE,
}
"""Before KIP-890: by state and outcome. What is not here is refused."""

END_TXN_V2: dict[tuple[TransactionState, bool, bool], End] = {
    (TransactionState.EMPTY, ABORT, CURRENT): End.PREPARE,
    (TransactionState.ONGOING, COMMIT, CURRENT): End.PREPARE,
    (TransactionState.ONGOING, ABORT, CURRENT): End.PREPARE,
    (TransactionState.COMPLETE_COMMIT, ABORT, CURRENT): End.PREPARE,
    (TransactionState.COMPLETE_COMMIT, COMMIT, RETRY): End.DONE,
    (TransactionState.COMPLETE_ABORT, ABORT, CURRENT): End.PREPARE,
    (TransactionState.COMPLETE_ABORT, ABORT, RETRY): End.DONE,
}
"""KIP-890: by state, outcome, and whether the request comes with the epoch before the last bump. Else refused.

In the prepared states every request waits, whatever its epoch: an abort may come with the epoch of the next transaction
before the markers of the last one are written, when nothing of the next one was sent.
"""

EPOCHS_TAKEN_V2: dict[TransactionState, frozenset[bool]] = {
    TransactionState.EMPTY: frozenset({CURRENT}),
    TransactionState.ONGOING: frozenset({CURRENT}),
    TransactionState.COMPLETE_COMMIT: frozenset({CURRENT, RETRY}),
    TransactionState.COMPLETE_ABORT: frozenset({CURRENT, RETRY}),
}
"""KIP-890: with which epoch an EndTxn may come in a state; any other is PRODUCER_FENCED."""
