"""One request on its way past the fault rules: to its handler, to an error, or to a closed connection.

A request that has to wait (until it is released, for a delay, for the test's decision) is copied out of its frame, and
its connection serves nothing else until it has gone on, as with any request that waits. A delay is of real time, also
while the broker's clock is frozen.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, TypeVar

from barnabas.broker.event_loop.waiting import Future, outcome_of
from barnabas.broker.security.mute import mute
from barnabas.kit.traffic.decoding import decoded
from barnabas.kit.traffic.details import bytes_of
from barnabas.kit.traffic.faults.item_errors import ItemErrors
from barnabas.kit.traffic.faults.rules import AFTER, BEFORE
from barnabas.wire.api_keys import ApiKey
from barnabas.wire.codec.json_form import api_name, to_json
from barnabas.wire.errors import KafkaError
from barnabas.wire.frame import encode_response
from barnabas.wire.types import chunk_bytes

if TYPE_CHECKING:
    from collections.abc import Callable

    from barnabas.broker.apis.registry import Handler, Route
    from barnabas.broker.context import RequestContext
    from barnabas.kit.traffic.faults.rules import Faults, Rule
    from barnabas.wire.names import Named
    from barnabas.wire.schema import Message

PREDICATE_S: Final = 30.0
"""How long the test's process may take to decide; then the rule does not concern the request."""
_BATCH_HEADER_BYTES: Final = 61

T = TypeVar("T")


class Serving:
    """One request, and the rules that may concern it."""

    def __init__(
        self, faults: Faults, route: Route, handler: Handler, ctx: RequestContext, request: Message, named: Named
    ) -> None:
        self._faults = faults
        self._route = route
        self._handler = handler
        self._ctx = ctx
        self._request: Any = request
        self._named = named
        self._is_copied = False

    async def serve(self) -> Message | None:
        """The response to send; raises the handler's errors."""
        for rule in list(self._faults.rules.values()):
            if rule.is_removed or not rule.condition.concerns(self._ctx, self._named):
                continue
            if rule.trigger.when and (not await self._ask(rule) or rule.is_removed):
                continue
            if rule.fires():
                return await self._fired(rule)
        response: Message | None = await outcome_of(self._handler(self._ctx, self._request))
        return response

    async def _fired(self, rule: Rule) -> Message | None:
        if rule.action.hold:
            released: Future[None] = Future()
            forget = self._faults.hold(rule, released.complete)
            rule.wake()
            await self._wait(released, forget)
        if rule.action.delay > 0:
            await self._wait_for_time(rule.action.delay)
        return await self._act(rule)

    # -- waiting

    async def _wait(self, future: Future[T], forget: Callable[[], object]) -> T:
        """The result of a future; `forget` is called if the client disconnects. A broker that stops does not wait."""
        if not self._is_copied:
            self._is_copied = True
            codec = self._route.request_codec  # the frame is not valid later
            data = bytearray(b"".join(map(chunk_bytes, codec.build(self._request))))
            self._request = codec.parse(memoryview(data), 0)[0]
        loop = self._ctx.broker.loop
        loop.call_after_turn(self._may_be_closed)
        try:
            return await future
        finally:
            if not future.is_done:
                forget()
            self._ctx.now = loop.now()
            if (waiting := self._ctx.connection.delayed) is not None:
                waiting.send_before_close = self._route.send_before_close

    def _may_be_closed(self) -> None:
        if (waiting := self._ctx.connection.delayed) is not None:
            waiting.send_before_close = False

    async def _wait_for_time(self, seconds: float) -> None:
        future: Future[None] = Future()
        loop = self._ctx.broker.loop
        await self._wait(future, loop.timers.at(loop.now() + seconds, future.complete).cancel)

    async def _ask(self, rule: Rule) -> bool:
        """Have the test's process decide whether a rule concerns the request."""
        ctx, faults, loop = self._ctx, self._faults, self._ctx.broker.loop
        decision: Future[bool] = Future()
        request = {
            "api": api_name(ctx.api_key),
            "version": ctx.api_version,
            "client_id": ctx.client_id,
            "request": to_json(self._request, ctx.api_version),
        }
        number = faults.ask(rule, request, decision.complete)
        timer = loop.timers.at(loop.now() + PREDICATE_S, lambda: faults.decide(number, yes=False))
        try:
            return await self._wait(decision, lambda: faults.questions.pop(number, None))
        finally:
            timer.cancel()

    # -- actions

    async def _act(self, rule: Rule) -> Message | None:
        action = rule.action
        if action.drop == BEFORE:
            self._drop()
            return None
        try:
            if action.error is None:
                response = await outcome_of(self._handler(self._ctx, self._request))
            elif getattr(self._request, "acks", None) == 0:
                self._drop()  # as Kafka: there is no response that could carry the error
                return None
            else:
                errors = ItemErrors(self._route, self._ctx, rule.condition, action.error)
                response = await errors.instead_of(self._handler, self._request)
        except KafkaError as error:  # of the whole request: it is a response here
            response = self._route.error_response(self._request, error)
        return self._changed(rule, decoded(self._route, response))

    def _changed(self, rule: Rule, response: Message | None) -> Message | None:
        """The response to send in place of the handler's."""
        action = rule.action
        if action.commit_then_error is not None and response is not None:
            ItemErrors(self._route, self._ctx, rule.condition, action.commit_then_error).put_into(response)
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

    def _drop(self) -> None:
        """Close the connection after the earlier responses have been sent."""
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
