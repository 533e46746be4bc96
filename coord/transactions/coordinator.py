"""The coordinator of the transactional ids of one partition of `__transaction_state` (T1-T5, T10, T13).

KIP-98, KIP-360, KIP-588, KIP-890. A pure state machine, see `coord.machine`. What `replay` builds is all there is to
know: a transaction whose outcome is written but not yet marked everywhere gets its markers again after a restart, and
no other transaction of its transactional id starts before. Only the epoch that the current one followed, by which
InitProducerId knows a repeat (KIP-360), is forgotten at a restart, as it is in Kafka. Every event gives a
`TransactionResult`; `listing` looks at `transactions`. Source: Kafka 4.4 `TransactionCoordinator`,
`TransactionStateManager`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from barnabas.coord.machine import Moment, Result, check_transition
from barnabas.coord.timers import Timers
from barnabas.coord.transactions import records
from barnabas.coord.transactions.answers import added, end_error, init_error, legacy_fence, not_added
from barnabas.coord.transactions.config import TIMEOUT_OF_TWO_PHASE_COMMIT_MS
from barnabas.coord.transactions.markers import Markers, TransactionResult
from barnabas.coord.transactions.states import (
    CURRENT,
    END_TXN,
    END_TXN_V2,
    EPOCHS_TAKEN_V2,
    IDLE,
    PREDECESSORS,
    PREPARED,
    RETRY,
    End,
    TransactionState,
)
from barnabas.coord.transactions.transaction import (
    EPOCH_BUMP_VERSION,
    MAX_EPOCH,
    NO_PRODUCER_EPOCH,
    NO_PRODUCER_ID,
    Transaction,
    is_exhausted,
    new_transaction,
)
from barnabas.wire.errors import ErrorCode, KafkaError
from barnabas.wire.messages.produce import InitProducerIdResponse
from barnabas.wire.messages.transactions import EndTxnResponse

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable

    from barnabas.coord.machine import Ticket
    from barnabas.coord.transactions.config import TransactionConfig
    from barnabas.coord.transactions.transaction import TopicPartition
    from barnabas.wire.messages.produce import InitProducerIdRequest
    from barnabas.wire.messages.transactions import EndTxnRequest

END_TXN_BUMPS_SINCE = 5
"""EndTxn from this version on is that of KIP-890."""

RETRY_COMPLETE_MS = 1_000
"""How long after a failed write the end of a transaction is written again."""

_ABORT_SWEEP = "abort"
_EXPIRATION_SWEEP = "expiration"

_APPEND_ERRORS = {
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_ENOUGH_REPLICAS: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.REQUEST_TIMED_OUT: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_LEADER_OR_FOLLOWER: ErrorCode.NOT_COORDINATOR,
    ErrorCode.KAFKA_STORAGE_ERROR: ErrorCode.NOT_COORDINATOR,
}
"""What a client is told when the coordinator's own append fails; for any other reason UNKNOWN_SERVER_ERROR."""


class TransactionCoordinator:
    """All transactional ids that fall on one partition of `__transaction_state`."""

    def __init__(self, config: TransactionConfig, new_producer_id: Callable[[], int]) -> None:
        """`new_producer_id` gives a producer id that nobody has had, or raises KafkaError."""
        self.transactions: dict[str, Transaction] = {}
        self._config = config
        self._new_producer_id = new_producer_id
        self._timers = Timers()
        self._ongoing: set[str] = set()
        self._unmarked: dict[str, set[TopicPartition]] = {}
        """The partitions that still miss the marker, of each transactional id whose outcome is decided."""
        self._followed: dict[str, tuple[int, int, int]] = {}
        """By transactional id: producer id, epoch, and the epoch that the producer had before it got these."""
        self._is_loading = True

    # ---- load, replay, unload

    @property
    def is_loading(self) -> bool:
        """Whether the log is still being replayed: nothing else may be asked then (COORDINATOR_LOAD_IN_PROGRESS)."""
        return self._is_loading

    def replay(self, key: bytes, value: bytes | None, at: Moment) -> None:
        """One record is in the log: take over what it says."""
        transactional_id = records.read_key(key)
        if transactional_id is None:
            return
        old = self.transactions.get(transactional_id)
        if value is None:
            self.transactions.pop(transactional_id, None)
            self._followed.pop(transactional_id, None)
            state = TransactionState.DEAD
        else:
            new = self.transactions[transactional_id] = records.read_transaction(value)
            state = new.state
        if old is not None and not self._is_loading:  # a log that is loaded may have lost steps to compaction
            check_transition(PREDECESSORS, old.state, state)
        self._note_state(transactional_id, state, at)

    def _note_state(self, transactional_id: str, state: TransactionState, at: Moment) -> None:
        """Keep what follows from the states: who may time out, who is waiting for markers, and the sweeps."""
        if state is TransactionState.ONGOING:
            self._ongoing.add(transactional_id)
            self._arm(_ABORT_SWEEP, self._config.abort_interval_ms, at)
        else:
            self._ongoing.discard(transactional_id)
        if state in PREPARED:
            self._unmarked[transactional_id] = set(self.transactions[transactional_id].partitions)
        else:
            self._unmarked.pop(transactional_id, None)
        if state in IDLE:
            self._arm(_EXPIRATION_SWEEP, self._config.expiration_interval_ms, at)

    def _arm(self, sweep: str, interval_ms: int, at: Moment) -> None:
        if self._timers.deadline(sweep) is None:
            self._timers.set(sweep, at.now + interval_ms / 1000)

    def loaded(self, at: Moment) -> TransactionResult:
        """The whole log has been replayed: what was decided and not marked everywhere is marked again (T4)."""
        self._is_loading = False
        result = TransactionResult()
        for transactional_id in self._unmarked:
            self._mark(transactional_id, self.transactions[transactional_id], at, result)
        return result

    def unload(self, _at: Moment) -> TransactionResult:
        """The partition has gone elsewhere: nothing is written, and nobody waits."""
        self.transactions.clear()
        self._ongoing.clear()
        self._unmarked.clear()
        self._timers = Timers()
        return TransactionResult()

    def append_failed(self, result: Result, error: ErrorCode, at: Moment) -> Result:
        """The records of `result` could not be appended: what to do and answer instead of it."""
        return result.failed(_APPEND_ERRORS.get(error, ErrorCode.UNKNOWN_SERVER_ERROR), at)

    def commit_failed(self, result: Result, error: ErrorCode) -> Result:
        """The records of `result` are in the log and were replayed, but will not become durable: what to answer.

        The caller unloads the coordinator then, so there is nothing to undo.
        """
        return result.failed_replies(_APPEND_ERRORS.get(error, ErrorCode.UNKNOWN_SERVER_ERROR))

    # ---- InitProducerId

    def init_producer_id(
        self, request: InitProducerIdRequest, ticket: Ticket, api_version: int, at: Moment
    ) -> TransactionResult:
        """InitProducerId of a transactional id: a new epoch, which fences everybody off who has an older one (T3)."""
        result = TransactionResult()
        try:
            answer = self._init(request, at, result)
        except KafkaError as refused:
            answer = init_error(legacy_fence(refused.code, api_version, since=4))
        result.reply(ticket, answer, init_error)
        return result

    def _init(self, request: InitProducerIdRequest, at: Moment, result: TransactionResult) -> InitProducerIdResponse:
        timeout_ms = self._checked_timeout(request)
        transactional_id = request.transactional_id or ""
        expected = _expected_producer(request)
        transaction = self.transactions.get(transactional_id)
        if transaction is None:
            transaction = new_transaction(self._new_producer_id(), timeout_ms, at.now_ms)
        if expected is not None and not _may_be(transaction, *expected):
            raise KafkaError(ErrorCode.PRODUCER_FENCED)
        if transaction.state in PREPARED:
            raise KafkaError(ErrorCode.CONCURRENT_TRANSACTIONS)
        if transaction.state is TransactionState.ONGOING:
            self._fence(transactional_id, transaction, at, result)
            return init_error(ErrorCode.CONCURRENT_TRANSACTIONS)
        expected_epoch = None if expected is None else expected[1]
        producer_id, epoch = self._next_epoch(transactional_id, transaction, expected_epoch)
        self._write(transactional_id, transaction.initialized(producer_id, epoch, timeout_ms, at.now_ms), result)
        return InitProducerIdResponse(producer_id=producer_id, producer_epoch=epoch)

    def _checked_timeout(self, request: InitProducerIdRequest) -> int:
        """The timeout in force; two-phase commits have none, and keeping prepared ones is not in Kafka 4.4 either."""
        if not request.transactional_id:
            raise KafkaError(ErrorCode.INVALID_REQUEST)
        if request.enable2_pc and not self._config.is_two_phase_commit_enabled:
            raise KafkaError(ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED)
        if request.keep_prepared_txn:
            raise KafkaError(ErrorCode.UNSUPPORTED_VERSION)
        if request.enable2_pc:
            return TIMEOUT_OF_TWO_PHASE_COMMIT_MS
        if not 0 < request.transaction_timeout_ms <= self._config.max_timeout_ms:
            raise KafkaError(ErrorCode.INVALID_TRANSACTION_TIMEOUT)
        return request.transaction_timeout_ms

    def _next_epoch(self, transactional_id: str, current: Transaction, expected: int | None) -> tuple[int, int]:
        """The producer id and epoch to give out; the request says which epoch it expects, or nothing (KIP-360)."""
        producer_id, epoch = current.producer_id, current.producer_epoch
        if current.is_exhausted and expected in (None, epoch):
            producer_id, new_epoch = self._new_producer_id(), 0
        elif expected is None or epoch in (NO_PRODUCER_EPOCH, expected):
            new_epoch = epoch + 1
        elif self._followed.get(transactional_id) == (producer_id, epoch, expected):
            return producer_id, epoch  # the answer to the first request was lost
        else:
            raise KafkaError(ErrorCode.PRODUCER_FENCED)
        if expected is None:
            self._followed.pop(transactional_id, None)  # nobody who knows an older epoch may have this one
        else:
            self._followed[transactional_id] = (producer_id, new_epoch, epoch)
        return producer_id, new_epoch

    # ---- partitions

    def add_partitions(
        self,
        transactional_id: str,
        producer_id: int,
        producer_epoch: int,
        partitions: Collection[TopicPartition],
        client_version: int,
        ticket: Ticket,
        at: Moment,
    ) -> TransactionResult:
        """AddPartitionsToTxn, and AddOffsetsToTxn with the group's partition; replies AddPartitionsToTxnResult.

        All partitions of one transaction are added, or none.
        """
        result = TransactionResult()
        try:
            transaction = self._of_producer(transactional_id, producer_id, producer_epoch)
            if not transaction.partitions.issuperset(partitions) or transaction.state is not TransactionState.ONGOING:
                version = min(client_version, self._config.transaction_version)
                self._write(transactional_id, transaction.with_partitions(partitions, version, at.now_ms), result)
            error = ErrorCode.NONE
        except KafkaError as refused:
            error = refused.code
        answer = added(transactional_id, partitions, error)
        result.reply(ticket, answer, lambda failure: added(transactional_id, partitions, failure))
        return result

    def verify_partitions(
        self,
        transactional_id: str,
        producer_id: int,
        producer_epoch: int,
        partitions: Collection[TopicPartition],
        ticket: Ticket,
    ) -> TransactionResult:
        """Whether partitions belong to the producer's transaction: TRANSACTION_ABORTABLE for one that does not (T7)."""
        result = TransactionResult()
        try:
            transaction = self._of_producer(transactional_id, producer_id, producer_epoch)
            answer = not_added(transactional_id, partitions, transaction.partitions)
        except KafkaError as refused:
            answer = added(transactional_id, partitions, refused.code)
        result.reply(ticket, answer, lambda failure: added(transactional_id, partitions, failure))
        return result

    def _of_producer(self, transactional_id: str, producer_id: int, producer_epoch: int) -> Transaction:
        """The transaction that this producer may go on with."""
        if not transactional_id:
            raise KafkaError(ErrorCode.INVALID_REQUEST)
        transaction = self.transactions.get(transactional_id)
        if transaction is None or transaction.producer_id != producer_id:
            raise KafkaError(ErrorCode.INVALID_PRODUCER_ID_MAPPING)
        if transaction.producer_epoch != producer_epoch:
            raise KafkaError(ErrorCode.PRODUCER_FENCED)
        if transaction.state in PREPARED:
            raise KafkaError(ErrorCode.CONCURRENT_TRANSACTIONS)
        return transaction

    # ---- the end

    def end(self, request: EndTxnRequest, ticket: Ticket, api_version: int, at: Moment) -> TransactionResult:
        """EndTxn: the outcome is written down and answered; the markers follow (T4, T7, T9)."""
        result = TransactionResult()
        bumps = api_version >= END_TXN_BUMPS_SINCE and self._config.transaction_version >= EPOCH_BUMP_VERSION
        try:
            if not request.transactional_id:
                raise KafkaError(ErrorCode.INVALID_REQUEST)
            answer = self._end_v2(request, at, result) if bumps else self._end_v1(request, at, result)
        except KafkaError as refused:
            answer = end_error(legacy_fence(refused.code, api_version, since=2))
        result.reply(ticket, answer, end_error)
        return result

    def _end_v1(self, request: EndTxnRequest, at: Moment, result: TransactionResult) -> EndTxnResponse:
        transaction = self.transactions.get(request.transactional_id)
        if transaction is None or transaction.producer_id != request.producer_id:
            raise KafkaError(ErrorCode.INVALID_PRODUCER_ID_MAPPING)
        if transaction.producer_epoch != request.producer_epoch:
            raise KafkaError(ErrorCode.PRODUCER_FENCED)
        deed = _checked(END_TXN.get((transaction.state, request.committed), End.REFUSED))
        if deed is End.PREPARE:
            prepared = transaction.prepared(
                commit=request.committed, client_version=0, next_producer_id=NO_PRODUCER_ID, now_ms=at.now_ms
            )
            self._prepare(request.transactional_id, prepared, at, result)
        return EndTxnResponse()

    def _end_v2(self, request: EndTxnRequest, at: Moment, result: TransactionResult) -> EndTxnResponse:
        """The answer carries the producer id and epoch of the next transaction."""
        transactional_id = request.transactional_id
        transaction = self.transactions.get(transactional_id)
        if transaction is None:
            raise KafkaError(ErrorCode.INVALID_PRODUCER_ID_MAPPING)
        if transaction.state in PREPARED:
            raise KafkaError(ErrorCode.CONCURRENT_TRANSACTIONS)
        rotated = (
            transaction.previous_producer_id == request.producer_id
            and request.producer_epoch == MAX_EPOCH - 1
            and transaction.producer_epoch == 0
        )
        if transaction.producer_id != request.producer_id and not rotated:
            raise KafkaError(ErrorCode.INVALID_PRODUCER_ID_MAPPING)
        which = RETRY if rotated or transaction.producer_epoch == request.producer_epoch + 1 else CURRENT
        is_of_current_epoch = which is RETRY or transaction.producer_epoch == request.producer_epoch
        if not is_of_current_epoch or which not in EPOCHS_TAKEN_V2[transaction.state]:
            raise KafkaError(ErrorCode.PRODUCER_FENCED)
        deed = _checked(END_TXN_V2.get((transaction.state, request.committed, which), End.REFUSED))
        if deed is End.PREPARE:
            transaction = self._bumping_end(transactional_id, transaction, request.committed, at, result)
            transaction = transaction.completed(at.now_ms)
        return EndTxnResponse(producer_id=transaction.producer_id, producer_epoch=transaction.producer_epoch)

    def _bumping_end(
        self, transactional_id: str, transaction: Transaction, commit: bool, at: Moment, result: TransactionResult
    ) -> Transaction:
        """Prepare the end of a transaction as KIP-890 does: under the next epoch, or for the next producer id."""
        next_id = self._new_producer_id() if transaction.is_exhausted else NO_PRODUCER_ID
        prepared = transaction.prepared(
            commit=commit, client_version=EPOCH_BUMP_VERSION, next_producer_id=next_id, now_ms=at.now_ms
        )
        then = prepared.completed(at.now_ms)
        self._followed[transactional_id] = (then.producer_id, then.producer_epoch, transaction.producer_epoch)
        self._prepare(transactional_id, prepared, at, result)
        return prepared

    def _fence(self, transactional_id: str, transaction: Transaction, at: Moment, result: TransactionResult) -> None:
        """Abort an open transaction over the head of its producer, whose epoch is no longer taken then."""
        if self._config.transaction_version >= EPOCH_BUMP_VERSION:
            self._bumping_end(transactional_id, transaction, False, at, result)
            return
        self._followed.pop(transactional_id, None)
        prepared = transaction.fenced().prepared(
            commit=False, client_version=0, next_producer_id=NO_PRODUCER_ID, now_ms=at.now_ms
        )
        self._prepare(transactional_id, prepared, at, result)

    def _prepare(self, transactional_id: str, prepared: Transaction, at: Moment, result: TransactionResult) -> None:
        self._write(transactional_id, prepared, result)
        self._mark(transactional_id, prepared, at, result)

    def _mark(self, transactional_id: str, prepared: Transaction, at: Moment, result: TransactionResult) -> None:
        """Ask for the markers of a transaction; one without partitions needs none and is complete in the same write."""
        if not prepared.partitions:
            self._write(transactional_id, prepared.completed(at.now_ms), result)
            return
        result.markers.append(
            Markers(
                transactional_id,
                prepared.producer_id,
                prepared.producer_epoch,
                prepared.state is TransactionState.PREPARE_COMMIT,
                prepared.client_version,
                prepared.partitions,
            )
        )

    def markers_written(self, markers: Markers, partitions: Iterable[TopicPartition], at: Moment) -> TransactionResult:
        """These partitions have the marker, safely, or are no more; the last one completes the transaction (T4).

        A report that comes late, about a transaction that has ended, does nothing (T9).
        """
        result = TransactionResult()
        transactional_id = markers.transactional_id
        transaction = self.transactions.get(transactional_id)
        unmarked = self._unmarked.get(transactional_id)
        if transaction is None or unmarked is None:
            return result
        if (transaction.producer_id, transaction.producer_epoch) != (markers.producer_id, markers.producer_epoch):
            return result
        unmarked.difference_update(partitions)
        if not unmarked:
            self._complete(transactional_id, at, result)
        return result

    def _complete(self, transactional_id: str, at: Moment, result: TransactionResult) -> None:
        self._write(transactional_id, self.transactions[transactional_id].completed(at.now_ms), result)
        result.on_failure(lambda then: self._complete_later(transactional_id, then))

    def _complete_later(self, transactional_id: str, at: Moment) -> TransactionResult:
        """The end could not be written: the markers are there, so it has to be, sooner or later."""
        self._timers.set(("complete", transactional_id), at.now + RETRY_COMPLETE_MS / 1000)
        return TransactionResult()

    def _write(self, transactional_id: str, transaction: Transaction, result: TransactionResult) -> None:
        version = records.FLEXIBLE_VALUE_VERSION if self._config.transaction_version > 0 else 0
        result.records.append(records.transaction_record(transactional_id, transaction, version))

    # ---- time

    def next_deadline(self) -> float | None:
        """When `tick` has something to do (monotonic seconds), or None."""
        return self._timers.next_deadline()

    def tick(self, at: Moment) -> TransactionResult:
        """Everything that is due at `at`, in order."""
        result = TransactionResult()
        while (key := self._timers.pop_due(at.now)) is not None:
            if key == _ABORT_SWEEP:
                self._abort_timed_out(at, result)
            elif key == _EXPIRATION_SWEEP:
                self._expire(at, result)
            else:
                assert isinstance(key, tuple)
                if not self._unmarked.get(key[1], True):
                    self._complete(key[1], at, result)
        return result

    def _abort_timed_out(self, at: Moment, result: TransactionResult) -> None:
        """Transactions that are open for longer than they may be are aborted (T10)."""
        for transactional_id in sorted(self._ongoing):
            transaction = self.transactions[transactional_id]
            if transaction.start_ms + transaction.timeout_ms < at.now_ms:
                try:
                    self._fence(transactional_id, transaction, at, result)
                except KafkaError:  # no producer id to be had now: the next sweep tries again
                    continue
        if self._ongoing:
            self._arm(_ABORT_SWEEP, self._config.abort_interval_ms, at)

    def _expire(self, at: Moment, result: TransactionResult) -> None:
        """Transactional ids that nobody has used for long are forgotten (T13)."""
        for transactional_id, transaction in self.transactions.items():
            if transaction.state in IDLE and transaction.last_update_ms <= at.now_ms - self._config.id_expiration_ms:
                result.records.append(records.transaction_tombstone(transactional_id))
        if self.transactions:
            self._arm(_EXPIRATION_SWEEP, self._config.expiration_interval_ms, at)


def _checked(deed: End) -> End:
    """The deed, unless it is an error."""
    if deed is End.REFUSED:
        raise KafkaError(ErrorCode.INVALID_TXN_STATE)
    if deed is End.WAIT:
        raise KafkaError(ErrorCode.CONCURRENT_TRANSACTIONS)
    return deed


def _expected_producer(request: InitProducerIdRequest) -> tuple[int, int] | None:
    """The producer id and epoch that the client believes it has; both or none."""
    if request.producer_id == NO_PRODUCER_ID and request.producer_epoch == NO_PRODUCER_EPOCH:
        return None
    if request.producer_id == NO_PRODUCER_ID or request.producer_epoch == NO_PRODUCER_EPOCH:
        raise KafkaError(ErrorCode.INVALID_REQUEST)
    return request.producer_id, request.producer_epoch


def _may_be(transaction: Transaction, producer_id: int, producer_epoch: int) -> bool:
    """Whether a producer that believes to be this one is not fenced yet by its id; the epoch is looked at later."""
    return (
        transaction.producer_epoch == NO_PRODUCER_EPOCH
        or producer_id == transaction.producer_id
        or (producer_id == transaction.previous_producer_id and is_exhausted(producer_epoch))
    )
