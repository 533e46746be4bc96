"""Answers from a cassette: nothing is handled, each request gets the response that it had in the session.

Requests that are the same (`signature.py`) get their responses in the order of the recording; requests that clients
repeat (`REPEATED`) get the last one for ever, others are answered once. Produce and Fetch go by records
(`logs.py`), Metadata by topics, heartbeats and commits of members by their groups (`groups.py`). A request that
the cassette does not have is a sentence in `missing`.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Final, NamedTuple, cast

from barnabas.kit.cassette.groups import Groups
from barnabas.kit.cassette.logs import Logs, Place, Span, bytes_of, records_of, topic_of
from barnabas.kit.cassette.signature import signature
from barnabas.wire.api_keys import ApiKey
from barnabas.wire.codec.json_form import api_name
from barnabas.wire.errors import ErrorCode
from barnabas.wire.messages.fetch import FetchableTopicResponse, FetchResponse, FetchResponsePartitionData
from barnabas.wire.messages.metadata import MetadataRequest, MetadataResponse, MetadataResponseTopic
from barnabas.wire.messages.produce import PartitionProduceResponse, ProduceResponse, TopicProduceResponse
from barnabas.wire.messages.security.sasl import SaslAuthenticateResponse
from barnabas.wire.types import uuid_to_text

if TYPE_CHECKING:
    from barnabas.kit.cassette.exchange import Exchange
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
        ApiKey.JOIN_GROUP,  # a client joins once more if its metadata came late
        ApiKey.LIST_OFFSETS,
        ApiKey.METADATA,
        ApiKey.OFFSET_FETCH,
        ApiKey.OFFSET_FOR_LEADER_EPOCH,
        ApiKey.PUSH_TELEMETRY,
        ApiKey.SASL_HANDSHAKE,
        ApiKey.SYNC_GROUP,
    }
)
_NO_RECORDS: Final = b""
MAX_MISSING: Final = 20
SHOWN: Final = 500
"""Characters of a request in a sentence."""


class MissingError(Exception):
    """The cassette has no response to a request; the text names the request and the one that is next."""

    def __init__(self, text: str, refusal: Message | None = None) -> None:
        """`refusal` is the response to the client, if it is more than an error."""
        super().__init__(text)
        self.refusal = refusal


class Answer(NamedTuple):
    """A response, the version to write it in, and how long the client is to wait for it, seconds."""

    message: Message
    version: int
    wait_s: float = 0.0


class Replay:
    """The state of one run of a cassette."""

    def __init__(self, exchanges: Iterable[Exchange], *, as_recorded: bool = False) -> None:
        """`as_recorded`: each response takes as long as it took in the session. KafkaError for unreadable records."""
        self.missing: list[str] = []
        """The requests that the cassette does not have, as sentences."""
        self._as_recorded = as_recorded
        self._logs = Logs()
        self._groups = Groups()
        self._queues: dict[tuple[ApiKey, int, str], deque[Exchange]] = defaultdict(deque)
        self._topics: dict[tuple[int, str], tuple[Exchange, Any]] = {}
        self._brokers: dict[int, Exchange] = {}
        """The last Metadata response for all topics, by version."""
        self._names: dict[str, str] = {}
        """Topics by their ids."""
        session = list(exchanges)
        for exchange in session:
            self._groups.add(exchange.api, exchange.request_message(), exchange.response_message())
        for exchange in session:
            self._add(exchange)

    def _add(self, exchange: Exchange) -> None:
        request: Any = exchange.request_message()
        response: Any = exchange.response_message()
        took = exchange.took or 0.0
        if exchange.api == ApiKey.PRODUCE:
            self._logs.add_produce(request, response, took)
        elif exchange.api == ApiKey.FETCH:
            self._logs.add_fetch(request, response, took)
        elif exchange.api not in (ApiKey.OFFSET_COMMIT, ApiKey.SASL_AUTHENTICATE) and response is not None:
            self._queues[self._key(exchange.api, exchange.version, request)].append(exchange)
            if exchange.api == ApiKey.METADATA:
                self._add_metadata(exchange, response)

    def _add_metadata(self, exchange: Exchange, response: Any) -> None:
        self._brokers[exchange.version] = exchange
        for topic in response.topics:
            if topic.error_code == 0:
                self._names[uuid_to_text(topic.topic_id)] = str(topic.name)
                self._topics[exchange.version, str(topic.name)] = exchange, topic

    def _key(self, api: ApiKey, version: int, request: Message) -> tuple[ApiKey, int, str]:
        # an ApiVersions only names the client
        return api, version, "" if api == ApiKey.API_VERSIONS else signature(request, version, self._groups.given_ids)

    def answer(self, api: ApiKey, version: int, request: Any) -> Answer | None:
        """The response to a request, None if it has none (acks=0). MissingError if the cassette has none."""
        try:
            if api == ApiKey.PRODUCE:
                return self._produce(version, request)
            if api == ApiKey.FETCH:
                return self._fetch(version, request)
            if api == ApiKey.OFFSET_COMMIT:
                return self._commit(version, request)
            if api == ApiKey.SASL_AUTHENTICATE:
                return _log_in(version, request)
            return self._other(api, version, request)
        except MissingError as error:
            if str(error) not in self.missing and len(self.missing) < MAX_MISSING:
                self.missing.append(str(error))
            raise

    def _wait(self, took: float | None) -> float:
        return took or 0.0 if self._as_recorded else 0.0

    def _other(self, api: ApiKey, version: int, request: Any) -> Answer:
        key = self._key(api, version, request)
        queue = self._queues.get(key)
        if not queue:
            is_metadata = api == ApiKey.METADATA
            substitute = self._metadata(version, request) if is_metadata else self._groups.unrecorded(api, request)
            if substitute is None:
                raise MissingError(self._sentence(key), self._no_topics(version, request))
            return Answer(substitute, version)
        exchange = queue[0] if len(queue) == 1 and api in REPEATED else queue.popleft()
        response: Any = exchange.response_message()
        self._groups.adapt(api, request, response)
        return Answer(response, exchange.response_version, self._wait(exchange.took))

    def _metadata(self, version: int, request: Any) -> Message | None:
        """Metadata of topics that were asked for in other requests, or of none; None if one of them was not."""
        if request.topics is None or version not in self._brokers:
            return None
        topics = [self._topics.get((version, str(topic.name))) for topic in request.topics]
        if None in topics:
            return None
        known = cast("list[tuple[Exchange, Any]]", topics)
        last = max(
            [exchange for exchange, _ in known], key=lambda exchange: exchange.at, default=self._brokers[version]
        )
        message = cast("MetadataResponse", last.response_message())
        message.topics = [topic for _, topic in known]
        return message

    def _no_topics(self, version: int, request: Any) -> Message | None:
        """The answer to a Metadata that is missing: the unknown topics have TOPIC_AUTHORIZATION_FAILED.

        It has brokers, since clients ignore a Metadata without brokers.
        """
        if not isinstance(request, MetadataRequest) or version not in self._brokers:
            return None
        message = cast("MetadataResponse", self._brokers[version].response_message())
        code = int(ErrorCode.TOPIC_AUTHORIZATION_FAILED)
        message.topics = []
        for topic in request.topics or ():
            _, known = self._topics.get((version, str(topic.name)), (None, None))
            refused = MetadataResponseTopic(error_code=code, name=topic.name or "", topic_id=topic.topic_id)
            message.topics.append(known or refused)
        return message

    def _produce(self, version: int, request: Any) -> Answer | None:
        response = ProduceResponse()
        took = 0.0
        for topic in request.topic_data:
            answered = TopicProduceResponse(name=topic.name, topic_id=topic.topic_id)
            for partition in topic.partition_data:
                place = topic_of(topic), partition.index
                sent = self._logs.take(place, records_of(bytes_of(partition.records)))
                if isinstance(sent, str):
                    raise MissingError(f"Produce to {self._shown(place)} of {sent}")
                took = max(took, sent.took)
                result = PartitionProduceResponse(index=partition.index, base_offset=sent.offset)
                answered.partition_responses.append(result)
            response.responses.append(answered)
        return Answer(response, version, self._wait(took)) if request.acks else None

    def _fetch(self, version: int, request: Any) -> Answer:
        response = FetchResponse()  # no session: the client goes on to name all its partitions
        waits = []
        for topic in request.topics:
            answered = FetchableTopicResponse(topic=topic.topic, topic_id=topic.topic_id)
            for partition in topic.partitions:
                span = self._recorded_at((topic_of(topic), partition.partition), partition.fetch_offset)
                if span.end > span.start:
                    waits.append(self._wait(span.took))
                answered.partitions.append(_partition(partition.partition, span))
            response.responses.append(answered)
        return Answer(response, version, max(waits, default=request.max_wait_ms / 1000))

    def _recorded_at(self, place: Place, offset: int) -> Span:
        if place[0] not in self._logs.fetched:
            known = ", ".join(sorted({self._names.get(topic, topic) for topic in self._logs.fetched})) or "none"
            raise MissingError(f"Fetch of {self._shown(place)}; topics that were fetched: {known}")
        span = self._logs.at(place, offset)
        if isinstance(span, str):
            raise MissingError(f"Fetch of {self._shown(place)} {span}")
        return span

    def _commit(self, version: int, request: Any) -> Answer:
        if not self._groups.knows(request):
            raise MissingError(
                f"OffsetCommit of group {request.group_id}; groups of the session: {self._groups.names()}"
            )
        return Answer(self._groups.commit(request), version)

    def _shown(self, place: Place) -> str:
        """orders-0, also where requests have the topic's id."""
        topic, index = place
        return f"{self._names.get(topic, topic)}-{index}"

    def _sentence(self, key: tuple[ApiKey, int, str]) -> str:
        api, version, request = key
        text = f"{api_name(api)} v{version} {_clipped(request)}; "
        waiting = [(queue[0].at, *other[1:]) for other, queue in self._queues.items() if other[0] == api and queue]
        if not waiting:
            return f"{text}no {api_name(api)} comes any more"
        _, next_version, expected = min(waiting, key=lambda exchange: exchange[0])
        return f"{text}next comes {api_name(api)} v{next_version} {_clipped(expected)}"


def _clipped(text: str) -> str:
    return text if len(text) <= SHOWN else f"{text[:SHOWN]}…"


def _log_in(version: int, request: Any) -> Answer:
    """Accept any password or token: the cassette has none. MissingError for SCRAM, whose broker must know it."""
    parts = bytes(request.auth_bytes).split(b",", 3)
    if parts[0] in {b"n", b"y"} and len(parts) > 2 and parts[2].startswith(b"n="):
        raise MissingError("SaslAuthenticate by SCRAM; the broker must know the password, and a cassette has none")
    return Answer(SaslAuthenticateResponse(), version)


def _partition(index: int, span: Span) -> FetchResponsePartitionData:
    partition = FetchResponsePartitionData(partition_index=index, records=_NO_RECORDS, high_watermark=span.start)
    if span.data is not None:
        partition.high_watermark = span.data.high_watermark
        partition.last_stable_offset = span.data.last_stable_offset
        partition.log_start_offset = span.data.log_start_offset
        if span.end > span.start:
            partition.records = span.data.records
            partition.aborted_transactions = span.data.aborted_transactions
    return partition
