"""Faults by rule: errors, delays and lost connections for requests of the code under test.

    with kafka.faults.add(api="Produce", topic="orders", nth=2, error="NOT_LEADER_OR_FOLLOWER") as rule:
        ...
    assert rule.hits == 1

The broker keeps the rules. A predicate (`when`) is called in this process: a thread fetches the requests that wait for
its decision over the control channel.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Final

from barnabas.testing.errors import BrokerError, RefusedError
from barnabas.testing.forms import Async, Sync, operation

if TYPE_CHECKING:
    from typing import Self

    from barnabas.testing.link import Link

Predicate = Callable[[Mapping[str, Any]], bool]
"""Decides on a request in Kafka's JSON: camelCase fields, records in base64."""
POLL_S: Final = 5.0

__tracebackhide__ = True
"""For pytest: a failure is shown where the test made it."""


class _Decisions:
    """The predicates of one cluster, and the thread that calls them; it ends with the last of them."""

    def __init__(self, link: Link) -> None:
        self._link = link
        self._lock = threading.Lock()
        self._predicates: dict[int, Predicate] = {}
        self._thread: threading.Thread | None = None
        self.failures: dict[int, Exception] = {}
        """The exceptions of predicates, by rule; the request went on as if the rule did not concern it."""

    def add(self, rule: int, predicate: Predicate) -> None:
        """Call a predicate for a rule from now on."""
        with self._lock:
            self._predicates[rule] = predicate
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="barnabas-faults", daemon=True)
                self._thread.start()

    def remove(self, rule: int) -> None:
        """Do not call it any more."""
        with self._lock:
            self._predicates.pop(rule, None)

    def clear(self) -> None:
        """Call none of them any more."""
        with self._lock:
            self._predicates.clear()

    def _run(self) -> None:
        try:
            while self._goes_on():
                values = {"timeout_s": POLL_S}
                for question in self._link.perform("fault_questions", values, wait_s=POLL_S)["questions"]:
                    decision = {"question": question["question"], "concerns": self._decide(question)}
                    self._link.perform("fault_answer", decision)
        except (BrokerError, RefusedError):
            with self._lock:  # the cluster was closed
                self._thread = None

    def _goes_on(self) -> bool:
        with self._lock:
            if self._predicates:
                return True
            self._thread = None
            return False

    def _decide(self, question: Mapping[str, Any]) -> bool:
        with self._lock:
            predicate = self._predicates.get(question["rule"])
        if predicate is None:
            return False
        try:
            return bool(predicate(question["request"]))
        except Exception as error:
            self.failures[question["rule"]] = error
            return False


class RuleOperations:
    """Operations on a rule. A context manager in both forms: leaving it removes the rule."""

    def __init__(self, link: Link, decisions: _Decisions, number: int, text: str) -> None:
        self._link = link
        self._decisions = decisions
        self._text = text
        self._last: dict[str, Any] = {}
        self._is_removed = False
        self.number = number

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._text})"

    @operation
    def wait(self, hits: int = 1, *, timeout: float | None = None) -> None:
        """Wait until it has fired so often. AssertionError when the time is up."""
        self._wait({"hits": hits}, timeout, f"fired {hits} time{'s'[: hits > 1]}", "hits", hits)

    @operation
    def remove(self) -> None:
        """Remove it; requests that it holds go on."""
        self._remove()

    def _remove(self) -> None:
        if self._is_removed:
            return
        self._is_removed = True
        self._decisions.remove(self.number)
        try:
            self._last = self._link.perform("fault_remove", {"rule": self.number})
        except RefusedError:
            return  # `clear`, or the end of the cluster, has removed it
        self._check()

    def _read(self) -> dict[str, Any]:
        if not self._is_removed:
            rules = self._link.perform("fault_list")["rules"]
            self._last = next((rule for rule in rules if rule["rule"] == self.number), self._last)
        self._check()
        return self._last

    def _check(self) -> None:
        """Raise the predicate's exception."""
        failure = self._decisions.failures.pop(self.number, None)
        if failure is not None:
            raise AssertionError(f"The predicate of the rule {self._text} has failed: {failure!r}") from failure

    def _wait(self, values: dict[str, Any], timeout: float | None, what: str, name: str, least: int) -> None:
        seconds = self._link.deadline(timeout).seconds
        request = {"rule": self.number, "timeout_s": seconds, **values}
        self._last = self._link.perform("fault_wait", request, wait_s=seconds)
        self._check()
        if self._last[name] < least:
            requests = f"{self._last['seen']} matching requests, {self._last['hits']} of them hit"
            raise AssertionError(f"The rule {self._text} has not {what}: {requests}.{self._link.context()}")


class Rule(RuleOperations, Sync):
    """A rule, for plain tests."""

    @property
    def hits(self) -> int:
        """How often it has fired."""
        return int(self._read().get("hits", 0))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._remove()


class AsyncRule(RuleOperations, Async):
    """A rule, for tests in asyncio, trio and anyio."""

    @operation
    def hits(self) -> int:
        """How often it has fired."""
        return int(self._read().get("hits", 0))

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.remove()


class HeldOperations:
    """Requests that are held at the broker."""

    _rule: RuleOperations
    _link: Link

    @operation
    def wait(self, count: int = 1, *, timeout: float | None = None) -> None:
        """Wait until so many requests are held. AssertionError when the time is up."""
        self._rule._wait({"held": count}, timeout, f"{count} request{'s'[: count > 1]} to hold", "held", count)

    @operation
    def release(self, count: int | None = None) -> None:
        """Let the first `count` of them go on; without a count all, and hold no more."""
        values = {"rule": self._rule.number, "count": count}
        self._link.perform("fault_release", values)
        if count is None:
            self._rule._is_removed = True
            self._rule._decisions.remove(self._rule.number)


class Held(HeldOperations, Sync):
    """Requests that are held, for plain tests. Leaving the context releases them."""

    def __init__(self, rule: Rule) -> None:
        self._rule = rule
        self._link = rule._link

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._rule._remove()


class AsyncHeld(HeldOperations, Async):
    """The same, for tests in asyncio, trio and anyio."""

    _rule: AsyncRule

    def __init__(self, faults: AsyncFaults, values: dict[str, Any]) -> None:
        self._faults = faults
        self._values = values

    async def __aenter__(self) -> Self:
        rule = await self._faults.add(**self._values)
        self._rule = rule
        self._link = rule._link
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._rule.remove()


class FaultsOperations:
    """The fault rules of a cluster. The first rule that fires for a request decides what happens to it."""

    def __init__(self, link: Link) -> None:
        self._link = link
        self._decisions = _Decisions(link)

    @operation
    def clear(self) -> None:
        """Remove all rules; requests that are held go on."""
        self._decisions.clear()
        self._link.perform("fault_remove")

    def _add(self, values: dict[str, Any], when: Predicate | None) -> tuple[int, str]:
        arguments = {name: value for name, value in values.items() if value is not None and value is not False}
        rule = self._link.perform("fault_add", arguments | ({} if when is None else {"when": True}))["rule"]
        if when is not None:
            self._decisions.add(rule, when)
        return rule, ", ".join(f"{name}={value!r}" for name, value in arguments.items())


class Faults(FaultsOperations, Sync):
    """The fault rules of a cluster, for plain tests."""

    def add(
        self,
        api: str | None = None,
        *,
        topic: str | None = None,
        partition: int | None = None,
        group: str | None = None,
        transactional_id: str | None = None,
        client_id: str | None = None,
        principal: str | None = None,
        nth: int | None = None,
        count: int | None = None,
        probability: float | None = None,
        seed: int | None = None,
        when: Predicate | None = None,
        error: str | None = None,
        delay: float | None = None,
        drop: str | None = None,
        half: bool = False,
        corrupt: bool = False,
        throttle_ms: int | None = None,
        commit_then_error: str | None = None,
        hold: bool = False,
    ) -> Rule:
        """Add a rule. Without an action it only counts. RefusedError for one that makes no sense.

        Which requests: `api` as Kafka calls it, and the names in them or their client. Which of those: the `nth`, the
        first `count` (from the nth on, if both are given), with a `probability` that `seed` repeats, and those that
        `when` accepts. What happens: an `error` in place of the answer (of the items that are named, where the API has
        items), a `delay` in seconds, the connection dropped "before" or "after" the request is done, `half` an answer,
        a batch that is `corrupt`, a throttle time, or an error though the request was done (`commit_then_error`).
        """
        arguments = {name: value for name, value in locals().items() if name not in {"self", "when"}}
        return Rule(self._link, self._decisions, *self._add(arguments, when))


class AsyncFaults(FaultsOperations, Async):
    """The fault rules of a cluster, for tests in asyncio, trio and anyio."""

    @operation
    def add(self, /, api: str | None = None, *, when: Predicate | None = None, **rule: Any) -> AsyncRule:
        """Add a rule: the arguments of `Faults.add`."""
        return AsyncRule(self._link, self._decisions, *self._add({"api": api, **rule}, when))
