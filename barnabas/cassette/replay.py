"""Answers from a cassette: nothing is handled, each request gets the response that it had in the session.

Requests that are the same (`signature.py`) get their responses in the order of the recording; what clients ask again
and again (`REPEATED`) gets the last one for ever, anything else is asked once. Produce and Fetch go by records
(`logs.py`), Metadata by topics, commits by groups. A request that the cassette does not have is a sentence in
`missing`, and its connection is closed.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Final, cast

from barnabas.cassette.addresses import Address, replace_addresses
from barnabas.cassette.exchange import Exchange
from barnabas.cassette.logs import Logs, Place, bytes_of, records_of, topic_of
from barnabas.cassette.signature import signature
from barnabas.wire.api_keys import ApiKey
from barnabas.wire.json_form import json_name
from barnabas.wire.messages.fetch import FetchableTopicResponse, FetchResponse, FetchResponsePartitionData
from barnabas.wire.messages.metadata import MetadataResponse
from barnabas.wire.messages.offsets import (
    OffsetCommitResponse,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
)
from barnabas.wire.messages.produce import PartitionProduceResponse, ProduceResponse, TopicProduceResponse
from barnabas.wire.types import uuid_to_text

if TYPE_CHECKING:
    from barnabas.wire.schema import Message

REPEATED: Final = frozenset(
    {
        ApiKey.API_VERSIONS,
        ApiKey.CONSUMER_GROUP_HEARTBEAT,
        ApiKey.DESCRIBE_CLUSTER,
        ApiKey.DESCRIBE_CONFIGS,
        ApiKey.DESCRIBE_GROUPS,
        ApiKey.DESCRIBE_TOPIC_PARTITIONS,
        ApiKey.FIND_COORDINATOR,
        ApiKey.GET_TELEMETRY_SUBSCRIPTIONS,
        ApiKey.HEARTBEAT,
        ApiKey.JOIN_GROUP,  # a client joins once more if its metadata came late
        ApiKey.LIST_OFFSETS,
        ApiKey.METADATA,
        ApiKey.OFFSET_FETCH,
        ApiKey.OFFSET_FOR_LEADER_EPOCH,
        ApiKey.PUSH_TELEMETRY,
        ApiKey.SYNC_GROUP,
    }
)
_NO_RECORDS: Final = b""
MAX_MISSING: Final = 20


class MissingError(Exception):
    """The cassette has no response to a request; the text says what was asked, and what comes next."""


class Answer:
    """A response, the version to write it in, and how long the client is to wait for it, seconds."""

    __slots__ = ("message", "version", "wait_s")

    def __init__(self, message: Message, version: int, wait_s: float = 0.0) -> None:
        self.message = message
        self.version = version
        self.wait_s = wait_s


class Replay:
    """The state of one run of a cassette."""

    def __init__(self, exchanges: Iterable[Exchange]) -> None:
        """KafkaError for records that cannot be read."""
        self.address: Address = ("", 0)
        """The one that stands for all brokers."""
        self.missing: list[str] = []
        """What was asked that the cassette does not have."""
        self._logs = Logs()
        self._queues: dict[tuple[ApiKey, int, str], deque[Exchange]] = defaultdict(deque)
        self._topics: dict[tuple[int, str], tuple[Exchange, Any]] = {}
        self._names: dict[str, str] = {}
        """Topics by their ids."""
        self._given_ids: set[str] = set()
        self._committed: set[str] = set()
        session = [one for one in exchanges if one.request is not None]
        for one in session:
            self._learn_members(one)
        for one in session:
            self._add(one)

    def _learn_members(self, exchange: Exchange) -> None:
        if exchange.api == ApiKey.JOIN_GROUP and exchange.response is not None:
            response: Any = exchange.response_message()
            self._given_ids.add(response.member_id)

    def _add(self, exchange: Exchange) -> None:
        request: Any = exchange.request_message()
        response: Any = exchange.response_message()
        if exchange.api == ApiKey.PRODUCE:
            self._logs.add_produce(request, response)
        elif response is None:
            return
        elif exchange.api == ApiKey.FETCH:
            self._logs.add_fetch(response)
        elif exchange.api == ApiKey.OFFSET_COMMIT:
            self._committed.add(request.group_id)
        else:
            self._queues[self._key(exchange.api, exchange.version, request)].append(exchange)
            if exchange.api == ApiKey.METADATA:
                for topic in response.topics:
                    if topic.error_code == 0:
                        self._names[uuid_to_text(topic.topic_id)] = str(topic.name)
                        self._topics[exchange.version, str(topic.name)] = exchange, topic

    def _key(self, api: ApiKey, version: int, request: Message) -> tuple[ApiKey, int, str]:
        # an ApiVersions says only who asks
        return api, version, "" if api == ApiKey.API_VERSIONS else signature(request, version, self._given_ids)

    def answer(self, api: ApiKey, version: int, request: Any) -> Answer | None:
        """The response to a request, None if it has none (acks=0). MissingError if the cassette has none."""
        try:
            if api == ApiKey.PRODUCE:
                return self._produce(version, request)
            if api == ApiKey.FETCH:
                return self._fetch(version, request)
            if api == ApiKey.OFFSET_COMMIT:
                return self._commit(version, request)
            return self._other(api, version, request)
        except MissingError as error:
            if str(error) not in self.missing and len(self.missing) < MAX_MISSING:
                self.missing.append(str(error))
            raise

    def _other(self, api: ApiKey, version: int, request: Any) -> Answer:
        key = self._key(api, version, request)
        queue = self._queues.get(key)
        if not queue:
            known = self._metadata(version, request) if api == ApiKey.METADATA else None
            if known is None:
                raise MissingError(self._sentence(key))
            return self._told(known, version)
        exchange = queue[0] if len(queue) == 1 and api in REPEATED else queue.popleft()
        response: Any = exchange.response_message()
        member = getattr(request, "member_id", "")
        if member and getattr(response, "member_id", None):
            response.member_id = member  # a client that makes its id itself makes another one in each run
        return self._told(response, exchange.response_version)

    def _told(self, message: Message, version: int) -> Answer:
        replace_addresses(message, lambda _: self.address)
        return Answer(message, version)

    def _metadata(self, version: int, request: Any) -> Message | None:
        """Metadata of topics that were asked for in other requests; None if one of them was not."""
        names = [str(topic.name) for topic in request.topics or ()]
        found = [self._topics.get((version, name)) for name in names]
        if not found or None in found:
            return None
        last, _ = max(cast("list[tuple[Exchange, Any]]", found), key=lambda one: one[0].at)
        message = cast("MetadataResponse", last.response_message())
        message.topics = [topic for _, topic in cast("list[tuple[Exchange, Any]]", found)]
        return message

    def _produce(self, version: int, request: Any) -> Answer | None:
        response = ProduceResponse()
        for topic in request.topic_data:
            answered = TopicProduceResponse(name=topic.name, topic_id=topic.topic_id)
            for one in topic.partition_data:
                place = topic_of(topic), one.index
                offset = self._logs.take(place, records_of(bytes_of(one.records)))
                if isinstance(offset, str):
                    raise MissingError(f"Produce to {self._shown(place)} of {offset}")
                answered.partition_responses.append(PartitionProduceResponse(index=one.index, base_offset=offset))
            response.responses.append(answered)
        return Answer(response, version) if request.acks else None

    def _fetch(self, version: int, request: Any) -> Answer:
        response = FetchResponse()  # no session: the client goes on to name all its partitions
        has_records = False
        for topic in request.topics:
            answered = FetchableTopicResponse(topic=topic.topic, topic_id=topic.topic_id)
            for one in topic.partitions:
                place = topic_of(topic), one.partition
                given = self._logs.at(place, one.fetch_offset)
                if given is None:
                    known = ", ".join(map(self._shown, self._logs.given)) or "none"
                    raise MissingError(f"Fetch of {self._shown(place)}; partitions that were fetched: {known}")
                has_records = has_records or given.end > given.start
                answered.partitions.append(_partition(given.data, is_empty=given.end == given.start))
            response.responses.append(answered)
        return Answer(response, version, 0.0 if has_records else request.max_wait_ms / 1000)

    def _commit(self, version: int, request: Any) -> Answer:
        """Which partitions a commit has, and when it is made, is a matter of time; its group is not."""
        if request.group_id not in self._committed:
            groups = ", ".join(sorted(self._committed)) or "none"
            raise MissingError(f"OffsetCommit of group {request.group_id}; groups that committed: {groups}")
        response = OffsetCommitResponse()
        for topic in request.topics:
            parts = [OffsetCommitResponsePartition(partition_index=one.partition_index) for one in topic.partitions]
            response.topics.append(
                OffsetCommitResponseTopic(name=topic.name, topic_id=topic.topic_id, partitions=parts)
            )
        return Answer(response, version)

    def _shown(self, place: Place) -> str:
        """orders-0, also where requests have the topic's id."""
        topic, index = place
        return f"{self._names.get(topic, topic)}-{index}"

    def _sentence(self, key: tuple[ApiKey, int, str]) -> str:
        api, version, asked = key
        waiting = [(one[1], one[2], queue[0].at) for one, queue in self._queues.items() if one[0] == api and queue]
        text = f"{name_of(api)} v{version} {asked}; "
        if not waiting:
            return f"{text}no {name_of(api)} comes any more"
        next_version, expected, _ = min(waiting, key=lambda one: one[2])
        return f"{text}next comes {name_of(api)} v{next_version} {expected}"


def _partition(data: Any, *, is_empty: bool) -> FetchResponsePartitionData:
    return FetchResponsePartitionData(
        partition_index=data.partition_index,
        high_watermark=data.high_watermark,
        last_stable_offset=data.last_stable_offset,
        log_start_offset=data.log_start_offset,
        aborted_transactions=data.aborted_transactions,
        records=_NO_RECORDS if is_empty else data.records,
    )


def name_of(api: ApiKey) -> str:
    """The name of an API as Kafka writes it."""
    name = json_name(api.name.lower())
    return name[:1].upper() + name[1:]
