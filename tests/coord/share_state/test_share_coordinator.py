"""The share coordinator: cases of Kafka's ShareCoordinatorShardTest, and replay of the log (rule G5)."""

from __future__ import annotations

import random

import pytest

from barnabas.coord.share_state import records
from barnabas.coord.share_state.key import SharePartitionKey, parse_key
from barnabas.wire.errors import ErrorCode as E
from tests.coord.share_state.share_state_driver import TOPIC, Driver, facts, key
from tests.support.cases import for_each
from tests.support.volume import for_each_seed, seeds

ACKNOWLEDGED, AVAILABLE, ARCHIVED = 2, 0, 4


@pytest.fixture
def driver():
    return Driver()


def batches(response):
    return [(b.first_offset, b.last_offset, b.delivery_state, b.delivery_count) for b in response.state_batches]


def last_record(driver):
    record_key, value = driver.log[driver.end - 1]
    kind, _ = records.read_key(record_key)
    return kind, records.read_snapshot(value) if kind == records.SHARE_SNAPSHOT else records.read_update(value)


def test_the_key_of_a_share_partition():
    """`group:topicId:partition`; the group may contain colons."""
    share_key = SharePartitionKey("a:b", TOPIC, 3)
    assert str(share_key) == "a:b:AAAAAAAAAAAAAAAAAAAABw:3"
    assert parse_key(str(share_key)) == share_key


def test_state_starts_with_a_snapshot_followed_by_updates(driver):
    assert driver.initialize(start_offset=100).error_code == 0
    kind, snapshot = last_record(driver)
    assert kind == records.SHARE_SNAPSHOT
    assert (snapshot.snapshot_epoch, snapshot.leader_epoch, snapshot.delivery_complete_count) == (0, 0, 0)
    assert snapshot.create_timestamp == snapshot.write_timestamp == driver.at.now_ms
    assert driver.write((100, 109, ACKNOWLEDGED, 1), start_offset=100, complete=10).error_code == 0
    kind, update = last_record(driver)
    assert kind == records.SHARE_UPDATE
    assert (update.snapshot_epoch, update.start_offset, update.delivery_complete_count) == (0, 100, 10)
    assert driver.read().start_offset == 100
    assert batches(driver.read()) == [(100, 109, ACKNOWLEDGED, 1)]


def test_the_complete_count_is_unknown_without_a_start_offset(driver):
    driver.initialize(start_offset=-1)
    assert (driver.summary().start_offset, driver.summary().delivery_complete_count) == (-1, -1)


def test_a_snapshot_is_written_after_a_number_of_updates():
    driver = Driver(updates_per_snapshot=2)
    driver.initialize()
    kinds = []
    for offset in range(7):
        driver.write((offset, offset, ACKNOWLEDGED, 1))
        kinds.append(last_record(driver)[0])
    update, snapshot = records.SHARE_UPDATE, records.SHARE_SNAPSHOT
    assert kinds == [update, update, snapshot, update, update, snapshot, update]
    assert driver.state().snapshot_epoch == 2
    assert batches(driver.read()) == [(0, 6, ACKNOWLEDGED, 1)]


def test_every_write_is_a_snapshot_with_a_limit_of_zero_updates():
    """A batch that is not in a write is not lost when the start moves (testNonSequentialBatchUpdates)."""
    driver = Driver(updates_per_snapshot=0)
    driver.initialize(start_offset=100)
    driver.write((100, 109, 1, 1), (110, 119, 1, 2), (120, 129, 1, 0), start_offset=100)
    driver.write((100, 109, ACKNOWLEDGED, 1), start_offset=-1)
    driver.write((120, 129, ACKNOWLEDGED, 1), start_offset=110)
    kind, snapshot = last_record(driver)
    assert (kind, snapshot.snapshot_epoch, snapshot.start_offset) == (records.SHARE_SNAPSHOT, 3, 110)
    assert batches(driver.read()) == [(110, 119, 1, 2), (120, 129, ACKNOWLEDGED, 1)]


def test_the_start_offset_never_decreases(driver):
    driver.initialize(start_offset=0)
    driver.write(start_offset=10, complete=3)
    driver.write(start_offset=5, complete=9)
    assert (driver.summary().start_offset, driver.summary().delivery_complete_count) == (10, 3)
    driver.write(start_offset=10, complete=2)
    assert driver.summary().delivery_complete_count == 3, "nor does the count at one start"
    driver.write(start_offset=11, complete=2)
    assert driver.summary().delivery_complete_count == 2


@for_each(
    ("request_", "code", "message"),
    [
        (lambda d: d.write((0, 1, 2, 1)), E.INVALID_REQUEST, "Write operation on uninitialized share partition"),
        (lambda d: d.read(), E.INVALID_REQUEST, "Read operation on uninitialized share partition"),
        (lambda d: d.write(leader_epoch=-1), E.INVALID_REQUEST, "The leader epoch cannot be a negative number."),
        (lambda d: d.write(state_epoch=-1), E.INVALID_REQUEST, "The state epoch cannot be a negative number."),
        (lambda d: d.read(leader_epoch=-1), E.INVALID_REQUEST, "The leader epoch cannot be a negative number."),
        (lambda d: d.initialize(state_epoch=-1), E.INVALID_REQUEST, "The state epoch cannot be a negative number."),
        (lambda d: d.initialize(key(-1)), E.INVALID_REQUEST, "The partition id cannot be a negative number."),
        (lambda d: d.write(share_key=key(-1)), E.INVALID_REQUEST, "The partition id cannot be a negative number."),
        (lambda d: d.read(key(-1)), E.INVALID_REQUEST, "The partition id cannot be a negative number."),
        (lambda d: d.summary(key(-1)), E.INVALID_REQUEST, "The partition id cannot be a negative number."),
        (lambda d: d.delete(key(-1)), E.INVALID_REQUEST, "The partition id cannot be a negative number."),
        (lambda d: d.initialize(key(4)), E.UNKNOWN_TOPIC_OR_PARTITION, None),
        (lambda d: d.summary(key(4)), E.UNKNOWN_TOPIC_OR_PARTITION, None),
        (lambda d: d.delete(key(topic=bytes(16))), E.UNKNOWN_TOPIC_OR_PARTITION, None),
        (lambda d: d.initialize() and d.write((5, 4, 2, 1)), E.INVALID_REQUEST, "A state batch cannot end before"),
    ],
)
def test_invalid_requests_are_refused(driver, request_, code, message):
    response = request_(driver)
    assert response.error_code == code
    assert (response.error_message or "").startswith(message or "")
    assert all(records.read_key(record_key)[0] == records.SHARE_SNAPSHOT for record_key, _ in driver.log.values())


def test_a_read_with_a_newer_leader_epoch_fences_older_ones(driver):
    driver.initialize()
    assert driver.read(leader_epoch=2).error_code == 0
    kind, update = last_record(driver)
    assert (kind, update.leader_epoch, update.start_offset) == (records.SHARE_UPDATE, 2, 0)
    written = driver.end
    assert driver.read(leader_epoch=2).error_code == 0
    assert driver.end == written, "a read of the same leader writes nothing"
    assert driver.read(leader_epoch=1).error_code == E.FENCED_LEADER_EPOCH
    assert driver.write(leader_epoch=1).error_code == E.FENCED_LEADER_EPOCH
    assert driver.write(leader_epoch=3).error_code == 0
    assert driver.write(leader_epoch=2).error_code == 0, "only a read fences, a write does not"


def test_a_newer_state_epoch_fences_writes_with_older_ones(driver):
    driver.initialize(state_epoch=1, start_offset=0)
    driver.write((0, 9, ACKNOWLEDGED, 1), state_epoch=1, complete=10)
    assert driver.initialize(state_epoch=2, start_offset=5).error_code == 0
    assert (driver.state().start_offset, driver.state().batches, driver.state().snapshot_epoch) == (5, [], 1)
    assert driver.write((0, 9, ACKNOWLEDGED, 1), state_epoch=1).error_code == E.FENCED_STATE_EPOCH
    assert driver.initialize(state_epoch=1).error_code == E.FENCED_STATE_EPOCH
    assert driver.initialize(state_epoch=2, start_offset=7).error_code == 0
    assert driver.read().state_epoch == 2


def test_a_leader_stays_fenced_when_the_state_is_initialized_again(driver):
    driver.initialize()
    driver.read(leader_epoch=5)
    driver.initialize(state_epoch=1)
    assert driver.write(state_epoch=1, leader_epoch=4).error_code == E.FENCED_LEADER_EPOCH
    driver.restart()
    assert driver.write(state_epoch=1, leader_epoch=4).error_code == E.FENCED_LEADER_EPOCH


def test_a_summary_fences_nothing_and_works_without_state(driver):
    unknown = driver.summary()
    assert (unknown.error_code, unknown.start_offset, unknown.state_epoch, unknown.leader_epoch) == (0, -1, 0, 0)
    assert unknown.delivery_complete_count == -1
    driver.initialize(state_epoch=3, start_offset=4)
    driver.read(leader_epoch=6)
    known = driver.summary()
    assert (known.start_offset, known.state_epoch, known.leader_epoch, known.delivery_complete_count) == (4, 3, 6, 0)


def test_deleted_state_includes_its_epochs(driver):
    driver.initialize(state_epoch=5)
    driver.read(leader_epoch=5)
    assert driver.delete().error_code == 0
    assert driver.coordinator.states == {}
    written = driver.end
    assert driver.delete().error_code == 0
    assert driver.end == written, "there is nothing to delete"
    assert driver.initialize(state_epoch=0).error_code == 0, "fences went with it"
    driver.restart()
    assert driver.state().state_epoch == 0


def test_state_of_deleted_topics_is_removed(driver):
    driver.initialize()
    driver.topics.pop(TOPIC)
    driver.handle(driver.coordinator.topics_deleted({TOPIC}))
    assert driver.coordinator.states == {}


def test_loading_removes_state_of_deleted_topics(driver):
    driver.initialize()
    driver.topics.pop(TOPIC)
    driver.restart()
    assert driver.coordinator.states == {}
    assert driver.log[driver.end - 1][1] is None


def test_an_append_error_is_returned_and_changes_nothing(driver):
    driver.initialize()
    driver.append_error = E.NOT_ENOUGH_REPLICAS
    assert driver.write((0, 0, 2, 1)).error_code == E.COORDINATOR_NOT_AVAILABLE
    assert driver.read(leader_epoch=9).error_code == E.COORDINATOR_NOT_AVAILABLE
    driver.append_error = None
    assert driver.state().batches == []
    assert driver.write(leader_epoch=1).error_code == 0, "a leader epoch that was not written fences nothing"


def test_partitions_that_lie_still_get_a_snapshot_once(driver):
    """Kafka's cold snapshots: without them one idle partition would keep the whole log."""
    driver.initialize(key(0))
    driver.write((0, 4, ACKNOWLEDGED, 1), share_key=key(0))
    created_ms = driver.at.now_ms
    driver.advance(301)
    kind, snapshot = last_record(driver)
    assert kind == records.SHARE_SNAPSHOT
    assert snapshot.create_timestamp == created_ms < snapshot.write_timestamp
    assert [b.last_offset for b in snapshot.state_batches] == [4]
    written = driver.end
    driver.advance(3000)
    assert driver.end == written, "without changes nothing is written"
    driver.initialize(key(1))
    driver.advance(700)
    assert driver.end > written + 1


def test_the_log_is_pruned_up_to_the_first_needed_offset():
    driver = Driver(updates_per_snapshot=3)
    driver.initialize(key(0))
    driver.initialize(key(1))
    for offset in range(20):
        driver.write((offset, offset, ACKNOWLEDGED, 1), share_key=key(0))
    assert min(driver.log) == 0
    driver.advance(1000)
    assert min(driver.log) > 2
    driver.delete(key(0))
    driver.delete(key(1))
    driver.advance(1000)
    assert driver.log == {}, "nothing is left of a deleted group"


def test_a_busy_log_is_pruned_before_the_interval():
    """Since a start reads it, an idle partition must not keep the log long between two prunings."""
    driver = Driver(updates_per_snapshot=10, records_per_prune=50)
    driver.initialize(key(0))
    driver.initialize(key(1))
    for offset in range(500):
        driver.write((offset, offset, ACKNOWLEDGED, 1), share_key=key(0), start_offset=offset)
        driver.advance(0.001)
        assert len(driver.log) <= 3 * 50
    assert {share_key.partition for share_key in driver.loaded_again().states} == {0, 1}


def test_a_replay_of_the_log_equals_the_coordinator():
    """At any moment, also after the log was pruned."""
    for_each_seed(seeds("BARNABAS_EXAMPLES", 6), replayed_at_any_moment, "BARNABAS_EXAMPLES")


def replayed_at_any_moment(seed):
    dice = random.Random(seed)
    driver = Driver(updates_per_snapshot=dice.choice([0, 1, 3, 7]), records_per_prune=dice.choice([20, 1000]))
    keys = [key(partition, group) for partition in (0, 1) for group in ("g", "h")]
    for _ in range(150):
        _random_event(driver, dice, keys)
        loaded = driver.loaded_again()
        was_pruned = driver.log and min(driver.log) > 0
        assert {share_key: facts(state, with_fence=not was_pruned) for share_key, state in loaded.states.items()} == {
            share_key: facts(state, with_fence=not was_pruned) for share_key, state in driver.coordinator.states.items()
        }
        if dice.random() < 0.05:
            driver.restart()


def _random_event(driver, dice, keys):
    share_key = dice.choice(keys)
    state = driver.state(share_key)
    now = dice.random()
    if state is None or now < 0.05:
        epoch = 0 if state is None else state.state_epoch
        driver.initialize(share_key, epoch + dice.choice([-1, 0, 1]) if epoch else 0, dice.choice([-1, 0, 5]))
    elif now < 0.75:
        first = max(state.start_offset, 0) + dice.randrange(10)
        batch = (
            first,
            first + dice.randrange(5),
            dice.choice([AVAILABLE, ACKNOWLEDGED, ARCHIVED]),
            dice.randrange(1, 4),
        )
        driver.write(
            batch,
            share_key=share_key,
            state_epoch=state.state_epoch - dice.choice([0, 0, 0, min(1, state.state_epoch)]),
            leader_epoch=state.leader_epoch_fence,
            start_offset=dice.choice([-1, state.start_offset, max(state.start_offset, 0) + dice.randrange(4)]),
            complete=dice.choice([-1, 0, 3]),
        )
    elif now < 0.85:
        driver.read(share_key, state.leader_epoch_fence + dice.choice([0, 0, 1]))
    elif now < 0.9:
        driver.delete(share_key)
    else:
        driver.advance(dice.choice([1, 100, 400]))
