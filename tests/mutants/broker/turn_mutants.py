"""Bugs in turns of the reactor, closed connections, reservations and limits of connections."""

from __future__ import annotations

from tests.mutants.mutant import Mutant

_TURNS = "tests/broker/net/test_turns.py::"
_CONNECTION = "tests/broker/net/test_connection.py::"
_QUOTAS = "tests/broker/net/test_connection_limits.py::"
TURNS = (
    Mutant(
        "no-share-of-a-turn",
        "broker/net/connection.py",
        "            if position < end and self.clock() >= self._share_end:\n                break\n",
        "",
        _TURNS + "test_requests_that_wait_in_one_connection_do_not_hold_up_another",
    ),
    Mutant(
        "rotation-from-the-wrong-end",
        "broker/net/reactor.py",
        "            channel = self._rotation.popleft()\n",
        "            channel = self._rotation.pop()\n",
        _TURNS + "test_connections_that_use_up_their_shares_are_served_in_rotation",
    ),
    Mutant(
        "expensive-connections-served-first",
        "broker/net/reactor.py",
        "            if channel.is_heavy or channel.busy_visits:\n",
        "            if channel.busy_visits:\n",
        _TURNS + "test_a_connection_with_expensive_requests_waits_for_those_with_cheap_ones",
    ),
    Mutant(
        "no-smaller-share-in-a-crowd",
        "broker/net/reactor.py",
        "        self._is_crowded = crowd > FEW\n",
        "        self._is_crowded = False\n",
        _TURNS + "test_in_a_crowd_a_request_waits_for_one_of_each_connection",
    ),
    Mutant(
        "share-of-a-crowd-begun-again-with-each-frame",
        "broker/net/connection.py",
        "            if self.clock() >= self._share_end:\n                self._store(data[missing:])\n",
        "            if False:\n                self._store(data[missing:])\n",
        _TURNS + "test_a_frame_that_was_begun_counts_to_the_share",
    ),
    Mutant(
        "busy-in-a-crowd-forgotten",
        "broker/net/reactor.py",
        "                    channel.busy_visits = BUSY_VISITS\n",
        "                    pass\n",
        _TURNS + "test_who_had_too_many_requests_in_a_crowd_waits_some_times",
    ),
    Mutant(
        "time-of-other-processes-counted",
        "broker/net/reactor.py",
        "                target.is_suspect = True\n",
        "                target.is_heavy = True\n",
        _TURNS + "test_time_that_passes_for_other_processes_makes_no_connection_wait",
    ),
    Mutant(
        "new-connections-served-first",
        "broker/net/channel.py",
        "        self.is_heavy = True  #",
        "        self.is_heavy = False  #",
        _TURNS + "test_a_request_waits_for_no_burst_of_new_connections",
    ),
    Mutant(
        "all-work-in-progress-at-once",
        "broker/event_loop/slices.py",
        "        while self._waiting and len(self._active) < ACTIVE:\n",
        "        while self._waiting:\n",
        "tests/broker/waiting/test_slices.py::test_only_some_work_is_in_progress_at_a_time",
    ),
    Mutant(
        "turn-without-an-end",
        "broker/net/reactor.py",
        "                self._unserved = events[index + 1 :]\n                break\n",
        "                pass\n",
        _TURNS + "test_a_turn_ends_after_its_time_and_the_others_are_served_next",
    ),
    Mutant(
        "checkpoint-not-by-time",
        "broker/net/reactor.py",
        "                is_due = now >= next_checkpoint or timers.is_due(now)\n",
        "                is_due = timers.is_due(now)\n",
        _TURNS + "test_other_tasks_run_after_a_time_not_after_a_number_of_turns",
    ),
    Mutant(
        "requests-of-a-reset-connection-kept",
        "broker/net/reactor.py",
        "        if ready & CLOSED:\n            self._close(channel)\n            return True\n",
        "",
        _TURNS + "test_the_requests_of_a_reset_connection_are_dropped",
    ),
    Mutant(
        "half-closed-connection-not-answered",
        "broker/net/reactor.py",
        "                    if not count:\n                        connection.is_closing = True\n"
        "                        break\n                    connection.receive",
        "                    if not count:\n                        self._close(channel)\n"
        "                        return\n                    connection.receive",
        _TURNS + "test_responses_to_a_peer_that_has_closed_its_side_are_sent_completely",
    ),
    Mutant(
        "callback-of-a-descriptor-unguarded",
        "broker/net/reactor.py",
        '            logger.exception("The event loop\'s callback %r failed", target)\n',
        "            raise\n",
        _TURNS + "test_a_callback_that_fails_ends_neither_the_reactor_nor_its_turn",
    ),
    Mutant(
        "turn-unguarded",
        "broker/net/reactor.py",
        '                    logger.exception("A turn of the event loop failed")\n',
        "                    raise\n",
        _TURNS + "test_a_turn_that_fails_does_not_end_the_reactor",
    ),
    Mutant(
        "timers-without-an-end",
        "broker/event_loop/timers.py",
        "            if self._now() >= end:\n                break\n",
        "",
        _TURNS + "test_due_timers_are_bounded_by_time",
    ),
    Mutant(
        "sending-without-an-end",
        "broker/net/reactor.py",
        "                elif loop.now() >= end:\n                    break\n",
        "",
        _TURNS + "test_sending_is_bounded_by_time",
    ),
    Mutant(
        "idle-time-from-the-request",
        "broker/apis/dispatcher.py",
        "    connection.last_active = connection.clock()",
        "    connection.last_active = connection.now",
        _CONNECTION + "test_the_idle_time_counts_from_the_answer_of_a_long_poll",
    ),
    Mutant(
        "closed-connection-stays-in-the-queue",
        "broker/net/connection.py",
        "            self._buffers.leave(self)\n",
        "            pass\n",
        _CONNECTION + "test_a_connection_that_closes_gives_back_what_it_has_reserved",
    ),
    Mutant(
        "reservation-kept",
        "broker/net/connection.py",
        "        self.partial = None\n        self._release_reservation()\n        if self.delayed",
        "        self.partial = None\n        if self.delayed",
        _CONNECTION + "test_a_connection_that_closes_gives_back_what_it_has_reserved",
    ),
    Mutant(
        "rate-not-counted",
        "broker/net/connection_quotas.py",
        "        self._available -= 1\n",
        "        pass\n",
        _QUOTAS + "test_connections_above_the_rate_wait",
    ),
    Mutant(
        "closed-connection-still-counted",
        "broker/net/connection_quotas.py",
        "        self._total -= 1\n",
        "        pass\n",
        _QUOTAS + "test_connections_above_the_limit_wait_and_are_not_closed",
    ),
    Mutant(
        "inter-broker-listener-not-exempt",
        "broker/net/connection_quotas.py",
        "        is_exempt = listener == limits.inter_broker_listener\n",
        "        is_exempt = False\n",
        _QUOTAS + "test_the_inter_broker_listener_is_exempt_and_the_idlest_other_connection_is_closed",
    ),
)
