"""One request on its way past the fault rules: to its handler, to an error, or to a closed connection.

A request that has to wait (for a release, a delay, the decision of the test's process) is copied out of its frame, and
its connection serves nothing else until it has gone on, as with any delayed response. A delay is of real time, also
while the broker's clock is frozen.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, Final

from barnabas.broker.net.delayed_response import DelayedResponse
from barnabas.broker.security.mute import mute
from barnabas.kit.traffic.decoding import decoded
from barnabas.kit.traffic.details import bytes_of
from barnabas.kit.traffic.faults.item_errors import ItemErrors
from barnabas.kit.traffic.faults.rules import AFTER, BEFORE
from barnabas.kit.traffic.recorder import api_name
from barnabas.wire.api_keys import ApiKey
from barnabas.wire.codec.json_form import to_json
from barnabas.wire.errors import KafkaError
from barnabas.wire.frame import encode_response
from barnabas.wire.types import chunk_bytes

if TYPE_CHECKING:
    from barnabas.broker.apis.registry import Route
    from barnabas.broker.context import RequestContext
    from barnabas.broker.net.delayed_response import Outcome
    from barnabas.kit.traffic.faults.item_errors import Answering
    from barnabas.kit.traffic.faults.rules import Faults, Rule
    from barnabas.kit.traffic.names import Named
    from barnabas.wire.schema import Message

PREDICATE_S: Final = 30.0
"""How long the test's process may take to decide; then the rule does not concern the request."""
_BATCH_HEADER_BYTES: Final = 61

Step = Callable[[], "DelayedResponse | Outcome"]


class Serving:
    """One request, and the rules that may concern it."""

    def __init__(
        self, faults: Faults, route: Route, handler: Answering, ctx: RequestContext, request: Message, named: Named
    ) -> None:
        self._faults = faults
        self._route = route
        self._handler = handler
        self._ctx = ctx
        self._request: Any = request
        self._named = named
        self._delayed: DelayedResponse | None = None

    def start(self) -> DelayedResponse | Outcome:
        """The outcome, as of a handler. Errors as those of the handler."""
        return self._next(iter(list(self._faults.rules.values())))

    def _next(self, rules: Iterator[Rule]) -> DelayedResponse | Outcome:
        for rule in rules:
            if rule.is_removed or not rule.wanted.concerns(self._ctx, self._named):
                continue
            if rule.trigger.when:
                return self._ask(rule, rules)
            if rule.fires():
                return self._fired(rule)
        return self._handler(self._ctx, self._request)

    def _fired(self, rule: Rule) -> DelayedResponse | Outcome:
        return self._held(rule) if rule.action.hold else self._after_hold(rule)

    def _after_hold(self, rule: Rule) -> DelayedResponse | Outcome:
        if rule.action.delay > 0:
            return self._wait_for_time(rule.action.delay, lambda: self._act(rule))
        return self._act(rule)

    # -- waiting

    def _wait(self, step: Step, begin: Callable[[Callable[[], None]], Callable[[], None]]) -> DelayedResponse:
        """Go on with `step` when what is given to `begin` is called; `begin` returns what forgets it."""
        delayed = self._delayed
        if delayed is None:
            delayed = self._delayed = DelayedResponse()
            codec = self._route.request_codec  # the frame is not valid later
            data = bytearray(b"".join(map(chunk_bytes, codec.build(self._request))))
            self._request = codec.parse(memoryview(data), 0)[0]
        loop = self._ctx.broker.loop

        def go_on() -> None:
            if not delayed.is_done:
                self._ctx.now = loop.now()
                outcome = step()
                if outcome is not delayed:  # else it waits again
                    delayed.follow(outcome)

        delayed.on_cancel = begin(delayed.guard(go_on))
        return delayed

    def _wait_for_time(self, seconds: float, step: Step) -> DelayedResponse:
        loop = self._ctx.broker.loop
        return self._wait(step, lambda go_on: loop.timers.at(loop.now() + seconds, go_on).cancel)

    def _held(self, rule: Rule) -> DelayedResponse:
        waiting = self._wait(lambda: self._after_hold(rule), lambda go_on: self._faults.hold(rule, go_on))
        rule.tell()
        return waiting

    def _ask(self, rule: Rule, rules: Iterator[Rule]) -> DelayedResponse:
        """Have the test's process decide; a request that is concerned may fire the rule, others go on."""
        ctx, faults, loop = self._ctx, self._faults, self._ctx.broker.loop
        answer = False

        def step() -> DelayedResponse | Outcome:
            return self._fired(rule) if answer and not rule.is_removed and rule.fires() else self._next(rules)

        def begin(go_on: Callable[[], None]) -> Callable[[], None]:
            def decide(yes: bool) -> None:
                nonlocal answer
                answer = yes
                timer.cancel()
                go_on()

            request = {
                "api": api_name(ctx.api_key),
                "version": ctx.api_version,
                "client_id": ctx.client_id,
                "request": to_json(self._request, ctx.api_version),
            }
            number = faults.ask(rule, request, decide)
            timer = loop.timers.at(loop.now() + PREDICATE_S, lambda: faults.decide(number, yes=False))

            def forget() -> None:
                timer.cancel()
                faults.questions.pop(number, None)

            return forget

        return self._wait(step, begin)

    # -- what happens

    def _act(self, rule: Rule) -> DelayedResponse | Outcome:
        action = rule.action
        if action.drop == BEFORE:
            self._drop()
            return None
        outcome: DelayedResponse | Outcome
        if action.error is not None:
            if getattr(self._request, "acks", None) == 0:
                self._drop()  # as Kafka: there is no response that could tell
                return None
            errors = ItemErrors(self._route, self._ctx, rule.wanted, action.error)
            outcome = errors.instead_of(self._handler, self._request)
        else:
            outcome = self._handler(self._ctx, self._request)
        return self._then(outcome, lambda response: self._changed(rule, response))

    def _changed(self, rule: Rule, response: Message | None) -> Message | None:
        """The response that is sent for that of the handler."""
        action = rule.action
        if action.commit_then_error is not None and response is not None:
            ItemErrors(self._route, self._ctx, rule.wanted, action.commit_then_error).put_into(response)
        if action.corrupt and response is not None:
            _corrupt(response)
        if action.throttle_ms is not None and response is not None:
            response.throttle_time_ms = action.throttle_ms  # type: ignore[attr-defined]
            connection, loop, throttle_ms = self._ctx.connection, self._ctx.broker.loop, action.throttle_ms
            loop.call_after_turn(lambda: None if connection.delayed else mute(connection, loop, throttle_ms))
        if action.half:
            self._send_half(response)
            return None
        if action.drop == AFTER:
            self._drop()
            return None
        return response

    def _then(
        self, outcome: DelayedResponse | Outcome, change: Callable[[Message | None], Message | None]
    ) -> DelayedResponse | Outcome:
        """An outcome with its response changed; errors of the whole request are responses here."""

        def changed(answer: Outcome) -> Outcome:
            if isinstance(answer, KafkaError):
                answer = self._route.error_response(self._request, answer)
            return answer if isinstance(answer, Exception) else change(decoded(self._route, answer))  # type: ignore[arg-type]

        if not isinstance(outcome, DelayedResponse):
            return changed(outcome)
        delayed = DelayedResponse()
        delayed.follow(outcome, lambda answer: delayed.complete(changed(answer)))
        return delayed

    def _drop(self) -> None:
        """Close the connection, when what was sent before has gone."""
        self._ctx.connection.is_closing = True

    def _send_half(self, response: Message | None) -> None:
        """Send the first half of a response, and close the connection."""
        connection = self._ctx.connection
        if response is not None:
            chunks = encode_response(response, self._route.api_version, self._ctx.correlation_id)
            frame = b"".join(map(chunk_bytes, chunks))
            connection.out.append(frame[: len(frame) // 2])
            connection.out_bytes += len(frame) // 2
        self._drop()


def _corrupt(response: Any) -> None:
    """Turn one bit among the records of the first batch of a fetch response; nothing in one without records."""
    if response.api_key not in (ApiKey.FETCH, ApiKey.SHARE_FETCH):
        return
    for topic in response.responses:
        for partition in topic.partitions:
            data = bytes_of(partition.records)
            if len(data) > _BATCH_HEADER_BYTES:
                end = min(len(data), 12 + int.from_bytes(data[8:12], "big"))
                data[(_BATCH_HEADER_BYTES + end) // 2] ^= 0x10
                partition.records = memoryview(data)
                return
