"""InitProducerId with a transactional id: epoch bumps, fencing, aborts, new producer ids (rule T3)."""

from __future__ import annotations

import pytest

from barnabas.coord.transactions import records
from barnabas.coord.transactions.states import TransactionState
from barnabas.coord.transactions.transaction import MAX_EPOCH, Transaction
from barnabas.wire.errors import ErrorCode, KafkaError
from tests.coord.coordinator_driver import START_MS
from tests.coord.transactions.transaction_driver import FIRST_ID, T0, T1, Driver
from tests.support.cases import for_each


def test_each_new_producer_gets_the_next_epoch(driver):
    assert [driver.producer() for _ in range(3)] == [(FIRST_ID, 0), (FIRST_ID, 1), (FIRST_ID, 2)]
    assert driver.producer("y") == (FIRST_ID + 1, 0)
    driver.restart()
    assert driver.producer() == (FIRST_ID, 3)


def test_every_request_of_a_fenced_producer_is_refused(driver):
    old = driver.producer()
    driver.producer()
    assert driver.add(old) == ErrorCode.PRODUCER_FENCED
    assert driver.end(old, True) == ErrorCode.PRODUCER_FENCED
    assert driver.init(expected=old).error_code == ErrorCode.PRODUCER_FENCED
    assert driver.init(expected=old, version=3).error_code == ErrorCode.INVALID_PRODUCER_EPOCH
    assert driver.verify(old, T0) == {T0: ErrorCode.PRODUCER_FENCED}


@pytest.mark.parametrize("level", [0, 1, 2])
def test_an_open_transaction_is_aborted_first(level):
    driver = Driver(transaction_version=level)
    producer = driver.producer()
    driver.add(producer, T0, T1)
    assert driver.init().error_code == ErrorCode.CONCURRENT_TRANSACTIONS
    assert driver.state() is TransactionState.PREPARE_ABORT
    (markers,) = driver.markers
    assert (markers.is_commit, markers.producer_epoch, markers.partitions) == (False, 1, {T0, T1})
    assert markers.transaction_version == (2 if level == 2 else 0)
    assert driver.init().error_code == ErrorCode.CONCURRENT_TRANSACTIONS, "until the markers are written"
    assert driver.add(producer) == ErrorCode.PRODUCER_FENCED
    driver.write_markers()
    assert driver.state() is TransactionState.COMPLETE_ABORT
    assert driver.producer() == (FIRST_ID, 2)


def test_a_retried_epoch_bump_gets_the_same_epoch(driver):
    """KIP-360: the response to the first request was lost."""
    producer = driver.producer()
    bumped = driver.producer(expected=producer)
    assert bumped == (FIRST_ID, 1)
    assert driver.producer(expected=producer) == bumped
    assert driver.producer(expected=bumped) == (FIRST_ID, 2)
    assert driver.init(expected=producer).error_code == ErrorCode.PRODUCER_FENCED


def test_a_retry_does_not_get_the_epoch_of_another_producer(driver):
    producer = driver.producer()
    driver.append_error = ErrorCode.NOT_ENOUGH_REPLICAS
    assert driver.init(expected=producer).error_code == ErrorCode.COORDINATOR_NOT_AVAILABLE
    driver.append_error = None
    assert driver.producer() == (FIRST_ID, 1)
    assert driver.init(expected=producer).error_code == ErrorCode.PRODUCER_FENCED


def test_the_epoch_before_the_last_end_is_a_retry(driver):
    """KIP-890 with KIP-360: the EndTxn response with the new epoch was lost, and the producer initializes again."""
    producer = driver.producer()
    following = driver.finish(producer, True)
    assert following == (FIRST_ID, 1)
    assert driver.producer(expected=producer) == following


def exhausted(epoch, state=TransactionState.EMPTY, **fields):
    driver = Driver()
    partitions = frozenset({T0}) if state is TransactionState.ONGOING else frozenset()
    transaction = Transaction(7, epoch, 60_000, state, START_MS, partitions, START_MS, **fields)
    driver.log.append(records.transaction_record("x", transaction, 1))
    driver.restart()
    return driver


def test_the_producer_id_changes_when_its_epochs_are_used_up():
    driver = exhausted(MAX_EPOCH - 2)
    assert driver.producer() == (7, MAX_EPOCH - 1)
    assert driver.producer() == (FIRST_ID, 0)
    assert driver.producer() == (FIRST_ID, 1)


def test_a_bump_of_the_last_epoch_and_its_retry_get_a_new_producer_id():
    driver = exhausted(MAX_EPOCH - 1)
    last = (7, MAX_EPOCH - 1)
    assert driver.producer(expected=last) == (FIRST_ID, 0)
    assert driver.producer(expected=last) == (FIRST_ID, 0)
    assert driver.init(expected=(7, 5)).error_code == ErrorCode.PRODUCER_FENCED


@pytest.mark.parametrize("commit", [True, False])
def test_an_end_with_the_last_epoch_returns_a_new_producer_id(commit):
    """The client gets 0 after 32766; the markers have 32767, which no client ever has."""
    driver = exhausted(MAX_EPOCH - 1, TransactionState.ONGOING)
    last = (7, MAX_EPOCH - 1)
    response = driver.end_answer(last, commit)
    assert (response.error_code, response.producer_id, response.producer_epoch) == (0, FIRST_ID, 0)
    (markers,) = driver.markers
    assert (markers.producer_id, markers.producer_epoch) == (7, MAX_EPOCH)
    assert driver.end(last, commit) == ErrorCode.CONCURRENT_TRANSACTIONS
    driver.restart()
    driver.write_markers()
    assert driver.transaction()[:2] == (FIRST_ID, 0)
    repeated = driver.end_answer(last, commit)
    assert (repeated.error_code, repeated.producer_id, repeated.producer_epoch) == (0, FIRST_ID, 0)
    assert driver.add((FIRST_ID, 0)) == ErrorCode.NONE


def test_fencing_with_the_last_epoch_changes_the_producer_id():
    driver = exhausted(MAX_EPOCH - 1, TransactionState.ONGOING)
    assert driver.init().error_code == ErrorCode.CONCURRENT_TRANSACTIONS
    driver.write_markers()
    assert driver.producer() == (FIRST_ID, 1)


@for_each(
    ("timeout_ms", "error"),
    [
        (0, ErrorCode.INVALID_TRANSACTION_TIMEOUT),
        (-1, ErrorCode.INVALID_TRANSACTION_TIMEOUT),
        (1, ErrorCode.NONE),
        (5_000, ErrorCode.NONE),
        (5_001, ErrorCode.INVALID_TRANSACTION_TIMEOUT),
    ],
)
def test_the_transaction_timeout_is_validated(timeout_ms, error):
    """T10: transaction.max.timeout.ms."""
    driver = Driver(max_timeout_ms=5_000)
    assert driver.init(timeout_ms=timeout_ms).error_code == error
    assert bool(driver.log) == (error == ErrorCode.NONE)


def test_invalid_requests_are_refused(driver):
    assert driver.init("").error_code == ErrorCode.INVALID_REQUEST
    assert driver.init(expected=(5, -1)).error_code == ErrorCode.INVALID_REQUEST
    assert driver.init(expected=(-1, 5)).error_code == ErrorCode.INVALID_REQUEST


def test_two_phase_commit_must_be_enabled():
    refused = Driver().init(enable2_pc=True, version=6)
    assert refused.error_code == ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
    driver = Driver(is_two_phase_commit_enabled=True)
    assert driver.init(keep_prepared_txn=True, version=6).error_code == ErrorCode.UNSUPPORTED_VERSION
    producer = driver.producer(enable2_pc=True, timeout_ms=0, version=6)
    driver.add(producer)
    driver.advance(10 * 24 * 3600)
    assert driver.state() is TransactionState.ONGOING, "such a transaction never times out"


def test_without_a_producer_id_from_the_controller_the_request_fails(driver):
    def none_left():
        raise KafkaError(ErrorCode.COORDINATOR_NOT_AVAILABLE)

    driver.coordinator._new_producer_id = none_left
    assert driver.init().error_code == ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert not driver.log
