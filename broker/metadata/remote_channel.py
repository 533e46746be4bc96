"""The channel to the active controller over the network.

Each purpose has a connection with one request in flight, so that a heartbeat does not wait for a large creation. A
request is sent to the leader that is known; while none is, it waits. NOT_CONTROLLER, NOT_LEADER_OR_FOLLOWER, network
errors and a leader that has changed repeat it, after a pause that grows from controller.quorum.retry.backoff.ms to a
second, until its time is up: then it fails with REQUEST_TIMED_OUT. Answers that cannot be decoded fail at once: to
repeat such a request would make its effect twice. Source: Kafka's `NodeToControllerChannelManagerImpl`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from barnabas.broker.guarded import call_guarded
from barnabas.broker.net.network_client import NetworkClient
from barnabas.wire.api_keys import ApiKey
from barnabas.wire.errors import ErrorCode, KafkaError

if TYPE_CHECKING:
    from barnabas.broker.loop import Loop
    from barnabas.broker.metadata.quorum_leader import QuorumLeader
    from barnabas.broker.net.login import Login
    from barnabas.broker.net.outgoing import Connect
    from barnabas.broker.timers import Timer
    from barnabas.wire.schema import Message

MAX_BACKOFF_S: Final = 1.0
LEADER_ERRORS: Final = frozenset({ErrorCode.NOT_CONTROLLER, ErrorCode.NOT_LEADER_OR_FOLLOWER})
RETRIED: Final = frozenset({ErrorCode.NETWORK_EXCEPTION, ErrorCode.REQUEST_TIMED_OUT, *LEADER_ERRORS})

_PURPOSES: Final = {
    ApiKey.BROKER_REGISTRATION: "lifecycle",
    ApiKey.BROKER_HEARTBEAT: "lifecycle",
    ApiKey.ALTER_PARTITION: "alter-partition",
    ApiKey.ALLOCATE_PRODUCER_IDS: "producer-ids",
    ApiKey.ASSIGN_REPLICAS_TO_DIRS: "directory-assignments",
}
_OTHER_PURPOSE: Final = "forwarding"


class RemoteChannel:
    """Sends requests to the active controller (`ControllerChannel`)."""

    def __init__(
        self,
        loop: Loop,
        connect: Connect,
        quorum: QuorumLeader,
        *,
        client_id: str,
        timeout_s: float,
        backoff_s: float,
        software_version: str = "unknown",
        login: Callable[[], Login] | None = None,
    ) -> None:
        """`timeout_s` is the time of a request that has none of its own, `backoff_s` the first pause.

        `login` makes the log-in of each connection; None: they need none.
        """
        self._login = login
        self._loop = loop
        self._connect = connect
        self._quorum = quorum
        self._client_id = client_id
        self._software_version = software_version
        self._timeout_s = timeout_s
        self._backoff_s = backoff_s
        self._clients: dict[str, NetworkClient] = {}
        self._pending: dict[_Attempts, None] = {}
        self._is_closed = False
        quorum.on_change.append(self._leader_changed)

    def send(self, request: Message, then: Callable[[Any], None], *, timeout_s: float | None = None) -> None:
        """Send a request; `then` gets the response's message, or a KafkaError, never within the call."""
        deadline = self._loop.now() + (self._timeout_s if timeout_s is None else timeout_s)
        attempts = _Attempts(request, then, deadline)
        self._pending[attempts] = None
        attempts.timer = self._loop.timers.at(deadline, lambda: self._out_of_time(attempts))
        if self._is_closed:
            attempts.retry = self._loop.timers.at(self._loop.now(), lambda: self._fail(attempts, _closed()))
        else:
            self._attempt(attempts)

    def close(self) -> None:
        """Fail everything that waits, with NETWORK_EXCEPTION, and what is sent later."""
        self._is_closed = True
        for attempts in list(self._pending):
            self._fail(attempts, _closed())
        for client in self._clients.values():
            client.close()

    def _client(self, request: Message) -> NetworkClient:
        purpose = _PURPOSES.get(ApiKey(request.api_key), _OTHER_PURPOSE)
        client = self._clients.get(purpose)
        if client is None:
            client = self._clients[purpose] = NetworkClient(
                self._loop,
                self._connect,
                self._quorum.leader_address,
                client_id=f"{self._client_id}-{purpose}",
                software_version=self._software_version,
                login=self._login,
            )
        return client

    def _attempt(self, attempts: _Attempts) -> None:
        """Send the request, or wait until the leader is known."""
        attempts.retry = None
        if self._quorum.leader_address() is None:
            attempts.waits_for_leader = True
            return
        left = attempts.deadline - self._loop.now()
        self._client(attempts.request).send(
            attempts.request, lambda outcome: self._answered(attempts, outcome), timeout_s=max(left, 0.001)
        )

    def _answered(self, attempts: _Attempts, outcome: Message | KafkaError) -> None:
        if attempts not in self._pending:
            return
        code = outcome.code if isinstance(outcome, KafkaError) else getattr(outcome, "error_code", 0)
        if code not in RETRIED or (code == ErrorCode.REQUEST_TIMED_OUT and not isinstance(outcome, KafkaError)):
            self._end(attempts, outcome)
            return
        now = self._loop.now()
        backoff_s = min(self._backoff_s * 2 ** min(attempts.count, 10), MAX_BACKOFF_S)
        attempts.count += 1
        if now + backoff_s < attempts.deadline:
            attempts.retry = self._loop.timers.at(now + backoff_s, lambda: self._attempt(attempts))

    def _leader_changed(self) -> None:
        """Requests to the old leader are repeated at the new one, those that waited for a leader are sent."""
        if self._quorum.leader_address() is None:
            return
        for client in self._clients.values():
            client.disconnect_unless(self._quorum.leader_address())
        for attempts in [one for one in self._pending if one.waits_for_leader]:
            attempts.waits_for_leader = False
            self._attempt(attempts)

    def _out_of_time(self, attempts: _Attempts) -> None:
        text = "The controller has not answered in time."
        if self._quorum.leader_address() is None:
            text = "No controller has been found in time."
        self._fail(attempts, KafkaError(ErrorCode.REQUEST_TIMED_OUT, text))

    def _fail(self, attempts: _Attempts, error: KafkaError) -> None:
        if attempts in self._pending:
            self._end(attempts, error)

    def _end(self, attempts: _Attempts, outcome: Message | KafkaError) -> None:
        del self._pending[attempts]
        for timer in (attempts.timer, attempts.retry):
            if timer is not None:
                timer.cancel()
        call_guarded("What follows the controller's answer", attempts.then, outcome)


class _Attempts:
    """One request and its attempts."""

    __slots__ = ("count", "deadline", "request", "retry", "then", "timer", "waits_for_leader")

    def __init__(self, request: Message, then: Callable[[Any], None], deadline: float) -> None:
        self.request = request
        self.then = then
        self.deadline = deadline
        self.count = 0
        self.timer: Timer | None = None
        self.retry: Timer | None = None
        self.waits_for_leader = False


def _closed() -> KafkaError:
    return KafkaError(ErrorCode.NETWORK_EXCEPTION, "The broker is shutting down.")
