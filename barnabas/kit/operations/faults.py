"""Operations on fault rules: `fault_add`, `fault_list`, `fault_remove`, `fault_wait`, `fault_release`, predicates."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

import trio

from barnabas.kit.errors import ControlError
from barnabas.kit.operations.registry import operation
from barnabas.kit.operations.requests import api_named
from barnabas.kit.traffic.faults.rules import AFTER, BEFORE, Action, Condition, Trigger
from barnabas.kit.values import Values
from barnabas.wire.api_keys import ApiKey
from barnabas.wire.errors import ErrorCode
from barnabas.wire.registry import message_for

if TYPE_CHECKING:
    from barnabas.kit.clusters.virtual_cluster import VirtualCluster

CONDITION: Final = ("api", "topic", "partition", "group", "transactional_id", "client_id", "principal")
TRIGGER: Final = ("nth", "count", "probability", "seed", "when")
ACTION: Final = ("error", "delay", "drop", "half", "corrupt", "throttle_ms", "commit_then_error", "hold")


@operation("fault_add", *CONDITION, *TRIGGER, *ACTION)
async def fault_add(cluster: VirtualCluster, values: Values) -> object:
    """Add a rule; its number."""
    api = values.text("api", None)
    condition = Condition(
        api=None if api is None else api_named(api),
        topic=values.text("topic", None),
        partition=values.integer("partition", None),
        group=values.text("group", None),
        transactional_id=values.text("transactional_id", None),
        client_id=values.text("client_id", None),
        principal=values.text("principal", None),
    )
    return cluster.traffic.faults.add(condition, _trigger(values), _action(values, condition)).to_json()


def _trigger(values: Values) -> Trigger:
    trigger = Trigger(
        nth=values.integer("nth", None),
        count=values.integer("count", None),
        probability=values.number("probability", 1.0),
        seed=values.integer("seed", 0),
        when=values.flag("when", default=False),
    )
    if (trigger.nth or 1) < 1 or trigger.nth == 0:
        raise ControlError("nth counts from 1")
    if trigger.count is not None and trigger.count < 1:
        raise ControlError("count is at least 1")
    if not 0.0 < trigger.probability <= 1.0:
        raise ControlError("probability is above 0, and 1 at most")
    return trigger


def _action(values: Values, condition: Condition) -> Action:
    action = Action(
        hold=values.flag("hold", default=False),
        delay=values.number("delay", 0.0),
        error=_code(values, "error"),
        commit_then_error=_code(values, "commit_then_error"),
        drop=values.text("drop", None),
        half=values.flag("half", default=False),
        corrupt=values.flag("corrupt", default=False),
        throttle_ms=values.integer("throttle_ms", None),
    )
    if action.drop not in {None, BEFORE, AFTER}:
        raise ControlError('drop is "before" or "after": before or after the request is done')
    if action.delay < 0 or (action.throttle_ms or 0) < 0:
        raise ControlError("delay and throttle_ms are not negative")
    if action.corrupt and condition.api not in {ApiKey.FETCH, ApiKey.SHARE_FETCH}:
        raise ControlError("corrupt is for Fetch and ShareFetch, whose responses have batches")
    if action.throttle_ms is not None and not _can_throttle(condition.api):
        raise ControlError("throttle_ms needs an API whose responses have a throttle time")
    if sum(values.has(name) for name in ACTION if name not in {"delay", "hold", "throttle_ms"}) > 1:
        raise ControlError("A rule does one thing: error, drop, half, corrupt or commit_then_error; add another rule")
    return action


def _can_throttle(api: ApiKey | None) -> bool:
    return api is not None and hasattr(message_for(api)[1](), "throttle_time_ms")


def _code(values: Values, name: str) -> ErrorCode | None:
    """An error by its name, or its number."""
    text = values.text(name, None)
    if text is None:
        return None
    try:
        code = ErrorCode(int(text)) if text.lstrip("-").isdecimal() else ErrorCode[text.upper()]
    except (KeyError, ValueError):
        raise ControlError(f"Kafka has no error {text!r}; they are called as NOT_LEADER_OR_FOLLOWER") from None
    if code == ErrorCode.NONE:
        raise ControlError("NONE is no error")
    return code


@operation("fault_list")
async def fault_list(cluster: VirtualCluster, values: Values) -> object:  # noqa: ARG001
    """All rules, in the order in which they are asked."""
    return {"rules": [rule.to_json() for rule in cluster.traffic.faults.rules.values()]}


@operation("fault_remove", "rule")
async def fault_remove(cluster: VirtualCluster, values: Values) -> object:
    """Remove one rule and return it, or remove all of them; the requests that they hold go on."""
    faults = cluster.traffic.faults
    if not values.has("rule"):
        faults.clear()
        return {}
    rule = faults[values.integer("rule")]
    faults.remove(rule)
    return rule.to_json()


@operation("fault_wait", "rule", "hits", "held", "timeout_s")
async def fault_wait(cluster: VirtualCluster, values: Values) -> object:
    """Return a rule once it has had so many hits, or holds so many requests, or the time is up."""
    rule = cluster.traffic.faults[values.integer("rule")]
    hits, held = values.integer("hits", 0), values.integer("held", 0)
    await _until(
        rule.waiters,
        lambda: rule.is_removed or (rule.hits >= hits and len(rule.held) >= held),
        values.number("timeout_s", 10.0),
    )
    return rule.to_json()


@operation("fault_release", "rule", "count")
async def fault_release(cluster: VirtualCluster, values: Values) -> object:
    """Let requests go on that a rule holds: the first `count`, or all, and then the rule is removed."""
    faults = cluster.traffic.faults
    rule = faults[values.integer("rule")]
    limit = values.integer("count", None)
    released = faults.release(rule, limit)
    if limit is None:
        faults.remove(rule)
    return {"released": released}


@operation("fault_questions", "timeout_s")
async def fault_questions(cluster: VirtualCluster, values: Values) -> object:
    """The requests that wait for a decision, as soon as there are some, or none when the time is up."""
    faults = cluster.traffic.faults
    await _until(faults.question_waiters, lambda: bool(faults.questions), values.number("timeout_s", 10.0))
    questions = faults.questions.values()
    return {
        "questions": [
            {"question": question.number, "rule": question.rule.number, **question.request} for question in questions
        ]
    }


@operation("fault_answer", "question", "concerns")
async def fault_answer(cluster: VirtualCluster, values: Values) -> object:
    """Decide whether a rule concerns a request."""
    cluster.traffic.faults.decide(values.integer("question"), yes=values.flag("concerns", default=False))
    return {}


async def _until(waiters: dict[object, Callable[[], Any]], is_done: Callable[[], bool], timeout_s: float) -> None:
    """Wait until the condition holds, or the time is up; `waiters` are called when it may hold."""
    key = object()
    with trio.move_on_after(timeout_s):
        try:
            while not is_done():
                event = trio.Event()
                waiters[key] = event.set
                await event.wait()
        finally:
            waiters.pop(key, None)
