"""The life of a broker in a cluster whose controller the test plays: registration, heartbeats, unfencing, stopping."""

from __future__ import annotations

import logging
from pathlib import Path

from barnabas.broker.metadata.lifecycle import BrokerLifecycleState
from barnabas.broker.metadata.previous_epoch import EPOCH_FILE
from barnabas.wire.errors import ErrorCode
from barnabas.wire.messages.cluster import (
    BrokerHeartbeatRequest,
    BrokerHeartbeatResponse,
    BrokerRegistrationRequest,
    BrokerRegistrationResponse,
)
from barnabas.wire.types import uuid_from_text
from tests.broker.fake_controller import CLUSTER_ID, FakeController, JoinedBroker
from tests.broker.scripted_nodes import Answers, Wire


def started(wire: Wire, tmp_path: Path, controller: FakeController, *more: Path, **sets: str) -> JoinedBroker:
    member = JoinedBroker(wire, [tmp_path / "data", *more], controller.address, **sets)
    member.start()
    wire.advance(1)
    assert member.joined.all == [None]
    return member


def test_a_broker_registers_with_what_it_is(wire, tmp_path, controller):
    member = started(wire, tmp_path, controller, tmp_path / "more", broker_rack="r1")
    request = controller.registrations[0]
    assert (request.broker_id, request.cluster_id, request.rack) == (1, CLUSTER_ID, "r1")
    assert [(item.name, item.host, item.port, item.security_protocol) for item in request.listeners] == [
        ("PLAINTEXT", "127.0.0.1", 9092, 0)
    ]
    ids = {uuid_from_text(log_dir.directory_id) for log_dir in member.broker.log_dirs.dirs}
    assert set(request.log_dirs) == ids
    assert len(ids) == 2
    ranges = {item.name: (item.min_supported_version, item.max_supported_version) for item in request.features}
    assert ranges == {
        "metadata.version": (7, 33),
        "transaction.version": (0, 2),
        "group.version": (0, 1),
        "share.version": (0, 2),
        "streams.version": (0, 1),
        "eligible.leader.replicas.version": (0, 1),
        "kraft.version": (0, 1),
    }


def test_it_is_fenced_until_it_has_caught_up_and_its_logs_are_open(wire, tmp_path, controller):
    member = JoinedBroker(wire, [tmp_path / "data"], controller.address)
    opened: list[int] = []
    member.member.lifecycle.on_caught_up.append(lambda: opened.append(len(controller.heartbeats)))
    member.start()
    wire.advance(1)
    wants = [heartbeat.want_fence for heartbeat in controller.heartbeats]
    assert wants[0] is True
    assert wants[opened[0] - 1] is True
    assert wants[-1] is False
    assert wants == sorted(wants, reverse=True)
    assert member.lifecycle.state == BrokerLifecycleState.RUNNING


def test_heartbeats_go_on_with_the_offset_of_the_metadata(wire, tmp_path, controller):
    member = started(wire, tmp_path, controller)
    before = len(controller.heartbeats)
    wire.advance(6.5)
    assert len(controller.heartbeats) - before == 3
    offset = controller.heartbeats[-1].current_metadata_offset
    assert member.remote.observer.applied_offset - 1 <= offset > member.lifecycle.broker_epoch
    assert controller.heartbeats[-1].broker_epoch == member.lifecycle.broker_epoch


def test_the_session_of_an_earlier_incarnation_is_waited_for(wire, tmp_path, controller, caplog):
    """Trap 3: 101 DUPLICATE_BROKER_REGISTRATION after kill -9; one plain line, and again until the session ends."""
    controller.sessions[1] = b"x" * 16
    member = JoinedBroker(wire, [tmp_path / "data"], controller.address)
    with caplog.at_level(logging.WARNING):
        member.start()
        wire.advance(3)
    assert len([record for record in caplog.records if "not registered yet" in record.message]) == 1
    assert member.joined.all == []
    del controller.sessions[1]
    wire.advance(1)
    assert member.joined.all == [None]


def test_a_broker_that_cannot_register_gives_up_in_the_end(wire, tmp_path, controller):
    refusal = BrokerRegistrationResponse(error_code=ErrorCode.UNSUPPORTED_VERSION)
    controller.node.on(BrokerRegistrationRequest, lambda request, _: refusal)
    member = JoinedBroker(wire, [tmp_path / "data"], controller.address, initial_broker_registration_timeout_ms="2000")
    member.start()
    wire.advance(1)
    assert member.broker.halt_reason is None
    wire.advance(2)
    assert "finalized a feature" in (member.broker.halt_reason or "")


def test_a_stale_epoch_registers_again(wire, tmp_path, controller):
    """Trap 3: 77 STALE_BROKER_EPOCH."""
    member = started(wire, tmp_path, controller)
    first = member.lifecycle.broker_epoch
    controller.quorum.epochs[1] = first + 1000
    wire.advance(4)
    assert len(controller.registrations) == 2
    assert controller.registrations[-1].incarnation_id == controller.registrations[0].incarnation_id
    assert member.lifecycle.broker_epoch > first
    assert member.lifecycle.state == BrokerLifecycleState.RUNNING


def test_another_controller_gets_the_heartbeats(wire, tmp_path, controller):
    other = FakeController(wire, controller.quorum, 3001)
    other.sessions = controller.sessions
    member = started(wire, tmp_path, controller)
    controller.quorum.elect(3001)
    controller.node.close()
    wire.advance(5)
    assert other.heartbeats
    assert other.heartbeats[-1].broker_epoch == member.lifecycle.broker_epoch
    assert len(other.registrations) == 0


def test_a_controlled_shutdown_waits_for_the_controller(wire, tmp_path, controller):
    member = started(wire, tmp_path, controller)
    controller.may_shut_down = False
    stopped = Answers()
    member.lifecycle.begin_controlled_shutdown(stopped)
    wire.advance(1)
    assert controller.heartbeats[-1].want_shut_down
    assert not stopped.all
    controller.may_shut_down = True
    wire.advance(0.2)
    assert stopped.all == [True]
    count = len(controller.heartbeats)
    wire.advance(3)
    assert len(controller.heartbeats) == count


def test_a_stop_without_controller_ends_by_itself_and_says_what_it_waits_for(wire, tmp_path, controller, caplog):
    member = started(wire, tmp_path, controller, broker_session_timeout_ms="3000")
    controller.node.close()
    stopped = Answers()
    with caplog.at_level(logging.INFO):
        member.lifecycle.begin_controlled_shutdown(stopped)
        assert "without its answer for at most 3 s" in caplog.text
        wire.advance(3.1)
    assert stopped.all == [False]
    assert "The controller has not answered about the leaders of this broker" in caplog.text


def test_a_stop_waits_longer_while_the_controller_answers_but_not_for_ever(wire, tmp_path, controller):
    member = started(wire, tmp_path, controller, broker_session_timeout_ms="3000")
    controller.may_shut_down = False
    stopped = Answers()
    member.lifecycle.begin_controlled_shutdown(stopped)
    wire.advance(10)
    assert stopped.all == []
    wire.advance(21)
    assert stopped.all == [False]


def test_a_failed_directory_is_told_at_once_and_again(wire, tmp_path, controller):
    member = started(wire, tmp_path, controller, tmp_path / "more")
    log_dirs = member.broker.log_dirs
    other = next(log_dir for log_dir in log_dirs.dirs if log_dir is not log_dirs.dir_of("__cluster_metadata", 0))
    before = len(controller.heartbeats)
    member.broker.log_dir_failures.take_offline(other, "test", OSError(5, "I/O error"))
    wire.advance(0.1)
    assert len(controller.heartbeats) == before + 1
    wire.advance(2)
    assert controller.heartbeats[-1].offline_log_dirs == [uuid_from_text(other.directory_id)]


def test_directory_ids_are_stable_over_restarts(wire, tmp_path, controller):
    """Trap 2: with fresh ids every replica would be on a lost directory."""
    member = started(wire, tmp_path, controller)
    member.stop()
    controller.sessions.clear()
    started(wire, tmp_path, controller)
    assert controller.registrations[0].log_dirs == controller.registrations[1].log_dirs
    assert controller.registrations[0].incarnation_id != controller.registrations[1].incarnation_id


def test_a_heartbeat_that_fails_is_repeated(wire, tmp_path, controller):
    member = started(wire, tmp_path, controller)
    answers = iter([BrokerHeartbeatResponse(error_code=ErrorCode.UNKNOWN_SERVER_ERROR)])
    controller.node.on(
        BrokerHeartbeatRequest, lambda request, version: next(answers, None) or controller.heartbeat(request, version)
    )
    member.lifecycle.heartbeat_now()
    before = len(controller.heartbeats)
    wire.advance(0.5)
    assert len(controller.heartbeats) == before + 1


# PreviousBrokerEpoch (trap 4)


def claims(controller: FakeController) -> list[int]:
    return [registration.previous_broker_epoch for registration in controller.registrations]


def test_after_a_clean_stop_the_epoch_is_claimed(wire, tmp_path, controller):
    member = started(wire, tmp_path, controller)
    epoch = member.lifecycle.broker_epoch
    member.stop()
    controller.sessions.clear()
    started(wire, tmp_path, controller)
    assert claims(controller) == [-1, epoch]


def test_after_a_crash_the_epoch_is_claimed_under_sync_always(wire, tmp_path, controller):
    member = started(wire, tmp_path, controller)
    epoch = member.lifecycle.broker_epoch
    member.stop(cleanly=False)
    controller.sessions.clear()
    started(wire, tmp_path, controller)
    assert claims(controller) == [-1, epoch]


def test_after_a_crash_nothing_is_claimed_without_sync_always(wire, tmp_path, controller):
    member = started(wire, tmp_path, controller, barnabas_log_sync="os")
    member.stop(cleanly=False)
    controller.sessions.clear()
    started(wire, tmp_path, controller, barnabas_log_sync="os")
    assert claims(controller) == [-1, -1]


def test_an_epoch_of_a_run_without_sync_is_never_claimed(wire, tmp_path, controller):
    for sync in ("always", "os", "always"):
        started(wire, tmp_path, controller, barnabas_log_sync=sync).stop(cleanly=False)
        controller.sessions.clear()
    assert claims(controller) == [-1, -1, -1]


def test_nothing_is_claimed_when_a_directory_is_not_the_one_that_it_was(wire, tmp_path, controller):
    member = started(wire, tmp_path, controller, tmp_path / "more")
    member.stop(cleanly=False)
    controller.sessions.clear()
    (tmp_path / "more" / EPOCH_FILE).unlink()
    started(wire, tmp_path, controller, tmp_path / "more")
    assert claims(controller) == [-1, -1]


def test_nothing_is_claimed_with_an_unreadable_epoch(wire, tmp_path, controller):
    started(wire, tmp_path, controller).stop(cleanly=False)
    controller.sessions.clear()
    (tmp_path / "data" / EPOCH_FILE).write_text("{")
    started(wire, tmp_path, controller)
    assert claims(controller) == [-1, -1]


def test_the_epoch_is_written_before_the_broker_is_unfenced(wire, tmp_path, controller):
    member = JoinedBroker(wire, [tmp_path / "data"], controller.address)
    wire.disk.is_paused = False
    member.start()
    wire.until(lambda: controller.registrations)
    wire.disk.is_paused = True
    wire.advance(2)
    assert not controller.heartbeats
    wire.disk.is_paused = False
    while wire.disk.held:
        wire.disk.run()
    wire.advance(1)
    assert member.joined.all == [None]
