"""What a broker counts while it serves, for its listener of metrics. Without a listener there is no `Meter`.

A request costs 15 bytecodes: its API's countdown, of which the number of requests follows. When it reaches 0 the
request is timed: each one of an API with few requests, one of up to `MOST_BETWEEN` of an API with many, which then
counts for all since the last timed one. So histograms have as many values as there were requests, and two clock reads
belong to one request in 128. Requests that wait for something are rarer and dearer: the time of each wait is counted.

Other parts count what they know anyway: appended bytes and offsets (`tally`), log-ins, connections. The rest is read
when it is asked for (`scrape`).

Invariants: nothing here is done per record or, in a Produce, per batch; what is kept by topic is of topics that exist,
and is added up when a topic is deleted.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final, Protocol

from barnabas.broker.metrics.histogram import Histogram
from barnabas.broker.metrics.labels import Labels
from barnabas.broker.metrics.response_errors import MOST_ITEMS, codes_of, first_error_of
from barnabas.broker.replicas.leader.tally import Counts, Tallies
from barnabas.wire.api_keys import ApiKey

if TYPE_CHECKING:
    from barnabas.broker.net.connection import Connection
    from barnabas.broker.net.reactor import Reactor
    from barnabas.broker.replicas.cleaning.cleaner import LogCleaner
    from barnabas.broker.replicas.leader.fetch_sessions import PartitionKey
    from barnabas.broker.replicas.partition import Partition
    from barnabas.broker.replicas.partitions import Partitions
    from barnabas.wire.schema import Message

MOST_BETWEEN: Final = 128
"""At most one request of this many is timed."""
BETWEEN_S: Final = 0.001
"""Requests of an API are timed less often while two timed ones come faster after each other, seconds."""
MOST_SENDING: Final = 200
"""How many timed responses are watched until they are sent; clients that do not read have no others timed."""
_APIS: Final = max(ApiKey) + 1


class Route(Protocol):
    """The part of a route of the dispatcher that counting errors uses."""

    api_key: ApiKey
    response_class: type[Message]
    first_error: Callable[[Any], int]
    """Returns an error code in a response, 0 if it has none."""


class RequestTimes:
    """The times of one API's requests."""

    __slots__ = ("handling", "queue", "sending", "total", "waiting")

    def __init__(self) -> None:
        self.queue = Histogram()
        """From the poll that reported the request until its handler is called."""
        self.handling = Histogram()
        """Of the handler, up to its response or to what it waits for."""
        self.waiting = Histogram()
        """Of requests that wait (for records, acknowledgements, a coordinator, a disk): until the response."""
        self.sending = Histogram()
        """From the response until its last byte is given to the socket."""
        self.total = Histogram()


class Meter:
    """The counts of one broker."""

    tallies: Tallies

    def __init__(self, clock: Callable[[], float], most_labels: int) -> None:
        """`clock` is the loop's monotonic clock, seconds; `most_labels`: how many topics have series of their own."""
        self._clock = clock
        self.reactor: Reactor | None = None
        """What it tells the beginning of a turn; None: the broker is served by something else."""
        self.countdown = [1] * _APIS
        """By API: in how many requests the next one is timed."""
        self._between = [1] * _APIS  # what the countdown began with
        self._counted = [0] * _APIS  # up to the last timed one, except the first
        self._timed_at = [0.0] * _APIS
        self.times: dict[int, RequestTimes] = {}
        self._sending: list[tuple[RequestTimes, float, float, int, Connection]] = []
        self.errors: defaultdict[tuple[int, int], int] = defaultdict(int)
        """By API and error code: errors of requests and of their items."""
        self.throttled: dict[int, Histogram] = {}
        """By API: the times for which clients were throttled by quotas."""
        self.turns: list[float] = []
        """The lengths of turns that are not in the histogram yet, seconds."""
        self.turn_times = Histogram()
        """Of turns in which the loop had something to do."""
        self.cleaner: LogCleaner | None = None
        """What compacts logs, once it runs."""
        self.disk_waits = Histogram()
        """Of work that waits for disks in threads."""
        self.collections: list[Histogram] = [Histogram() for _ in range(3)]
        """By generation: of the garbage collector."""
        self._collection_began = 0.0
        self.sent_bytes: tuple[defaultdict[PartitionKey, int], defaultdict[PartitionKey, int]] = (
            defaultdict(int),
            defaultdict(int),
        )
        """Of records in responses to consumers, and to followers, by partition as the request names it."""
        self.most_labels = most_labels
        self.topic_labels = Labels(most_labels)
        self.group_labels = Labels(most_labels)
        self.gone_others = Counts()
        """Of deleted topics that had no series of their own."""

    def follow(self, partitions: Partitions) -> None:
        """Count what happens to these partitions."""
        self.tallies = Tallies(partitions, self.sent_bytes, self._removed)

    # -- requests

    def begins(self, api_key: int) -> tuple[float, int]:
        """A request is timed: the time, and the number of requests for which it counts."""
        now = self._clock()
        weight = self._between[api_key]
        self._counted[api_key] += weight
        seconds = now - self._timed_at[api_key]
        self._timed_at[api_key] = now
        between = min(2 * weight, MOST_BETWEEN) if seconds < BETWEEN_S else max(1, weight // 2)
        self._between[api_key] = between
        self.countdown[api_key] = between + 1  # this request is counted again when it is dispatched again
        return now, weight

    def handled(self, api_key: int, began: float, weight: int, connection: Connection) -> None:
        """The handler of a timed request has returned. Its response may be made at the end of the turn."""
        now = self._clock()
        times = self._times(api_key)
        reactor = self.reactor
        polled = began if reactor is None else min(reactor.turn_began, began)
        times.queue.add(began - polled, weight)
        times.handling.add(now - began, weight)
        if connection.delayed is not None:
            return  # `waited` counts the rest
        if reactor is None:
            times.total.add(now - polled, weight)
        elif len(self._sending) < MOST_SENDING:
            self._sending.append((times, now, polled, weight, connection))
            reactor.on_sent = self.sent

    def waited(self, api_key: int, seconds: float) -> None:
        """A request has its response, `seconds` after it has come."""
        times = self._times(api_key)
        times.waiting.add(seconds)
        times.total.add(seconds)

    def sent(self) -> None:
        """Responses were sent: count those of which nothing is left."""
        now = self._clock()
        unsent = []
        for item in self._sending:
            times, began, polled, weight, connection = item
            if connection.out:
                unsent.append(item)
            else:
                times.sending.add(now - began, weight)
                times.total.add(now - polled, weight)
        self._sending = unsent
        if not unsent and self.reactor is not None:
            self.reactor.on_sent = None

    def _times(self, api_key: int) -> RequestTimes:
        times = self.times.get(api_key)
        if times is None:
            times = self.times[int(api_key)] = RequestTimes()
        return times

    def requests(self, api_key: int) -> int:
        """How many requests of an API there were."""
        return self._counted[api_key] + self._between[api_key] - self.countdown[api_key]

    # -- errors

    def count_errors(self, route: Route, response: Message) -> None:
        """Count the errors in a response, of at most `MOST_ITEMS` items."""
        route.first_error = first_error_of(route.response_class)
        for _, code in zip(range(MOST_ITEMS), codes_of(response), strict=False):
            self.errors[int(route.api_key), code] += 1

    def failed_produce(self, partition: Partition | None) -> None:
        """A batch was not appended; None: there is no such partition here."""
        tally = None if partition is None else partition.tally
        counts = self.tallies.gone if tally is None else tally.counts
        counts.failed_produces += 1

    def failed_fetch(self, partition: Partition | None, code: int) -> None:
        """A partition could not be read; None: there is no such partition here."""
        self.errors[int(ApiKey.FETCH), code] += 1
        tally = None if partition is None else partition.tally
        counts = self.tallies.gone if tally is None else tally.counts
        counts.failed_fetches += 1

    def throttle(self, api_key: int, throttle_ms: int) -> None:
        """A client is throttled, because of a quota."""
        self.throttled.setdefault(int(api_key), Histogram()).add(throttle_ms / 1000)

    # -- the loop

    def count_turns(self) -> None:
        """Put the lengths of the latest turns into their histogram."""
        self.turn_times.add_all(self.turns)

    def collected(self, phase: str, info: dict[str, int]) -> None:
        """Python's garbage collector begins or ends a collection (`gc.callbacks`)."""
        if phase == "start":
            self._collection_began = self._clock()
        else:
            self.collections[info["generation"]].add(self._clock() - self._collection_began)

    def _removed(self, topic: str, counts: Counts) -> None:
        """This broker has no partition of a topic any more, of which it had counted this."""
        if self.topic_labels.is_other(topic):
            self.gone_others.add(counts)
        self.topic_labels.forget(topic)
