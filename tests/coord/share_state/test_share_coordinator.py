"""G5: the share coordinator; cases of Kafka's ShareCoordinatorShardTest, and what a log that is replayed says."""

from __future__ import annotations

import random

import pytest

from barnabas.coord.share_state import records
from barnabas.coord.share_state.key import SharePartitionKey, parse_key
from barnabas.wire.errors import ErrorCode as E
from tests.coord.share_state.share_state_driver import TOPIC, Driver, facts, key

ACKNOWLEDGED, AVAILABLE, ARCHIVED = 2, 0, 4


@pytest.fixture
def driver():
    return Driver()


def batches(answer):
    return [(b.first_offset, b.last_offset, b.delivery_state, b.delivery_count) for b in answer.state_batches]


def last_record(driver):
    record_key, value = driver.log[driver.end - 1]
    kind, _ = records.read_key(record_key)
    return kind, records.read_snapshot(value) if kind == records.SHARE_SNAPSHOT else records.read_update(value)


def test_the_key_of_a_share_partition():
    """`group:topicId:partition`; the group may contain colons."""
    about = SharePartitionKey("a:b", TOPIC, 3)
    assert str(about) == "a:b:AAAAAAAAAAAAAAAAAAAABw:3"
    assert parse_key(str(about)) == about


def test_state_begins_with_a_snapshot_and_goes_on_with_updates(driver):
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


def test_nobody_has_counted_where_the_start_is_unknown(driver):
    driver.initialize(start_offset=-1)
    assert (driver.summary().start_offset, driver.summary().delivery_complete_count) == (-1, -1)


def test_after_so_many_updates_there_is_a_snapshot():
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


def test_every_write_is_a_snapshot_when_no_updates_are_allowed():
    """A batch that nobody mentions is not lost when the start moves (testNonSequentialBatchUpdates)."""
    driver = Driver(updates_per_snapshot=0)
    driver.initialize(start_offset=100)
    driver.write((100, 109, 1, 1), (110, 119, 1, 2), (120, 129, 1, 0), start_offset=100)
    driver.write((100, 109, ACKNOWLEDGED, 1), start_offset=-1)
    driver.write((120, 129, ACKNOWLEDGED, 1), start_offset=110)
    kind, snapshot = last_record(driver)
    assert (kind, snapshot.snapshot_epoch, snapshot.start_offset) == (records.SHARE_SNAPSHOT, 3, 110)
    assert batches(driver.read()) == [(110, 119, 1, 2), (120, 129, ACKNOWLEDGED, 1)]


def test_the_start_never_goes_back(driver):
    driver.initialize(start_offset=0)
    driver.write(start_offset=10, complete=3)
    driver.write(start_offset=5, complete=9)
    assert (driver.summary().start_offset, driver.summary().delivery_complete_count) == (10, 3)
    driver.write(start_offset=10, complete=2)
    assert driver.summary().delivery_complete_count == 3, "nor does the count at one start"
    driver.write(start_offset=11, complete=2)
    assert driver.summary().delivery_complete_count == 2


@pytest.mark.parametrize(
    ("request_", "code", "sentence"),
    [
        (lambda d: d.write((0, 1, 2, 1)), E.INVALID_REQUEST, "Write operation on uninitialized share partition"),
        (lambda d: d.read(), E.INVALID_REQUEST, "Read operation on uninitialized share partition"),
        (lambda d: d.write(leader_epoch=-1), E.INVALID_REQUEST, "The leader epoch cannot be a negative number."),
        (lambda d: d.write(state_epoch=-1), E.INVALID_REQUEST, "The state epoch cannot be a negative number."),
        (lambda d: d.read(leader_epoch=-1), E.INVALID_REQUEST, "The leader epoch cannot be a negative number."),
        (lambda d: d.initialize(state_epoch=-1), E.INVALID_REQUEST, "The state epoch cannot be a negative number."),
        (lambda d: d.initialize(key(-1)), E.INVALID_REQUEST, "The partition id cannot be a negative number."),
        (lambda d: d.write(about=key(-1)), E.INVALID_REQUEST, "The partition id cannot be a negative number."),
        (lambda d: d.read(key(-1)), E.INVALID_REQUEST, "The partition id cannot be a negative number."),
        (lambda d: d.summary(key(-1)), E.INVALID_REQUEST, "The partition id cannot be a negative number."),
        (lambda d: d.delete(key(-1)), E.INVALID_REQUEST, "The partition id cannot be a negative number."),
        (lambda d: d.initialize(key(4)), E.UNKNOWN_TOPIC_OR_PARTITION, None),
        (lambda d: d.summary(key(4)), E.UNKNOWN_TOPIC_OR_PARTITION, None),
        (lambda d: d.delete(key(topic=bytes(16))), E.UNKNOWN_TOPIC_OR_PARTITION, None),
        (lambda d: d.initialize() and d.write((5, 4, 2, 1)), E.INVALID_REQUEST, "A state batch cannot end before"),
    ],
)
def test_requests_that_are_refused(driver, request_, code, sentence):
    answer = request_(driver)
    assert answer.error_code == code
    assert (answer.error_message or "").startswith(sentence or "")
    assert all(records.read_key(record_key)[0] == records.SHARE_SNAPSHOT for record_key, _ in driver.log.values())


def test_who_reads_with_a_newer_leader_epoch_fences_the_older_ones_off(driver):
    driver.initialize()
    assert driver.read(leader_epoch=2).error_code == 0
    kind, update = last_record(driver)
    assert (kind, update.leader_epoch, update.start_offset) == (records.SHARE_UPDATE, 2, 0)
    written = driver.end
    assert driver.read(leader_epoch=2).error_code == 0
    assert driver.end == written, "the same leader again writes nothing"
    assert driver.read(leader_epoch=1).error_code == E.FENCED_LEADER_EPOCH
    assert driver.write(leader_epoch=1).error_code == E.FENCED_LEADER_EPOCH
    assert driver.write(leader_epoch=3).error_code == 0
    assert driver.write(leader_epoch=2).error_code == 0, "a write fences nobody off, only a read"


def test_a_newer_state_fences_writes_about_the_older_one_off(driver):
    driver.initialize(state_epoch=1, start_offset=0)
    driver.write((0, 9, ACKNOWLEDGED, 1), state_epoch=1, complete=10)
    assert driver.initialize(state_epoch=2, start_offset=5).error_code == 0
    assert (driver.state().start_offset, driver.state().batches, driver.state().snapshot_epoch) == (5, [], 1)
    assert driver.write((0, 9, ACKNOWLEDGED, 1), state_epoch=1).error_code == E.FENCED_STATE_EPOCH
    assert driver.initialize(state_epoch=1).error_code == E.FENCED_STATE_EPOCH
    assert driver.initialize(state_epoch=2, start_offset=7).error_code == 0
    assert driver.read().state_epoch == 2


def test_a_leader_stays_fenced_when_the_state_begins_anew(driver):
    driver.initialize()
    driver.read(leader_epoch=5)
    driver.initialize(state_epoch=1)
    assert driver.write(state_epoch=1, leader_epoch=4).error_code == E.FENCED_LEADER_EPOCH
    driver.restart()
    assert driver.write(state_epoch=1, leader_epoch=4).error_code == E.FENCED_LEADER_EPOCH


def test_a_summary_fences_nobody_and_knows_what_is_not_there(driver):
    unknown = driver.summary()
    assert (unknown.error_code, unknown.start_offset, unknown.state_epoch, unknown.leader_epoch) == (0, -1, 0, 0)
    assert unknown.delivery_complete_count == -1
    driver.initialize(state_epoch=3, start_offset=4)
    driver.read(leader_epoch=6)
    known = driver.summary()
    assert (known.start_offset, known.state_epoch, known.leader_epoch, known.delivery_complete_count) == (4, 3, 6, 0)


def test_deleted_state_leaves_nothing(driver):
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


def test_state_of_deleted_topics_goes(driver):
    driver.initialize()
    driver.topics.pop(TOPIC)
    driver.handle(driver.coordinator.topics_deleted({TOPIC}))
    assert driver.coordinator.states == {}


def test_state_of_topics_that_were_deleted_meanwhile_goes_at_the_start(driver):
    driver.initialize()
    driver.topics.pop(TOPIC)
    driver.restart()
    assert driver.coordinator.states == {}
    assert driver.log[driver.end - 1][1] is None


def test_what_cannot_be_written_is_answered_and_forgotten(driver):
    driver.initialize()
    driver.append_error = E.NOT_ENOUGH_REPLICAS
    assert driver.write((0, 0, 2, 1)).error_code == E.COORDINATOR_NOT_AVAILABLE
    assert driver.read(leader_epoch=9).error_code == E.COORDINATOR_NOT_AVAILABLE
    driver.append_error = None
    assert driver.state().batches == []
    assert driver.write(leader_epoch=1).error_code == 0, "the leader that was not written fences nobody off"


def test_partitions_that_lie_still_get_a_snapshot_once(driver):
    """Kafka's cold snapshots: without them one idle partition would keep the whole log."""
    driver.initialize(key(0))
    driver.write((0, 4, ACKNOWLEDGED, 1), about=key(0))
    created_ms = driver.at.now_ms
    driver.advance(301)
    kind, snapshot = last_record(driver)
    assert kind == records.SHARE_SNAPSHOT
    assert snapshot.create_timestamp == created_ms < snapshot.write_timestamp
    assert [b.last_offset for b in snapshot.state_batches] == [4]
    written = driver.end
    driver.advance(3000)
    assert driver.end == written, "nothing moves, nothing is written"
    driver.initialize(key(1))
    driver.advance(700)
    assert driver.end > written + 1


def test_the_log_is_cut_where_nothing_is_needed_any_more():
    driver = Driver(updates_per_snapshot=3)
    driver.initialize(key(0))
    driver.initialize(key(1))
    for offset in range(20):
        driver.write((offset, offset, ACKNOWLEDGED, 1), about=key(0))
    assert min(driver.log) == 0
    driver.advance(1000)
    assert min(driver.log) > 2
    driver.delete(key(0))
    driver.delete(key(1))
    driver.advance(1000)
    assert driver.log == {}, "of a group that is gone nothing is kept"


def test_a_busy_log_is_cut_before_its_time():
    """It is read at a start: between two prunings an idle partition keeps it no longer than others write it."""
    driver = Driver(updates_per_snapshot=10, records_per_prune=50)
    driver.initialize(key(0))
    driver.initialize(key(1))
    for offset in range(500):
        driver.write((offset, offset, ACKNOWLEDGED, 1), about=key(0), start_offset=offset)
        driver.advance(0.001)
        assert len(driver.log) <= 3 * 50
    assert {about.partition for about in driver.loaded_again().states} == {0, 1}


@pytest.mark.parametrize("seed", range(20))
def test_the_log_says_what_the_coordinator_knows(seed):
    """Replay of the log is the state, whenever it is looked at, also after the log was cut."""
    dice = random.Random(seed)
    driver = Driver(updates_per_snapshot=dice.choice([0, 1, 3, 7]), records_per_prune=dice.choice([20, 1000]))
    keys = [key(partition, group) for partition in (0, 1) for group in ("g", "h")]
    for _ in range(150):
        _random_event(driver, dice, keys)
        loaded = driver.loaded_again()
        was_cut = driver.log and min(driver.log) > 0
        assert {about: facts(state, with_fence=not was_cut) for about, state in loaded.states.items()} == {
            about: facts(state, with_fence=not was_cut) for about, state in driver.coordinator.states.items()
        }
        if dice.random() < 0.05:
            driver.restart()


def _random_event(driver, dice, keys):
    about = dice.choice(keys)
    state = driver.state(about)
    now = dice.random()
    if state is None or now < 0.05:
        epoch = 0 if state is None else state.state_epoch
        driver.initialize(about, epoch + dice.choice([-1, 0, 1]) if epoch else 0, dice.choice([-1, 0, 5]))
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
            about=about,
            state_epoch=state.state_epoch - dice.choice([0, 0, 0, min(1, state.state_epoch)]),
            leader_epoch=state.leader_epoch_fence,
            start_offset=dice.choice([-1, state.start_offset, max(state.start_offset, 0) + dice.randrange(4)]),
            complete=dice.choice([-1, 0, 3]),
        )
    elif now < 0.85:
        driver.read(about, state.leader_epoch_fence + dice.choice([0, 0, 1]))
    elif now < 0.9:
        driver.delete(about)
    else:
        driver.advance(dice.choice([1, 100, 400]))
