"""Resolves the regular expressions of consumer groups to topics (KIP-848).

If members may describe only some topics, an expression matches the topics that the member with the last heartbeat may
describe, as in Kafka: a change of its access takes effect at the next refresh.

The response to a heartbeat with a new expression has the assignment by expressions resolved so far. The expression is
resolved afterwards, in steps of at most `MATCHES_PER_STEP` comparisons, so that no expression delays other requests.
The result is a record for each expression that has changed and, when the group's topics have changed, a new group
epoch; members get the partitions with their next heartbeats. Expressions are resolved

- when they are new, immediately;
- when topics have been created or deleted, but not within `REFRESH_MIN_S` of the last time;
- after `REFRESH_MAX_S`, and when a coordinator has loaded the group.

Source: Kafka 4.4 `GroupMetadataManager.maybeUpdateRegularExpressions`. There new expressions, too, are resolved at most
every 10 seconds, and only with heartbeats.
"""

from __future__ import annotations

import logging
from collections import deque
from typing import TYPE_CHECKING

from barnabas.coord.groups.consumer import records
from barnabas.coord.groups.consumer.records import ResolvedRegex
from barnabas.coord.groups.consumer.regex import matching
from barnabas.coord.groups.consumer.timers import ConsumerTimer
from barnabas.coord.groups.modern.metadata_hash import group_hash
from barnabas.coord.machine import Moment, Result

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence

    from barnabas.coord.groups.consumer.group import ConsumerGroup
    from barnabas.coord.groups.topics import Topics
    from barnabas.coord.timers import Timers

logger = logging.getLogger("kafka.coordinator.group.GroupMetadataManager")

MATCHES_PER_STEP = 500
"""How many names are compared with expressions in one step, which takes about a millisecond on a busy core."""
MATCHES_PER_EXPRESSION = 50
"""As how many of these an expression counts: it may have to be compiled again."""
STEP_PAUSE_S = 0.001
"""Pause before the first step and between two, in which other requests are handled."""
REFRESH_MIN_S = 10.0
"""Minimum time between the end of a resolution and a refresh because topics have changed."""
REFRESH_MAX_S = 600.0
"""Time after which expressions are refreshed even if no topics have changed."""

_STEP = ConsumerTimer("consumer-regex-step")


class Resolution:
    """The resolution of expressions of one group, in progress."""

    def __init__(
        self,
        group_id: str,
        jobs: Mapping[str, Sequence[str]],
        changed: Collection[str] | None,
        may_describe: Callable[[str], bool] | None = None,
    ) -> None:
        """`jobs` has the names to match by expression; topics that are not in `changed` keep their last result.

        An expression without names costs nothing.

        `changed` None: `jobs` has all names. Topics that `may_describe` refuses match nothing.
        """
        self._may_describe = may_describe
        self.group_id = group_id
        self._jobs = deque([(regex, names) for regex, names in jobs.items() if names])
        self._position = 0
        self._changed = changed
        self._matches: dict[str, set[str]] = {regex: set() for regex in jobs}

    def step(self, most: int) -> int:
        """Match at most so many names; returns how many were matched, with what their expressions count as."""
        remaining = most
        while self._jobs and remaining:
            regex, names = self._jobs[0]
            if not self._position:
                remaining = max(1, remaining - MATCHES_PER_EXPRESSION)
            part = names[self._position : self._position + remaining]
            self._matches[regex].update(filter(self._may_describe, matching(regex, part)))
            self._position += len(part)
            remaining -= len(part)
            if self._position == len(names):
                self._jobs.popleft()
                self._position = 0
        return most - remaining

    @property
    def is_done(self) -> bool:
        """Whether all names have been matched."""
        return not self._jobs

    def apply(self, regexes: Mapping[str, ResolvedRegex], at: Moment) -> dict[str, ResolvedRegex]:
        """The expressions that are not in `regexes` or have other topics there, with their new topics."""
        changed = {}
        for regex, matches in self._matches.items():
            known = regexes.get(regex)
            if known is None or self._changed is None:
                topics = frozenset(matches)
            else:
                topics = known.topics.difference(self._changed).union(matches)
            if known is None or known.topics != topics:
                changed[regex] = ResolvedRegex(topics, timestamp_ms=at.now_ms)
        return changed


class RegexResolver:
    """Resolves the expressions of all groups of one coordinator, one group after the other."""

    def __init__(self, topics: Topics, timers: Timers, *, hides_topics: bool = False) -> None:
        """With `hides_topics` an expression is resolved to what the member sees that has sent the last heartbeat."""
        self._hides_topics = hides_topics
        self._may_describe: dict[str, Callable[[str], bool]] = {}
        """By group: what that member sees. Nothing is resolved before there is one, after a load."""
        self._topics = topics
        self._timers = timers
        self._queue: dict[str, None] = {}
        """The groups to be resolved, in order."""
        self._current: Resolution | None = None
        """The resolution of the first group of the queue; None before it has begun."""
        self._changed: dict[str, set[str] | None] = {}
        """By group: topics created or deleted since its last resolution began; None: unknown."""
        self._ended_at: dict[str, float] = {}
        """By group: when its last resolution ended, monotonic seconds."""

    def request(self, group_id: str, at: Moment) -> None:
        """Resolve the group's expressions that are not resolved, and those whose topics may have changed."""
        self._queue.setdefault(group_id)
        self._timers.set_if_unset(_STEP, at.now + STEP_PAUSE_S)

    def seen(self, group: ConsumerGroup, may_describe: Callable[[str], bool] | None, at: Moment) -> None:
        """A member that sees these topics has sent a heartbeat; expressions that waited for one are resolved."""
        if may_describe is None:
            return
        group_id = group.group_id
        is_first = group_id not in self._may_describe
        self._may_describe[group_id] = may_describe
        if is_first and group.regex_counts:
            self.request(group_id, at)

    def loaded(self, group: ConsumerGroup, at: Moment) -> None:
        """The group was loaded: topics may have changed since its expressions were resolved."""
        if group.regex_counts:
            self._changed[group.group_id] = None
            self.request(group.group_id, at)

    def topics_changed(self, group: ConsumerGroup, topics: Collection[str], at: Moment) -> None:
        """Topics were created, deleted or changed: refresh the group's expressions, at the earliest time allowed."""
        if not group.regex_counts:
            return
        group_id = group.group_id
        changed = self._changed.setdefault(group_id, set())
        if changed is not None:
            changed.update(topics)
        earliest = at.now + STEP_PAUSE_S
        if group_id in self._ended_at:
            earliest = max(earliest, self._ended_at[group_id] + REFRESH_MIN_S)
        key = ConsumerTimer("consumer-regex", group_id)
        planned = self._timers.deadline(key)
        if planned is None or earliest < planned:
            self._timers.set(key, earliest)

    def forget(self, group_id: str) -> None:
        """The group is removed."""
        self._drop(group_id)
        self._changed.pop(group_id, None)
        self._ended_at.pop(group_id, None)
        self._may_describe.pop(group_id, None)
        self._timers.cancel(ConsumerTimer("consumer-regex", group_id))

    # ---- timers

    def refresh_due(self, group_id: str, at: Moment) -> None:
        """Refresh a group's expressions: against the topics that have changed, or if these are unknown, against all."""
        self._changed.setdefault(group_id, None)
        self.request(group_id, at)

    def step(self, find: Callable[[str], ConsumerGroup | None], at: Moment, result: Result) -> ConsumerGroup | None:
        """Run one step; `find` returns a group by its id. Returns a group that has got a new epoch.

        `result` has records of at most one group, since they must be replayed before the next step.
        """
        remaining = MATCHES_PER_STEP
        moved = None
        while self._queue and remaining > 0 and not result.records:
            group_id = next(iter(self._queue))
            group = find(group_id)
            if group is None or not group.regex_counts or not self._may_resolve(group_id):
                self._drop(group_id)
                continue
            if self._current is None:
                self._current = self._begin(group)
            remaining -= 1 + self._current.step(remaining)
            if self._current.is_done:
                moved = self._finish(group, self._current, at, result)
        if self._queue:
            self._timers.set(_STEP, at.now + STEP_PAUSE_S)
        return moved

    def _may_resolve(self, group_id: str) -> bool:
        return not self._hides_topics or group_id in self._may_describe

    def _drop(self, group_id: str) -> None:
        self._queue.pop(group_id, None)
        if self._current is not None and self._current.group_id == group_id:
            self._current = None

    def _begin(self, group: ConsumerGroup) -> Resolution:
        changed = self._changed.pop(group.group_id, set())
        seen = self._may_describe.get(group.group_id)
        all_names = list(self._topics.names())
        if changed is None:
            return Resolution(group.group_id, dict.fromkeys(group.regex_counts, all_names), None, seen)
        names = [name for name in changed if self._topics.by_name(name) is not None]
        jobs = {regex: names for regex in group.regexes if regex in group.regex_counts} if changed else {}
        jobs |= dict.fromkeys(sorted(group.unresolved_regexes), all_names)
        return Resolution(group.group_id, jobs, changed, seen)

    def _finish(self, group: ConsumerGroup, resolution: Resolution, at: Moment, result: Result) -> ConsumerGroup | None:
        """Record the expressions that have changed; returns the group if it has got a new epoch."""
        group_id = group.group_id
        self._drop(group_id)
        self._ended_at[group_id] = at.now
        next_s = REFRESH_MIN_S if group_id in self._changed else REFRESH_MAX_S
        self._timers.set(ConsumerTimer("consumer-regex", group_id), at.now + next_s)
        changed = resolution.apply(group.regexes, at)
        changed = {regex: resolved for regex, resolved in changed.items() if regex in group.regex_counts}
        result.records += [records.regular_expression(group_id, regex, resolved) for regex, resolved in changed.items()]
        regexes = {**group.regexes, **changed}
        if not group.unresolved_regexes <= changed.keys():
            self.request(group_id, at)  # members have subscribed to them during the resolution
        if changed:
            result.on_failure(lambda later: self._failed(group_id, later))
        if all(resolved.topics == _topics(group.regexes.get(regex)) for regex, resolved in changed.items()):
            return None
        names = set(group.topic_counts).union(*(resolved.topics for resolved in regexes.values()))
        epoch = group.epoch + 1
        result.records.append(records.group_epoch(group_id, epoch, group_hash(names, self._topics)))
        logger.info(
            "[GroupId %s] Bumped group epoch to %d because the topics of regular expressions have changed",
            group_id,
            epoch,
        )
        return group

    def _failed(self, group_id: str, at: Moment) -> Result:
        """The records could not be written: resolve all expressions again later."""
        self._changed[group_id] = None
        self._timers.set(ConsumerTimer("consumer-regex", group_id), at.now + REFRESH_MIN_S)
        return Result()


def _topics(resolved: ResolvedRegex | None) -> frozenset[str]:
    return frozenset() if resolved is None else resolved.topics
