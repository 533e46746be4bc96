"""Sends a sequence to both brokers and compares their answers, then what they list and what they have on disk."""

from __future__ import annotations

import hashlib
import itertools
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from barnabas.wire.registry import message_for
from compat.twin import settling
from compat.twin.aftermath import after
from compat.twin.allowed import Allowed
from compat.twin.channel import Channel
from compat.twin.compare import Comparison, Difference
from compat.twin.kinds import Mapping
from compat.twin.nodes import SIDES, NodePair
from compat.twin.plain import APIS
from compat.twin.scope import scoped
from compat.twin.steps import Step, at_path, resolved, uses_saved

_numbers = itertools.count(1)
WINDOW = 8
"""Requests on a connection that are sent before the first answer is read."""


@dataclass
class Tally:
    """What was sent in all sequences, and which fields had an effect."""

    requests: int = 0
    sequences: int = 0
    answers: Counter[str] = field(default_factory=Counter)
    """By API and version."""
    varied: Counter[tuple[str, int, str]] = field(default_factory=Counter)
    effective: set[tuple[str, int, str]] = field(default_factory=set)
    """Variations after which Kafka's answer was another one."""
    used: set[Allowed] = field(default_factory=set)


class Runner:
    """Runs sequences on one pair of brokers."""

    def __init__(self, pair: NodePair, tally: Tally) -> None:
        self.pair = pair
        self.tally = tally
        self._control = {side: Channel(pair.address(side)) for side in SIDES}
        self._barrier = settling.Barrier()
        for side in SIDES:
            settling.prepare(self._control[side])

    def run(self, steps: list[Step]) -> list[Difference]:
        """The differences of a sequence, under names that no sequence on these brokers had before."""
        run = _Run(self, f"s{next(_numbers)}-", steps)
        try:
            found = run.steps_compared()
            found += after(self.pair, self._control, run.comparison, run.prefix)
        finally:
            run.close()
        self.tally.sequences += 1
        return found

    def settle(self, step: Step, request: dict[str, Any], answer: dict[str, Any]) -> None:
        """Wait until Kafka has applied what a step has changed; Barnabas applies changes before it answers them."""
        if step.request.get("validate_only") or (step.settle != "transaction" and not _has_success(answer)):
            return
        channel = self._control["kafka"]
        if step.settle == "topics":
            settling.topics_known(channel, [topic["name"] for topic in answer["topics"] if topic["error_code"] == 0])
        elif step.settle == "transaction":
            if request.get("transactional_id"):
                settling.transaction_done(channel, request["transactional_id"])
        elif step.settle == "gone":
            names = [part["name"] for part in answer["responses"] if part["error_code"] == 0 and part["name"]]
            settling.topics_gone(channel, names)
        else:
            self._barrier.wait(channel)

    def close(self) -> None:
        """Close the connections."""
        for channel in self._control.values():
            channel.close()


class _Run:
    def __init__(self, runner: Runner, prefix: str, steps: list[Step]) -> None:
        self.runner = runner
        self.prefix = prefix
        self.steps = steps
        self.comparison = Comparison(prefix, Mapping(), runner.tally.used)
        self._channels: dict[tuple[str, str], Channel] = {}
        self._saved: dict[str, dict[str, Any]] = {side: {} for side in SIDES}
        self._unread: dict[str, list[int]] = {}
        self._requests: dict[int, Any] = {}
        self._digests: dict[int, str] = {}
        self._found: list[Difference] = []

    def steps_compared(self) -> list[Difference]:
        """Send all steps and compare the answers."""
        for number, step in enumerate(self.steps):
            if self._waits_first(step):
                self._read_all(but_later_ones=not uses_saved(step.request))
            self._send(number, step)
            if step.settle or _may_close(step):
                self._read_all(but_later_ones=True)
        self._read_all(but_later_ones=False)
        return self._found

    def _waits_first(self, step: Step) -> bool:
        others = [name for name, numbers in self._unread.items() if numbers and name != step.connection]
        if any(not self.steps[number].later for name in others for number in self._unread[name]):
            return True
        mine = self._unread.get(step.connection, [])
        depends = any(self.steps[number].saves for numbers in self._unread.values() for number in numbers)
        return len(mine) >= WINDOW or _may_close(step) or (depends and uses_saved(step.request))

    def _channel(self, side: str, connection: str) -> Channel:
        key = (side, connection)
        if key not in self._channels:
            self._channels[key] = Channel(self.runner.pair.address(side))
        return self._channels[key]

    def _send(self, number: int, step: Step) -> None:
        for side in SIDES:
            values = resolved(step.request, self.prefix, self._saved[side])
            if side == "kafka":
                self._requests[number] = values
            self._channel(side, step.connection).send(step.api, step.version, values)
        self._unread.setdefault(step.connection, []).append(number)
        self.runner.tally.requests += 1

    def _read_all(self, *, but_later_ones: bool) -> None:
        for connection, numbers in self._unread.items():
            while numbers:
                if but_later_ones and self.steps[numbers[0]].later:
                    break
                self._read(numbers.pop(0), connection)

    def _read(self, number: int, connection: str) -> None:
        step = self.steps[number]
        answers = {side: scoped(self._channel(side, connection).read(), self.prefix) for side in SIDES}
        for side in SIDES:
            for name, path in step.saves.items():
                value = at_path(answers[side], path)
                if value is not None:
                    self._saved[side][name] = value
        what = f"{step.api} v{step.version}"
        request = self._requests.pop(number)
        self._found += self.comparison.differences(what, request, answers["kafka"], answers["barnabas"], number)
        self._count(number, step, answers["kafka"])
        if step.settle:
            self.runner.settle(step, request, answers["kafka"])

    def _count(self, number: int, step: Step, answer: Any) -> None:
        tally = self.runner.tally
        tally.answers[f"{step.api} v{step.version}"] += 1
        digest = self._digests[number] = hashlib.md5(repr(answer).encode(), usedforsecurity=False).hexdigest()
        if step.varied:
            place = (step.api, step.version, step.varied)
            tally.varied[place] += 1
            before = [
                other for other in range(number) if self.steps[other].api == step.api and not self.steps[other].varied
            ]
            if before and digest not in {self._digests.get(other) for other in before}:
                tally.effective.add(place)

    def close(self) -> None:
        """Close the connections of the sequence."""
        for channel in self._channels.values():
            channel.close()


def _has_success(value: Any) -> bool:
    """Whether an answer has a code 0 anywhere."""
    if isinstance(value, dict):
        return value.get("error_code") == 0 or any(map(_has_success, value.values()))
    return isinstance(value, list) and any(map(_has_success, value))


def _may_close(step: Step) -> bool:
    """Whether a broker may close the connection: then no other request is on its way, whose answer would be lost."""
    is_known = step.version in message_for(APIS[step.api])[0].versions
    return not is_known or bool(step.varied) or step.alone or step.request.get("acks") == 0
