"""A topic of a cluster, read from its logs: its records, without a consumer, a group or a sleep.

Records that an assertion has returned are remembered, so that `assert_no_more` reports any others.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from barnabas.testing.forms import Async, Sync, operation
from barnabas.testing.records import Condition, Record, Text, to_base64

if TYPE_CHECKING:
    from collections.abc import Callable

    from barnabas.testing.link import Link

__tracebackhide__ = True
"""For pytest: a failure is shown where the test made it."""


class TopicOperations:
    """Operations on a topic."""

    def __init__(self, link: Link, name: str) -> None:
        self._link = link
        self.name = name
        self._seen: set[tuple[int, int]] = set()

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.name!r})"

    @operation
    def create(self, partitions: int | None = None, config: Mapping[str, object] | None = None) -> None:
        """Create it, unless it is there; `config` are Kafka's topic keys: {"cleanup.policy": "compact"}."""
        keys = {name: str(value) for name, value in (config or {}).items()}
        self._link.perform("create_topic", {"topic": self.name, "partitions": partitions, "configs": keys})

    @operation
    def produce(
        self,
        value: Text | None,
        *,
        key: Text | None = None,
        headers: Mapping[str, Text | None] | None = None,
        partition: int | None = None,
        timestamp: int | None = None,
    ) -> Record:
        """Write one record, with acks=all, and return it as it was stored. `timestamp` in ms since 1970."""
        record = {
            "key": to_base64(key),
            "value": to_base64(value),
            "headers": {name: to_base64(data) for name, data in (headers or {}).items()},
            "timestamp": timestamp,
            "partition": partition,
        }
        where, offset = self._link.perform("produce", {"topic": self.name, "records": [record]})["offsets"][0]
        stored = self._read(Condition(partition=where), {where: offset})
        return next(record for record in stored if record.offset == offset)

    @operation
    def trim(self, offset: int | None = None, *, partition: int | None = None) -> None:
        """Delete the records of a partition, or of all, before an offset, or all: consumers behind it miss them."""
        self._link.perform("trim", {"topic": self.name, "partition": partition, "offset": offset})

    @operation
    def records(
        self,
        *,
        key: Text | None = None,
        value: Text | None = None,
        headers: Mapping[str, Text | None] | None = None,
        partition: int | None = None,
        where: Callable[[Record], bool] | None = None,
    ) -> list[Record]:
        """The committed records that are there now and match, by partition and offset."""
        return self._read(Condition(key, value, headers, partition, where))

    @operation
    def wait_for(
        self,
        count: int = 1,
        *,
        key: Text | None = None,
        value: Text | None = None,
        headers: Mapping[str, Text | None] | None = None,
        partition: int | None = None,
        where: Callable[[Record], bool] | None = None,
        timeout: float | None = None,
    ) -> list[Record]:
        """Wait until at least `count` committed records match; all that do. AssertionError when the time is up."""
        return self._wait(count, Condition(key, value, headers, partition, where), timeout)

    @operation
    def assert_produced(
        self,
        value: Text | None = None,
        *,
        key: Text | None = None,
        headers: Mapping[str, Text | None] | None = None,
        partition: int | None = None,
        where: Callable[[Record], bool] | None = None,
        count: int = 1,
        timeout: float | None = None,
    ) -> Record:
        """Exactly `count` records match, or do within the time; the last of them."""
        condition = Condition(key, value, headers, partition, where)
        records = self._wait(count, condition, timeout)
        if len(records) > count:
            raise AssertionError(
                f"{len(records)} records of {self.name}{condition}, not {count}.{self._link.context(records)}"
            )
        return records[-1]

    @operation
    def assert_no_more(self) -> None:
        """The topic has no committed records but the ones that `wait_for` and `assert_produced` have returned."""
        records = self._read(Condition())
        more = [record for record in records if (record.partition, record.offset) not in self._seen]
        if more:
            raise AssertionError(
                f"{len(more)} more records of {self.name} than were expected.{self._link.context(more)}"
            )

    def _read(self, condition: Condition, positions: Mapping[int, int] | None = None) -> list[Record]:
        values = self._values(condition) | {"positions": positions or {}}
        return condition.of(self._link.perform("records", values))

    def _wait(self, count: int, condition: Condition, timeout: float | None) -> list[Record]:
        deadline = self._link.deadline(timeout)
        positions: dict[str, int] = {}
        records: list[Record] = []
        while True:
            remaining_s = deadline.remaining_s()
            values = {"positions": positions, "count": max(1, count - len(records)), "timeout_s": remaining_s}
            result = self._link.perform("wait_for_records", self._values(condition) | values, wait_s=remaining_s)
            positions = result["positions"]
            records += condition.of(result)
            if len(records) >= count:
                self._seen |= {(record.partition, record.offset) for record in records}
                return records
            if not result["enough"]:
                raise AssertionError(self._too_few(count, condition, records, deadline.seconds))

    def _values(self, condition: Condition) -> dict[str, Any]:
        return {"topic": self.name, **condition.to_json()}

    def _too_few(self, count: int, condition: Condition, records: Sequence[Record], seconds: float) -> str:
        all_records = self._read(Condition())
        expected = f"{count} record{'s'[: count > 1]} of {self.name}{condition} expected within {seconds:g} s"
        what = f"{expected}, {len(records)} found."
        if not all_records:
            topics = self._link.topics()
            names = f"There is no such topic; there are {', '.join(topics) or 'none'}."
            none = "The topic has no committed records." if self.name in topics else names
            return f"{what} {none}{self._link.context()}"
        return f"{what} It has {len(all_records)} in all.{self._link.context(all_records)}"


class Topic(TopicOperations, Sync):
    """A topic, for plain tests."""


class AsyncTopic(TopicOperations, Async):
    """A topic, for tests in asyncio, trio and anyio."""
