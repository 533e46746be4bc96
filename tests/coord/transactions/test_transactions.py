"""T4, T7-T10, T13: adding partitions, the outcome, markers, late requests, timeouts and expiration."""

from __future__ import annotations

import pytest

from barnabas.coord.transactions import records
from barnabas.coord.transactions.listing import describe_transaction, list_transactions
from barnabas.coord.transactions.states import TransactionState
from barnabas.wire.errors import ErrorCode
from barnabas.wire.messages.records.coordinator_records import TransactionLogValue
from tests.coord.coordinator_driver import START_MS
from tests.coord.transactions.transaction_driver import FIRST_ID, T0, T1, Driver
from tests.support.cases import for_each


def test_partitions_are_added_to_the_transaction(driver):
    producer = driver.producer()
    driver.advance(5)
    assert driver.add(producer, T0) == ErrorCode.NONE
    driver.advance(5)
    assert driver.add(producer, T1, ("__consumer_offsets", 3)) == ErrorCode.NONE
    transaction = driver.transaction()
    assert transaction.partitions == {T0, T1, ("__consumer_offsets", 3)}
    assert (transaction.start_ms, transaction.last_update_ms) == (START_MS + 5_000, START_MS + 10_000)
    written = len(driver.log)
    assert driver.add(producer, T1) == ErrorCode.NONE
    assert len(driver.log) == written, "no record without a change"


def test_only_the_current_producer_may_add_partitions(driver):
    producer_id, epoch = driver.producer()
    assert driver.add((producer_id + 1, epoch)) == ErrorCode.INVALID_PRODUCER_ID_MAPPING
    assert driver.add((producer_id, epoch + 1)) == ErrorCode.PRODUCER_FENCED
    assert driver.add((producer_id, epoch), transactional_id="unheard") == ErrorCode.INVALID_PRODUCER_ID_MAPPING
    assert driver.add((producer_id, epoch), transactional_id="") == ErrorCode.INVALID_REQUEST


def test_verification_checks_that_partitions_are_in_the_transaction(driver):
    """T7: a write outside of the transaction would never get a marker."""
    producer = driver.producer()
    driver.add(producer, T0)
    written = len(driver.log)
    assert driver.verify(producer, T0, T1) == {T0: ErrorCode.NONE, T1: ErrorCode.TRANSACTION_ABORTABLE}
    driver.end(producer, True, version=4)
    assert driver.verify(producer, T0) == {T0: ErrorCode.CONCURRENT_TRANSACTIONS}
    driver.write_markers()
    assert driver.verify(producer, T0) == {T0: ErrorCode.TRANSACTION_ABORTABLE}
    assert len(driver.log) == written + 2


@pytest.mark.parametrize("commit", [True, False])
@pytest.mark.parametrize("version", [4, 5])
def test_markers_follow_the_outcome_and_complete_it(driver, commit, version):
    producer = driver.producer()
    driver.add(producer, T0, T1)
    response = driver.end_answer(producer, commit, version=version)
    bumped = version == 5
    assert (response.producer_id, response.producer_epoch) == ((FIRST_ID, 1) if bumped else (-1, -1))
    assert driver.state() is (TransactionState.PREPARE_COMMIT if commit else TransactionState.PREPARE_ABORT)
    (markers,) = driver.markers
    assert (markers.is_commit, markers.producer_id, markers.producer_epoch) == (commit, FIRST_ID, int(bumped))
    assert markers.partitions == {T0, T1}
    driver.write_markers(T1)
    assert driver.state() in (TransactionState.PREPARE_COMMIT, TransactionState.PREPARE_ABORT)
    following = (FIRST_ID, int(bumped))
    assert driver.add(following) == ErrorCode.CONCURRENT_TRANSACTIONS, "the next one waits for every marker"
    driver.write_markers(T0)
    assert driver.state() is (TransactionState.COMPLETE_COMMIT if commit else TransactionState.COMPLETE_ABORT)
    assert driver.transaction().partitions == frozenset()
    assert driver.add(following) == ErrorCode.NONE


def test_the_outcome_is_in_the_log_before_markers_are_requested(driver):
    """T4: without the prepare record there are no markers, and the transaction stays open."""
    producer = driver.producer()
    driver.add(producer)
    driver.append_error = ErrorCode.KAFKA_STORAGE_ERROR
    assert driver.end(producer, True) == ErrorCode.NOT_COORDINATOR
    assert not driver.markers
    assert driver.state() is TransactionState.ONGOING
    driver.append_error = None
    assert driver.end(producer, True) == ErrorCode.NONE
    assert len(driver.markers) == 1


def test_completion_is_retried_after_an_append_error(driver):
    producer = driver.producer()
    driver.add(producer)
    driver.end(producer, True)
    driver.append_error = ErrorCode.NOT_ENOUGH_REPLICAS
    driver.write_markers()
    driver.advance(5)
    assert driver.state() is TransactionState.PREPARE_COMMIT
    driver.append_error = None
    driver.advance(5)
    assert driver.state() is TransactionState.COMPLETE_COMMIT


@for_each("commit", [True, False])
@for_each("marked", [(), (T0,), (T0, T1)])
def test_a_restart_requests_the_markers_again(driver, commit, marked):
    """T4: the outcome that was written is completed, wherever the broker has crashed."""
    producer = driver.producer()
    driver.add(producer, T0, T1)
    response = driver.end_answer(producer, commit)
    before = driver.markers[0]
    driver.append_error = ErrorCode.KAFKA_STORAGE_ERROR  # the completion is not written
    if marked:
        driver.write_markers(*marked)
    driver.append_error = None
    driver.restart()
    assert driver.markers == [before]
    assert driver.end(producer, commit) == ErrorCode.CONCURRENT_TRANSACTIONS
    driver.write_markers()
    assert driver.state() is (TransactionState.COMPLETE_COMMIT if commit else TransactionState.COMPLETE_ABORT)
    assert driver.end_answer(producer, commit) == response, "a retry gets the same response"
    driver.restart()
    assert not driver.markers


def test_an_abort_without_partitions_bumps_the_epoch_and_needs_no_markers(driver):
    """T7: the client of KIP-890 may not know whether any of its writes has arrived."""
    producer = driver.producer()
    response = driver.end_answer(producer, False)
    assert (response.error_code, response.producer_epoch) == (0, 1)
    assert driver.state() is TransactionState.COMPLETE_ABORT
    assert not driver.markers
    assert driver.end_answer(producer, False) == response
    driver.restart()
    assert driver.add((FIRST_ID, 1)) == ErrorCode.NONE


def test_a_late_end_does_not_end_the_next_transaction(driver):
    """T9: with KIP-890 the delayed EndTxn of one transaction has another epoch than the EndTxn of the next."""
    first = driver.producer()
    driver.add(first)
    second = driver.finish(first, True)
    driver.add(second)
    for commit in (True, False):
        assert driver.end(first, commit) == ErrorCode.PRODUCER_FENCED
    assert driver.state() is TransactionState.ONGOING


def test_before_kip_890_a_late_end_ends_the_next_transaction(driver):
    """T9, also in Kafka (KAFKA-17754): the reason for the epoch bump."""
    producer = driver.producer()
    driver.finish(producer, True, version=4)
    driver.add(producer)
    assert driver.end(producer, True, version=4) == ErrorCode.NONE
    assert driver.state() is TransactionState.PREPARE_COMMIT


@pytest.mark.parametrize("version", [4, 5])
def test_late_marker_reports_change_nothing(driver, version):
    """T8, T9: reports about a complete transaction, also while the next one is open or prepared."""
    first = driver.producer()
    driver.add(first, T0)
    driver.end(first, True, version=version)
    late = driver.markers[0]
    driver.write_markers()
    driver.write_markers(of=late)
    assert driver.state() is TransactionState.COMPLETE_COMMIT
    second = driver.transaction()[:2]
    driver.add(second, T0)
    driver.write_markers(of=late)
    assert driver.state() is TransactionState.ONGOING
    if version == 5:
        driver.end(second, False)
        driver.write_markers(of=late)
        assert driver.state() is TransactionState.PREPARE_ABORT


def test_a_transaction_is_aborted_after_its_timeout():
    """T10: by a sweep, under a new epoch."""
    driver = Driver(abort_interval_ms=10_000)
    producer = driver.producer(timeout_ms=15_000)
    driver.advance(100)
    driver.add(producer, T0)
    driver.advance(19.9)
    assert driver.state() is TransactionState.ONGOING
    driver.advance(0.2)
    assert driver.state() is TransactionState.PREPARE_ABORT
    assert driver.add(producer) == ErrorCode.PRODUCER_FENCED
    assert driver.end(producer, True) == ErrorCode.CONCURRENT_TRANSACTIONS, "the abort is not replaced"
    driver.write_markers()
    assert driver.end(producer, True) == ErrorCode.INVALID_TXN_STATE
    assert driver.state() is TransactionState.COMPLETE_ABORT


def test_the_timeout_continues_across_a_restart():
    driver = Driver(abort_interval_ms=10_000)
    driver.add(driver.producer(timeout_ms=15_000))
    driver.advance(14)
    driver.restart()
    driver.advance(10.1)
    assert driver.state() is TransactionState.PREPARE_ABORT


@pytest.mark.parametrize("end", [None, True, False])
def test_unused_transactional_ids_expire(end):
    """T13."""
    driver = Driver(id_expiration_ms=60_000, expiration_interval_ms=10_000)
    producer = driver.producer()
    if end is not None:
        driver.finish(producer, end)
    driver.advance(55)
    assert driver.transaction() is not None
    driver.advance(15)
    assert driver.transaction() is None
    driver.restart()
    assert driver.transaction() is None
    driver.advance(60)
    assert driver.coordinator.next_deadline() is None, "there are no deadlines left"
    assert driver.producer() == (FIRST_ID + 1, 0)


def test_a_transactional_id_with_an_open_transaction_does_not_expire():
    driver = Driver(id_expiration_ms=60_000, expiration_interval_ms=10_000, abort_interval_ms=10_000_000)
    driver.add(driver.producer(timeout_ms=900_000))
    driver.add(driver.producer("y", timeout_ms=900_000), transactional_id="y")
    driver.end(driver.transaction("y")[:2], True, transactional_id="y")
    driver.advance(1000)
    assert driver.state() is TransactionState.ONGOING
    assert driver.state("y") is TransactionState.PREPARE_COMMIT


def test_records_round_trip(driver):
    driver.add(driver.producer(), T0, T1)
    key, value = driver.log[-1]
    assert records.read_key(key) == "x"
    assert records.read_transaction(value) == driver.transaction()
    assert value[:2] == b"\x00\x01"
    plain = records.transaction_record("x", driver.transaction(), 0)
    assert plain.value[:2] == b"\x00\x00"
    assert records.read_transaction(plain.value) == driver.transaction()._replace(
        previous_producer_id=-1, client_version=0
    )
    empty = TransactionLogValue.decode(driver.log[0][1][2:], 1)
    assert empty.transaction_partitions is None, "as Kafka writes an Empty one"


def test_describe_shows_the_transaction(driver):
    producer = driver.producer()
    driver.add(producer, T1, ("s", 4), T0)
    shown = describe_transaction(driver.transaction(), "x")
    assert (shown.transactional_id, shown.transaction_state, shown.transaction_timeout_ms) == ("x", "Ongoing", 60_000)
    assert (shown.producer_id, shown.producer_epoch, shown.transaction_start_time_ms) == (*producer, START_MS)
    assert [(topic.topic, topic.partitions) for topic in shown.topics] == [("s", [4]), ("t", [0, 1])]
    assert describe_transaction(None, "z").error_code == ErrorCode.TRANSACTIONAL_ID_NOT_FOUND
    assert describe_transaction(None, "").error_code == ErrorCode.INVALID_REQUEST


def test_list_filters_by_state_producer_duration_and_name(driver):
    first = driver.producer("a")
    second = driver.producer("b")
    driver.add(first, transactional_id="a")
    driver.advance(5)
    driver.add(second, transactional_id="b")
    driver.producer("c")
    driver.advance(1)

    def listed(states=(), ids=(), duration_ms=-1, matches=lambda _: True):
        listing = list_transactions(
            driver.coordinator.transactions, states, ids, duration_ms, matches, driver.at.now_ms
        )
        return "".join(transaction.transactional_id for transaction in listing)

    assert listed() == "abc"
    assert listed(states={"Ongoing"}) == "ab"
    assert listed(states={"Empty", "CompleteCommit"}) == "c"
    assert listed(ids={second[0]}) == "b"
    assert listed(states={"Ongoing"}, duration_ms=5_999) == "a"
    assert listed(states={"Ongoing"}, duration_ms=6_000) == ""
    assert listed(duration_ms=0, matches="b".__eq__) == "b"
