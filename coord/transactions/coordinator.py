"""The coordinator of the transactional ids of one partition of `__transaction_state` (rules T1-T5, T10, T13).

A pure state machine, see `coord.machine`. All durable state is built by `replay`: after a restart the markers of a
transaction in a prepared state are requested again, and no other transaction of its transactional id starts before they
are written. Only the previous epoch, by which InitProducerId recognizes a retry (KIP-360), is lost at a restart, as in
Kafka. Every event returns a `TransactionResult`. KIP-98, KIP-360, KIP-588, KIP-890. Source: Kafka 4.4
`TransactionCoordinator`, `TransactionStateManager`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from barnabas.coord.coordinator import APPEND_ERRORS, Coordinator
from barnabas.coord.timers import Timers
from barnabas.coord.transactions import records
from barnabas.coord.transactions.config import TWO_PHASE_COMMIT_TIMEOUT_MS
from barnabas.coord.transactions.markers import Markers, TransactionResult
from barnabas.coord.transactions.responses import end_error, init_error, legacy_fence, same_error, verification
from barnabas.coord.transactions.states import IDLE, PREPARED, EndAction, TransactionState
from barnabas.coord.transactions.transaction import (
    EPOCH_BUMP_VERSION,
    NO_PRODUCER_EPOCH,
    NO_PRODUCER_ID,
    Transaction,
    TransactionTable,
    end_action_v1,
    end_action_v2,
    is_exhausted,
    new_transaction,
)
from barnabas.wire.errors import ErrorCode, KafkaError
from barnabas.wire.messages.produce import InitProducerIdResponse
from barnabas.wire.messages.transactions import EndTxnResponse

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Hashable, Iterable

    from barnabas.coord.machine import Moment, Ticket
    from barnabas.coord.transactions.config import TransactionConfig
    from barnabas.coord.transactions.transaction import TopicPartition
    from barnabas.wire.messages.produce import InitProducerIdRequest
    from barnabas.wire.messages.transactions import EndTxnRequest

EPOCH_BUMP_END_TXN_VERSION = 5
"""EndTxn from this version on bumps the epoch (KIP-890)."""

MOST_WRITTEN = 10
"""How many transactions are kept to be replayed without a parse of their records; the rest are parsed."""
RETRY_COMPLETE_MS = 1_000
"""Delay until the record that completes a transaction is written again after a failure."""

_ABORT_SWEEP = "abort"
_EXPIRATION_SWEEP = "expiration"


class TransactionCoordinator(Coordinator):
    """All transactional ids of one partition of `__transaction_state`."""

    append_errors: ClassVar = {**dict.fromkeys(ErrorCode, ErrorCode.UNKNOWN_SERVER_ERROR), **APPEND_ERRORS}
    result_class = TransactionResult

    def __init__(self, config: TransactionConfig, new_producer_id: Callable[[], int]) -> None:
        """`new_producer_id` returns a producer id that was never used, or raises KafkaError."""
        super().__init__()
        self._table = TransactionTable()
        self.transactions = self._table.transactions
        """Every transaction by transactional id."""
        self._config = config
        self._new_producer_id = new_producer_id
        self._previous_epochs: dict[str, tuple[int, int, int]] = {}
        """By transactional id: producer id, epoch, and the epoch that the producer had before these."""
        self._written: dict[bytes, Transaction] = {}
        """By value of a record that is not replayed yet: the transaction that a parse of the value would return."""
        self._is_loading = True

    # ---- load, replay, unload

    def replay(self, key: bytes, value: bytes | None, at: Moment) -> None:
        """Apply one record of the log."""
        transactional_id = records.read_key(key)
        if transactional_id is None:
            return
        new = None if value is None else self._written.pop(value, None) or records.read_transaction(value)
        # in the log that is loaded, compaction may have removed steps
        state = self._table.apply(transactional_id, new, is_checked=not self._is_loading)
        if new is None:
            self._previous_epochs.pop(transactional_id, None)
        if state is TransactionState.ONGOING:
            self._schedule_abort_sweep(at)
        elif state in IDLE:
            self._schedule_expiration_sweep(at)

    def loaded(self, at: Moment) -> TransactionResult:
        """The whole log has been replayed: request the markers of every transaction in a prepared state again (T4)."""
        self._is_loading = False
        result = TransactionResult()
        for transactional_id in self._table.unmarked:
            self._request_markers(transactional_id, self.transactions[transactional_id], at, result)
        return result

    def unload(self, _at: Moment) -> TransactionResult:
        """The partition has another coordinator now: drop all state. Nothing is written and no request waits."""
        self._table.clear()
        self._timers = Timers()
        return TransactionResult()

    # ---- InitProducerId

    def init_producer_id(
        self, request: InitProducerIdRequest, ticket: Ticket, api_version: int, at: Moment
    ) -> TransactionResult:
        """InitProducerId with a transactional id: assign a new epoch, which fences all older ones (T3)."""
        result = TransactionResult()
        try:
            response = self._init(request, at, result)
        except KafkaError as refused:
            response = init_error(legacy_fence(refused.code, api_version, since=4))
        result.reply(ticket, response, init_error)
        return result

    def _init(self, request: InitProducerIdRequest, at: Moment, result: TransactionResult) -> InitProducerIdResponse:
        timeout_ms = effective_timeout_ms(request, self._config)
        transactional_id = request.transactional_id or ""
        expected = expected_producer(request)
        transaction = self.transactions.get(transactional_id)
        if transaction is None:
            transaction = new_transaction(self._new_producer_id(), timeout_ms, at.now_ms)
        if expected is not None and not is_known_producer(transaction, *expected):
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

    def _next_epoch(self, transactional_id: str, current: Transaction, expected: int | None) -> tuple[int, int]:
        """The producer id and epoch to assign; `expected` is the epoch that the client has, if any (KIP-360)."""
        producer_id, epoch = current.producer_id, current.producer_epoch
        if current.is_exhausted and expected in (None, epoch):
            producer_id, new_epoch = self._new_producer_id(), 0
        elif expected is None or epoch in (NO_PRODUCER_EPOCH, expected):
            new_epoch = epoch + 1
        elif self._previous_epochs.get(transactional_id) == (producer_id, epoch, expected):
            return producer_id, epoch  # a retry: the response to the first request was lost
        else:
            raise KafkaError(ErrorCode.PRODUCER_FENCED)
        if expected is None:
            self._previous_epochs.pop(transactional_id, None)  # a client with an older epoch must not get this one
        else:
            self._previous_epochs[transactional_id] = (producer_id, new_epoch, epoch)
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

        Either all partitions are added or none.
        """
        result = TransactionResult()
        try:
            transaction = self._transaction_of(transactional_id, producer_id, producer_epoch)
            if not transaction.partitions.issuperset(partitions) or transaction.state is not TransactionState.ONGOING:
                version = min(client_version, self._config.transaction_version)
                self._write(transactional_id, transaction.with_partitions(partitions, version, at.now_ms), result)
            error = ErrorCode.NONE
        except KafkaError as refused:
            error = refused.code
        response = same_error(transactional_id, partitions, error)
        result.reply(ticket, response, lambda failure: same_error(transactional_id, partitions, failure))
        return result

    def verify_partitions(
        self,
        transactional_id: str,
        producer_id: int,
        producer_epoch: int,
        partitions: Collection[TopicPartition],
        ticket: Ticket,
    ) -> TransactionResult:
        """Check that partitions are in the producer's transaction; TRANSACTION_ABORTABLE for the others (T7)."""
        result = TransactionResult()
        try:
            transaction = self._transaction_of(transactional_id, producer_id, producer_epoch)
            response = verification(transactional_id, partitions, transaction.partitions)
        except KafkaError as refused:
            response = same_error(transactional_id, partitions, refused.code)
        result.reply(ticket, response, lambda failure: same_error(transactional_id, partitions, failure))
        return result

    def _transaction_of(self, transactional_id: str, producer_id: int, producer_epoch: int) -> Transaction:
        """The transaction that this producer may add partitions to; KafkaError when there is none."""
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

    # ---- EndTxn

    def end(self, request: EndTxnRequest, ticket: Ticket, api_version: int, at: Moment) -> TransactionResult:
        """EndTxn: write the outcome, reply, and request the markers (T4, T7, T9)."""
        result = TransactionResult()
        bumps = api_version >= EPOCH_BUMP_END_TXN_VERSION and self._config.transaction_version >= EPOCH_BUMP_VERSION
        try:
            if not request.transactional_id:
                raise KafkaError(ErrorCode.INVALID_REQUEST)
            response = self._end_v2(request, at, result) if bumps else self._end_v1(request, at, result)
        except KafkaError as refused:
            response = end_error(legacy_fence(refused.code, api_version, since=2))
        result.reply(ticket, response, end_error)
        return result

    def _end_v1(self, request: EndTxnRequest, at: Moment, result: TransactionResult) -> EndTxnResponse:
        transaction = self.transactions.get(request.transactional_id)
        action = end_action_v1(transaction, request)
        if action is EndAction.PREPARE and transaction is not None:
            prepared = transaction.prepared(
                commit=request.committed, client_version=0, next_producer_id=NO_PRODUCER_ID, now_ms=at.now_ms
            )
            self._prepare(request.transactional_id, prepared, at, result)
        return EndTxnResponse()

    def _end_v2(self, request: EndTxnRequest, at: Moment, result: TransactionResult) -> EndTxnResponse:
        """The response carries the producer id and epoch of the next transaction."""
        transactional_id = request.transactional_id
        transaction = self.transactions.get(transactional_id)
        if transaction is None:
            raise KafkaError(ErrorCode.INVALID_PRODUCER_ID_MAPPING)
        if end_action_v2(transaction, request) is EndAction.PREPARE:
            transaction = self._prepare_with_bump(transactional_id, transaction, request.committed, at, result)
            transaction = transaction.completed(at.now_ms)
        return EndTxnResponse(producer_id=transaction.producer_id, producer_epoch=transaction.producer_epoch)

    def _prepare_with_bump(
        self, transactional_id: str, transaction: Transaction, commit: bool, at: Moment, result: TransactionResult
    ) -> Transaction:
        """Write the outcome with the next epoch, or with a new producer id when the epochs are used up (KIP-890)."""
        next_id = self._new_producer_id() if transaction.is_exhausted else NO_PRODUCER_ID
        prepared = transaction.prepared(
            commit=commit, client_version=EPOCH_BUMP_VERSION, next_producer_id=next_id, now_ms=at.now_ms
        )
        then = prepared.completed(at.now_ms)
        self._previous_epochs[transactional_id] = (then.producer_id, then.producer_epoch, transaction.producer_epoch)
        self._prepare(transactional_id, prepared, at, result)
        return prepared

    def _fence(self, transactional_id: str, transaction: Transaction, at: Moment, result: TransactionResult) -> None:
        """Abort an open transaction under a new epoch, which fences its producer."""
        if self._config.transaction_version >= EPOCH_BUMP_VERSION:
            self._prepare_with_bump(transactional_id, transaction, False, at, result)
            return
        self._previous_epochs.pop(transactional_id, None)
        prepared = transaction.fenced().prepared(
            commit=False, client_version=0, next_producer_id=NO_PRODUCER_ID, now_ms=at.now_ms
        )
        self._prepare(transactional_id, prepared, at, result)

    def _prepare(self, transactional_id: str, prepared: Transaction, at: Moment, result: TransactionResult) -> None:
        self._write(transactional_id, prepared, result)
        self._request_markers(transactional_id, prepared, at, result)

    # ---- markers and completion

    def _request_markers(
        self, transactional_id: str, prepared: Transaction, at: Moment, result: TransactionResult
    ) -> None:
        """Request the markers of a transaction; one without partitions is completed in the same write."""
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
        """The marker is durable in these partitions, or they are deleted; the last one completes the transaction (T4).

        A late report, about a transaction that has ended, does nothing (T9).
        """
        result = TransactionResult()
        transactional_id = markers.transactional_id
        transaction = self.transactions.get(transactional_id)
        unmarked = self._table.unmarked.get(transactional_id)
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
        """The completing record could not be appended: try again later, since the markers are already written."""
        self._timers.set(("complete", transactional_id), at.now + RETRY_COMPLETE_MS / 1000)
        return TransactionResult()

    def _write(self, transactional_id: str, transaction: Transaction, result: TransactionResult) -> None:
        version = records.FLEXIBLE_VALUE_VERSION if self._config.transaction_version > 0 else 0
        record = records.transaction_record(transactional_id, transaction, version)
        result.records.append(record)
        if version and record.value is not None:  # version 0 does not hold all fields
            if len(self._written) >= MOST_WRITTEN:
                self._written.clear()
            self._written[record.value] = transaction

    # ---- time

    def _due(self, key: Hashable, at: Moment, result: TransactionResult) -> None:
        if key == _ABORT_SWEEP:
            self._abort_timed_out(at, result)
        elif key == _EXPIRATION_SWEEP:
            self._expire(at, result)
        else:
            assert isinstance(key, tuple)
            if not self._table.unmarked.get(key[1], True):
                self._complete(key[1], at, result)

    def _abort_timed_out(self, at: Moment, result: TransactionResult) -> None:
        """Abort transactions that are open for longer than their timeout (T10)."""
        for transactional_id in sorted(self._table.ongoing):
            transaction = self.transactions[transactional_id]
            if transaction.start_ms + transaction.timeout_ms < at.now_ms:
                try:
                    self._fence(transactional_id, transaction, at, result)
                except KafkaError:  # no producer id is available: the next sweep tries again
                    continue
        if self._table.ongoing:
            self._schedule_abort_sweep(at)

    def _expire(self, at: Moment, result: TransactionResult) -> None:
        """Remove transactional ids that were not used for `transactional.id.expiration.ms` (T13)."""
        for transactional_id, transaction in self.transactions.items():
            if transaction.state in IDLE and transaction.last_update_ms <= at.now_ms - self._config.id_expiration_ms:
                result.records.append(records.transaction_tombstone(transactional_id))
        if self.transactions:
            self._schedule_expiration_sweep(at)

    def _schedule_abort_sweep(self, at: Moment) -> None:
        self._timers.set_if_unset(_ABORT_SWEEP, at.now + self._config.abort_interval_ms / 1000)

    def _schedule_expiration_sweep(self, at: Moment) -> None:
        self._timers.set_if_unset(_EXPIRATION_SWEEP, at.now + self._config.expiration_interval_ms / 1000)


def effective_timeout_ms(request: InitProducerIdRequest, config: TransactionConfig) -> int:
    """The transaction timeout to apply; two-phase commit has none. KafkaError when the request is invalid.

    `keep_prepared_txn` is refused, as in Kafka 4.4.
    """
    if not request.transactional_id:
        raise KafkaError(ErrorCode.INVALID_REQUEST)
    if request.enable2_pc and not config.is_two_phase_commit_enabled:
        raise KafkaError(ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED)
    if request.keep_prepared_txn:
        raise KafkaError(ErrorCode.UNSUPPORTED_VERSION)
    if request.enable2_pc:
        return TWO_PHASE_COMMIT_TIMEOUT_MS
    if not 0 < request.transaction_timeout_ms <= config.max_timeout_ms:
        raise KafkaError(ErrorCode.INVALID_TRANSACTION_TIMEOUT)
    return request.transaction_timeout_ms


def expected_producer(request: InitProducerIdRequest) -> tuple[int, int] | None:
    """The producer id and epoch that the client has, or None; KafkaError(INVALID_REQUEST) when only one is set."""
    if request.producer_id == NO_PRODUCER_ID and request.producer_epoch == NO_PRODUCER_EPOCH:
        return None
    if request.producer_id == NO_PRODUCER_ID or request.producer_epoch == NO_PRODUCER_EPOCH:
        raise KafkaError(ErrorCode.INVALID_REQUEST)
    return request.producer_id, request.producer_epoch


def is_known_producer(transaction: Transaction, producer_id: int, producer_epoch: int) -> bool:
    """Whether the producer id is the current one, or the previous one with its epochs used up.

    The epoch itself is compared later. Any producer id is accepted for a transactional id without an epoch.
    """
    return (
        transaction.producer_epoch == NO_PRODUCER_EPOCH
        or producer_id == transaction.producer_id
        or (producer_id == transaction.previous_producer_id and is_exhausted(producer_epoch))
    )
