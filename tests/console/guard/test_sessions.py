"""Sessions and failed log-ins by plain values: numbers, idle time, age."""

from __future__ import annotations

from barnabas.console.guard.sessions import AGE_S, FAILURES_S, IDLE_S, MAX_OF_USER, Attempts, Session, Sessions


class _Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def test_a_session_is_found_by_its_id_only_and_ends_when_it_was_idle() -> None:
    clock = _Clock()
    sessions = Sessions(clock=clock)
    ended: list[Session] = []
    sessions.on_end.append(ended.append)
    session_id, session = sessions.begin("alice", {})
    assert sessions.find(session_id) is session
    assert sessions.find(session.key) is None
    assert sessions.find("") is None
    assert sessions.find("\ud800") is None
    clock.now += IDLE_S
    assert sessions.find(session_id) is session
    clock.now += IDLE_S + 1
    assert sessions.find(session_id) is None
    assert ended == [session]


def test_a_session_that_is_used_all_the_time_ends_by_its_age() -> None:
    clock = _Clock()
    sessions = Sessions(clock=clock)
    session_id, _ = sessions.begin("alice", {})
    while clock.now + IDLE_S <= AGE_S:
        clock.now += IDLE_S
        assert sessions.find(session_id) is not None
    clock.now = AGE_S + 1
    assert sessions.find(session_id) is None


def test_ids_tokens_and_passwords_are_not_in_the_representation() -> None:
    properties = {
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": "PLAIN",
        "sasl.username": "alice",
        "sasl.password": "secret-of-alice",
    }
    session_id, session = Sessions().begin("alice", properties)
    for hidden in (session_id, session.csrf_token, "secret-of-alice"):
        assert hidden not in repr(session)
    assert session.has_token(session.csrf_token)
    assert not session.has_token("")
    assert not session.has_token("ü")


def test_the_number_of_sessions_is_bounded_and_a_user_ends_only_its_own() -> None:
    sessions = Sessions(most=MAX_OF_USER + 2)
    ended: list[Session] = []
    sessions.on_end.append(ended.append)
    _, bob = sessions.begin("bob", {})
    of_alice = [sessions.begin("alice", {})[1] for _ in range(MAX_OF_USER + 1)]
    assert ended == of_alice[:1]
    assert len(sessions) == MAX_OF_USER + 1
    sessions.begin("carol", {})
    sessions.begin("dave", {})
    assert ended == [of_alice[0], bob]  # it was idle for longest
    sessions.end(of_alice[1])
    sessions.end(of_alice[1])
    assert ended == [of_alice[0], bob, of_alice[1]]


def test_log_ins_are_limited_by_user_and_by_address() -> None:
    clock = _Clock()
    attempts = Attempts(clock)
    for _ in range(5):
        assert attempts.wait_s("alice", "10.0.0.1") == 0
        attempts.failed("alice", "10.0.0.1")
    assert attempts.wait_s("alice", "10.0.0.1") == FAILURES_S
    assert attempts.wait_s("alice", "10.0.0.2") == 0  # alice herself can still log in from where she is
    for number in range(15):
        attempts.failed(f"user-{number}", "10.0.0.1")
    assert attempts.wait_s("bob", "10.0.0.1") == FAILURES_S
    clock.now = FAILURES_S
    assert attempts.wait_s("alice", "10.0.0.1") == 0


def test_log_ins_that_succeed_do_not_count() -> None:
    attempts = Attempts(_Clock())
    for _ in range(300):
        assert attempts.wait_s("alice", "10.0.0.1") == 0
        attempts.failed("alice", "10.0.0.1")
        attempts.succeeded("alice", "10.0.0.1")
