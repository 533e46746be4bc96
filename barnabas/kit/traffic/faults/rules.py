"""The fault rules of one cluster: which requests each concerns, when it fires, and the waiters for its hits.

The rules are asked in the order in which they were added; the first that fires decides what happens to a request.
A rule counts the requests that it concerns: `nth` and `count` choose among those, `probability` draws for each with a
generator of its own, so a seed repeats the choices. A rule with a predicate asks the test's process about each first.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from functools import partial
from itertools import count
from random import Random
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from barnabas.kit.errors import NotFoundError
from barnabas.wire.codec.json_form import api_name

if TYPE_CHECKING:
    from barnabas.broker.context import RequestContext
    from barnabas.wire.api_keys import ApiKey
    from barnabas.wire.errors import ErrorCode
    from barnabas.wire.names import Named

BEFORE: Final = "before"
AFTER: Final = "after"


@dataclass(frozen=True, slots=True)
class Condition:
    """The requests that a rule concerns; None is any."""

    api: ApiKey | None = None
    topic: str | None = None
    partition: int | None = None
    group: str | None = None
    transactional_id: str | None = None
    client_id: str | None = None
    principal: str | None = None

    def concerns(self, ctx: RequestContext, named: Named) -> bool:
        """Whether a request that names this is one of them."""
        if self.api is not None and ctx.api_key != self.api:
            return False
        if self.client_id is not None and ctx.client_id != self.client_id:
            return False
        if self.principal is not None and str(ctx.principal) != self.principal:
            return False
        if self.group is not None and self.group not in named.groups:
            return False
        if self.transactional_id is not None and self.transactional_id not in named.transactional_ids:
            return False
        if self.topic is not None and self.topic not in named.topics:
            return False
        return self.partition is None or self._has_partition(named)

    def _has_partition(self, named: Named) -> bool:
        if self.topic is not None:
            return (self.topic, self.partition) in named.partitions
        return any(index == self.partition for _, index in named.partitions)

    @property
    def has_items(self) -> bool:
        """Whether it concerns single items of a request."""
        return self.topic is not None or self.partition is not None


@dataclass(frozen=True, slots=True)
class Action:
    """The action on a request; `delay` in seconds comes first and can be combined with each of the others."""

    hold: bool = False
    delay: float = 0.0
    error: ErrorCode | None = None
    commit_then_error: ErrorCode | None = None
    drop: str | None = None
    half: bool = False
    corrupt: bool = False
    throttle_ms: int | None = None

    def __str__(self) -> str:
        parts = [name for name in ("hold", "half", "corrupt") if getattr(self, name)]
        parts += [f"delay={self.delay:g}"] if self.delay else []
        for name in ("error", "commit_then_error"):
            code = getattr(self, name)
            parts += [] if code is None else [f"{name}={code.name}"]
        parts += [] if self.drop is None else [f"drop={self.drop}"]
        parts += [] if self.throttle_ms is None else [f"throttle_ms={self.throttle_ms}"]
        return ", ".join(parts) or "observe"


@dataclass(frozen=True, slots=True)
class Trigger:
    """Which of the requests that a rule concerns it fires for."""

    nth: int | None = None
    count: int | None = None
    probability: float = 1.0
    seed: int = 0
    when: bool = False


@dataclass(eq=False, slots=True)
class Rule:
    """One rule, with its hits and held requests."""

    number: int
    condition: Condition
    trigger: Trigger
    action: Action
    seen: int = 0
    """Requests that it concerned."""
    hits: int = 0
    is_removed: bool = False
    held: dict[int, Callable[[], None]] = field(default_factory=dict)
    """Functions that let the held requests go on, in their order."""
    waiters: dict[object, Callable[[], None]] = field(default_factory=dict)
    random: Random = field(init=False)

    def __post_init__(self) -> None:
        self.random = Random(self.trigger.seed)

    def fires(self) -> bool:
        """Whether it fires for one more request that it concerns."""
        trigger = self.trigger
        self.seen += 1
        first = 1 if trigger.nth is None else trigger.nth
        limit = trigger.count if trigger.count is not None or trigger.nth is None else 1
        if self.seen < first or (limit is not None and self.hits >= limit):
            return False
        if trigger.probability < 1.0 and self.random.random() >= trigger.probability:
            return False
        self.hits += 1
        self.wake()
        return True

    def wake(self) -> None:
        """Wake the waiters for its hits."""
        for wake in list(self.waiters.values()):
            wake()

    def to_json(self) -> dict[str, Any]:
        """The rule for the control channel."""
        condition = asdict(self.condition)
        condition["api"] = None if self.condition.api is None else api_name(self.condition.api)
        return {
            "rule": self.number,
            **{name: value for name, value in condition.items() if value is not None},
            **{name: value for name, value in asdict(self.trigger).items() if value not in (None, False)},
            "action": str(self.action),
            "seen": self.seen,
            "hits": self.hits,
            "held": len(self.held),
        }


class Question(NamedTuple):
    """One request that waits for the test's process to decide whether a rule concerns it."""

    number: int
    rule: Rule
    request: dict[str, Any]
    decide: Callable[[bool], None]


class Faults:
    """The rules of one cluster, in the order in which they were added."""

    def __init__(self) -> None:
        self.rules: dict[int, Rule] = {}
        self.questions: dict[int, Question] = {}
        """The open questions, by number."""
        self.question_waiters: dict[object, Callable[[], None]] = {}
        """Called when there is a question."""
        self._rule_numbers = count(1)
        self._numbers = count(1)

    @property
    def is_empty(self) -> bool:
        """Whether there is no rule."""
        return not self.rules

    def __getitem__(self, number: int) -> Rule:
        """A rule. NotFoundError if it was removed, or never added."""
        try:
            return self.rules[number]
        except KeyError:
            raise NotFoundError(f"There is no fault rule {number}: it was removed, or never added") from None

    def add(self, condition: Condition, trigger: Trigger, action: Action) -> Rule:
        """Add a rule behind the others."""
        rule = Rule(next(self._rule_numbers), condition, trigger, action)
        self.rules[rule.number] = rule
        return rule

    def remove(self, rule: Rule) -> None:
        """Remove a rule: requests that it holds go on, and it does not concern requests with an open question."""
        self.rules.pop(rule.number, None)
        rule.is_removed = True
        for question in list(self.questions.values()):
            if question.rule is rule:
                self.decide(question.number, yes=False)
        self.release(rule)
        rule.wake()

    def clear(self) -> None:
        """Remove all rules."""
        for rule in list(self.rules.values()):
            self.remove(rule)

    def release(self, rule: Rule, limit: int | None = None) -> int:
        """Let held requests go on, all or the first few; return their number."""
        numbers = list(rule.held)[:limit]
        for number in numbers:
            rule.held.pop(number)()
        return len(numbers)

    def hold(self, rule: Rule, go_on: Callable[[], None]) -> Callable[[], object]:
        """Hold a request until it is released; return a function that drops it when its client has disconnected."""
        number = next(self._numbers)
        rule.held[number] = go_on
        return partial(rule.held.pop, number, None)

    def ask(self, rule: Rule, request: dict[str, Any], decide: Callable[[bool], None]) -> int:
        """Ask the test's process whether a rule concerns a request; the number of the question."""
        number = next(self._numbers)
        self.questions[number] = Question(number, rule, request, decide)
        for wake in list(self.question_waiters.values()):
            wake()
        return number

    def decide(self, number: int, *, yes: bool) -> None:
        """Answer a question; ignored if it is answered already, or if its client has disconnected."""
        question = self.questions.pop(number, None)
        if question is not None:
            question.decide(yes)
