"""The collector: a thread that samples a cluster while somebody looks, within a share of a core.

It starts with the first look and pauses `PAUSE_AFTER_S` after the last one; series have a gap for the time between.
Each kind of question has an interval. A slice is one request and the storing of its answer; after a slice the thread
rests until its CPU time is at most `SHARE` of the time that passed. So with 10,000 topics a round takes longer, and
a page shows figures that are some seconds older, but the broker and the pages have the machine for themselves.
The cluster is the thread's own: a `Cluster` is not thread-safe. Readers take `lock` while they read `figures`.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from threading import Condition, Lock, Thread
from time import monotonic, thread_time, time
from typing import TYPE_CHECKING, Final, TypeVar

from barnabas.client.errors import ClientError
from barnabas.console.collector.figures import Figures
from barnabas.console.collector.rounds import Rounds
from barnabas.wire.errors import KafkaError, ProtocolError

if TYPE_CHECKING:
    from barnabas.client.cluster import Cluster

T = TypeVar("T")
log = logging.getLogger(__name__)

INTERVAL_S: Final = 2.0
PAUSE_AFTER_S: Final = 30.0
SHARE: Final = 0.05
"""Of a core."""
BURST_S: Final = 0.25
"""CPU seconds that may be spent at once after a rest: the first round of a small cluster needs no rest."""
FIRST_S: Final = 5.0
"""How long a reader waits for the first sample, seconds."""
MAX_COLLECTORS: Final = 8
REFUSED_S: Final = 30.0
"""How long a question that the cluster refuses is not asked again, seconds."""


@dataclass(slots=True)
class _Question:
    """A kind of question and its round that is under way."""

    name: str
    begin: Callable[[], Iterator[None]]
    interval_s: float
    due_at: float = 0.0
    began_at: float = 0.0
    round: Iterator[None] | None = None


class Collector:
    """Samples one cluster, which `open_cluster` connects to. Close it after use."""

    def __init__(self, open_cluster: Callable[[], Cluster], interval_s: float = INTERVAL_S) -> None:
        self.lock = Lock()
        self.figures = Figures()
        self.failure = ""
        """Why the cluster cannot be asked at all, while that is so."""
        self._failure_kind: type[ClientError] = ClientError
        self.interval_s = interval_s
        self._open_cluster = open_cluster
        self._changed = Condition()
        self._looked_at = -PAUSE_AFTER_S
        self._sampled = 0
        self._is_closing = False
        self._thread: Thread | None = None

    # --- for readers

    def keep_sampling(self) -> None:
        """Start the sampling, or continue it, for `PAUSE_AFTER_S` from now."""
        with self._changed:
            self._looked_at = monotonic()
            if self._thread is None and not self._is_closing:
                self._thread = Thread(target=self._run, name="collector", daemon=True)
                self._thread.start()
            self._changed.notify_all()

    def wait_for_sample(self, count: int, timeout_s: float) -> int:
        """Wait until there are more than `count` samples, or a failure; the number of samples. 0: none yet."""
        with self._changed:
            self._changed.wait_for(lambda: self._sampled > count or self.failure or self._is_closing, timeout_s)
            return self._sampled

    def read(self, view: Callable[[Figures, float], T]) -> T:
        """What `view` makes of the figures and the time (seconds since 1970), under the lock; waits for a first sample.

        `ClientError` with the sentence if the cluster cannot be asked and there are no figures yet.
        """
        self.keep_sampling()
        self.wait_for_sample(0, FIRST_S)
        with self.lock:
            if self.failure and not self.figures.brokers:
                raise self._failure_kind(self.failure)
            return view(self.figures, time())

    def close(self) -> None:
        """End the thread and its connections; waits for the request that is under way."""
        with self._changed:
            self._is_closing = True
            self._changed.notify_all()
            thread = self._thread
        if thread is not None:
            thread.join()

    # --- the thread

    def _run(self) -> None:
        with self._open_cluster() as cluster:
            rounds = Rounds(cluster, self.figures, self.lock, time)
            questions = self._questions(rounds)
            cpu, allowed, counted_at = thread_time(), BURST_S, monotonic()
            while self._may_go_on():
                question = min(questions, key=lambda each: each.due_at)
                rest_s = question.due_at - monotonic()
                if rest_s <= 0:
                    self._slice(question)
                now, used = monotonic(), thread_time()
                allowed = min(BURST_S, allowed + (now - counted_at) * SHARE) - (used - cpu)
                cpu, counted_at = used, now
                self._rest(max(rest_s, -allowed / SHARE))

    def _questions(self, rounds: Rounds) -> list[_Question]:
        """In the order in which the first round of each is asked."""
        step = self.interval_s
        return [
            _Question("brokers", rounds.brokers, step),
            _Question("topics", rounds.topics, 2 * step),
            _Question("ends", rounds.ends, step),
            _Question("groups", rounds.groups, step),
            _Question("offsets", rounds.offsets, step),
            _Question("transactions", rounds.transactions, step),
            _Question("disks", rounds.disks, 15 * step),
            _Question("totals", self._totals, step),
        ]

    def _totals(self) -> Iterator[None]:
        """Sum up what the other rounds have stored, and wake those who wait for a sample."""
        with self.lock:
            self.figures.put_totals(time())
        with self._changed:
            if not self.failure:
                self._sampled += 1
                self._changed.notify_all()
        yield

    def _slice(self, question: _Question) -> None:
        """One slice of the question's round; the next round begins an interval after this one did."""
        now = monotonic()
        if question.round is None:
            question.round, question.began_at = question.begin(), now
        try:
            next(question.round)
            question.due_at = now
            self._answered(question.name)
        except StopIteration:
            question.round = None
            question.due_at = question.began_at + question.interval_s
        except (ClientError, KafkaError, ProtocolError) as error:
            question.round = None
            is_refusal = isinstance(error, KafkaError)
            question.due_at = now + (REFUSED_S if is_refusal else question.interval_s)
            kind = type(error) if isinstance(error, ClientError) else ClientError
            self._failed(question.name, str(error), is_refusal=is_refusal, kind=kind)
        except Exception as error:
            log.error("the figures of %s could not be read", question.name, exc_info=error)
            question.round = None
            question.due_at = now + REFUSED_S
            self._failed(question.name, "the console failed: its log has the details", is_refusal=True)

    def _answered(self, name: str) -> None:
        with self.lock:
            self.figures.failures.pop(name, None)
            if name == "brokers":
                self.failure = ""

    def _failed(self, name: str, sentence: str, *, is_refusal: bool, kind: type[ClientError] = ClientError) -> None:
        with self.lock:
            self.figures.failures[name] = sentence
            if name == "brokers" and not is_refusal:
                self.failure, self._failure_kind = sentence, kind
        with self._changed:
            self._changed.notify_all()

    def _may_go_on(self) -> bool:
        """Wait while nobody looks; False to end."""
        with self._changed:
            self._changed.wait_for(lambda: self._is_closing or monotonic() < self._looked_at + PAUSE_AFTER_S)
            return not self._is_closing

    def _rest(self, seconds: float) -> None:
        if seconds > 0:
            with self._changed:
                self._changed.wait_for(lambda: self._is_closing, seconds)


class Collectors:
    """One collector for each user of a console: each sees what the broker lets this user see.

    At most `MAX_COLLECTORS`; the one that was looked at longest ago is closed for another.
    """

    def __init__(self) -> None:
        self._by_user: dict[str, Collector] = {}
        self._lock = Lock()

    def of(self, user: str, open_cluster: Callable[[], Cluster]) -> Collector:
        """The collector of a user, running."""
        dropped = None
        with self._lock:
            collector = self._by_user.pop(user, None)
            if collector is None:
                collector = Collector(open_cluster)
                if len(self._by_user) >= MAX_COLLECTORS:
                    dropped = self._by_user.pop(next(iter(self._by_user)))
            self._by_user[user] = collector  # the last one was looked at last
        if dropped is not None:
            dropped.close()
        collector.keep_sampling()
        return collector

    def forget(self, user: str) -> None:
        """End the collector of a user who has logged out."""
        with self._lock:
            collector = self._by_user.pop(user, None)
        if collector is not None:
            collector.close()

    def close(self) -> None:
        """End all."""
        for user in list(self._by_user):
            self.forget(user)
