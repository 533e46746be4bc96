"""An error of Kafka in place of the answer: for single items where the API has items, else for the whole response.

Items that fail are removed from requests that change something before these are handled, so that the response is true;
the answers of these items are made from the request, whose keys (topic, partition, group) the items of the response
repeat. Requests that only read are handled, and the error is put into their responses. Such a fetch does not wait for
records.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from copy import copy
from typing import TYPE_CHECKING, Any, Final

from barnabas.broker.event_loop.waiting import outcome_of
from barnabas.coord.cluster.partitions.leader_elections import ElectionType, needs_election
from barnabas.kit.traffic.decoding import decoded
from barnabas.wire.api_keys import ApiKey
from barnabas.wire.errors import ErrorCode
from barnabas.wire.messages.topics import ElectLeadersRequest, ElectLeadersRequestTopicPartitions
from barnabas.wire.names import ERROR_FIELDS, PARTITION, TOPIC, TOPIC_ID, Place, places, shape_of

if TYPE_CHECKING:
    from barnabas.broker.apis.registry import Handler, Route
    from barnabas.broker.context import RequestContext
    from barnabas.coord.cluster.image import ClusterImage
    from barnabas.kit.traffic.faults.rules import Condition
    from barnabas.wire.codec.fields import Field, StructBase
    from barnabas.wire.schema import Message

CHANGES: Final = frozenset(
    {
        ApiKey.PRODUCE,
        ApiKey.OFFSET_COMMIT,
        ApiKey.TXN_OFFSET_COMMIT,
        ApiKey.ADD_PARTITIONS_TO_TXN,
        ApiKey.WRITE_TXN_MARKERS,
        ApiKey.CREATE_TOPICS,
        ApiKey.DELETE_TOPICS,
        ApiKey.CREATE_PARTITIONS,
        ApiKey.DELETE_RECORDS,
        ApiKey.DELETE_GROUPS,
        ApiKey.OFFSET_DELETE,
        ApiKey.ALTER_CONFIGS,
        ApiKey.INCREMENTAL_ALTER_CONFIGS,
        ApiKey.ALTER_CLIENT_QUOTAS,
        ApiKey.ALTER_USER_SCRAM_CREDENTIALS,
        ApiKey.ALTER_PARTITION_REASSIGNMENTS,
        ApiKey.ALTER_REPLICA_LOG_DIRS,
        ApiKey.ALTER_SHARE_GROUP_OFFSETS,
        ApiKey.DELETE_SHARE_GROUP_OFFSETS,
        ApiKey.CREATE_ACLS,
        ApiKey.DELETE_ACLS,
        ApiKey.ELECT_LEADERS,
        ApiKey.SHARE_ACKNOWLEDGE,
    }
)
"""APIs with items that change something."""
ITEM_ERRORS_ONLY: Final = {
    ApiKey.FETCH: frozenset(
        {
            ErrorCode.FETCH_SESSION_ID_NOT_FOUND,
            ErrorCode.INVALID_FETCH_SESSION_EPOCH,
            ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR,
        }
    ),
    ApiKey.METADATA: frozenset({ErrorCode.REBOOTSTRAP_REQUIRED}),
}
"""APIs whose top-level error code has these errors only: other errors are in the items."""
_SAME: Final = {
    "partition": "partition_index",
    "partition_id": "partition_index",
    "index": "partition_index",
    "topic": "name",
    "topic_name": "name",
    "user": "name",
}
"""Names of keys that are the same in a request and its response."""
_NOT_READ: Final = {"high_watermark": -1, "last_stable_offset": -1, "base_offset": -1, "log_start_offset": -1}
"""Kafka's values in the items that have failed."""


class ItemErrors:
    """An error of one rule for one request."""

    def __init__(self, route: Route, ctx: RequestContext, condition: Condition, code: ErrorCode) -> None:
        self._route = route
        self._ctx = ctx
        self._condition = condition
        self._code = code

    async def instead_of(self, handler: Handler, request: Any) -> Message | None:
        """The response to a request with the error in it."""
        if self._is_whole():
            return self._whole()
        if self._route.api_key in CHANGES:
            return await self._without_failed(handler, request)
        if self._route.api_key in (ApiKey.FETCH, ApiKey.SHARE_FETCH):
            request = copy(request)
            request.max_wait_ms = 0
        response = decoded(self._route, await outcome_of(handler(self._ctx, request)))
        return None if response is None else self.put_into(response, request)

    def put_into(self, response: Message, request: Any = None) -> Message:
        """Put the error into a response; items of the request that it leaves out are added."""
        failed_places = list(places(response, self._ctx.broker.image))
        if self._is_whole():
            failed_places = failed_places[:1]
        elif self._condition.has_items:
            failed_places = [place for place in failed_places if self._has_failed(place)]
        errors = [place for place in failed_places if place.error is not None and (place.depth > 0 or self._is_whole())]
        depth = min((place.depth for place in errors), default=0)
        for place in errors:
            if place.depth == depth:
                self._fail(place.struct, place.error or "")
        if self._route.api_key == ApiKey.FETCH and not errors:
            self._add_fetched(response)
        elif request is not None and not errors and self._condition.has_items:
            _, failed = self._divided(request)
            _joined(response, _failures_of(failed, type(response), self._exists, self._fail))
        return response

    def _is_whole(self) -> bool:
        """Whether the error is for the whole response."""
        fields = self._route.response_class.declared
        has_code = any(field.name == "error_code" and self._exists(field) for field in fields)
        if not has_code or (self._condition.has_items and _has_failing_items(self._route.response_class)):
            return False
        only = ITEM_ERRORS_ONLY.get(self._route.api_key)
        return only is None or self._code in only

    def _exists(self, field: Field) -> bool:
        """Whether the version of the response has a field."""
        from barnabas.wire.codec.fields import parse_versions

        return self._route.api_version in parse_versions(field.versions)

    def _whole(self) -> Message:
        response = self._route.response_class()
        self._fail(response, "error_code")
        return response

    def _fail(self, struct: Any, field: str) -> None:
        """Make an item, or a whole response, one that has failed."""
        setattr(struct, field, int(self._code))
        for name, value in _NOT_READ.items():
            if hasattr(struct, name):
                setattr(struct, name, value)
        if hasattr(struct, "records"):
            struct.records = b""
        if hasattr(struct, "aborted_transactions"):
            struct.aborted_transactions = None

    def _has_failed(self, place: Place) -> bool:
        """Whether an item gets the error."""
        condition = self._condition
        if condition.topic is not None and place.topic != condition.topic:
            return False
        return condition.partition is None or place.partition == condition.partition

    # -- requests that change something

    async def _without_failed(self, handler: Handler, request: Any) -> Message | None:
        rest, failed = self._divided(request)
        failures = _failures_of(failed, self._route.response_class, self._exists, self._fail)
        if not _has_items(rest):
            return failures  # type: ignore[no-any-return]
        response = decoded(self._route, await outcome_of(handler(self._ctx, rest)))
        return None if response is None else _joined(response, failures)

    def _divided(self, request: Any) -> tuple[Any, Any]:
        """The request without the items that fail, and the request with these items only."""
        if self._route.api_key == ApiKey.ELECT_LEADERS and request.topic_partitions is None:
            request = _elections_of_all(request, self._ctx.broker.image)
        if not self._condition.has_items:
            empty = copy(request)
            for field in type(request).declared:
                if field.kind == "array":
                    setattr(empty, field.name, [])
            return empty, request
        return self._split(request, None)

    def _split(self, struct: Any, topic: str | None) -> tuple[Any, Any]:
        shape = shape_of(type(struct))
        for name, what, is_array in shape.own:
            value = getattr(struct, name)
            if not is_array and what == TOPIC and value:
                topic = value
            elif not is_array and what == TOPIC_ID and (image := self._ctx.broker.image.topic_by_id(value)):
                topic = image.name
        rest, failed = copy(struct), copy(struct)
        for name, what, is_array in shape.own:
            values = getattr(struct, name)
            if is_array and values and what in (TOPIC, PARTITION):
                setattr(rest, name, [value for value in values if not self._fails(value, what, topic)])
                setattr(failed, name, [value for value in values if self._fails(value, what, topic)])
        for name, is_array, _ in shape.children:
            if is_array and getattr(struct, name):
                remaining: list[Any] = []
                failing: list[Any] = []
                for item in getattr(struct, name):
                    self._sort(item, topic, remaining, failing)
                setattr(rest, name, remaining)
                setattr(failed, name, failing)
        return rest, failed

    def _fails(self, value: Any, what: str, topic: str | None) -> bool:
        if what == TOPIC:
            return bool(value == self._condition.topic)
        is_topic = self._condition.topic in (None, topic)
        return is_topic and self._condition.partition in (None, value)

    def _sort(self, item: Any, topic: str | None, remaining: list[Any], failing: list[Any]) -> None:
        """Add an item, or its parts, to the remaining or the failing items."""
        place = next(places(item, self._ctx.broker.image))
        here = Place(item, place.topic or topic, place.partition, None, None, None, 0)
        if here.topic is not None and self._has_failed(here):
            failing.append(item)
            return
        rest, failed = self._split(item, here.topic)
        if not _has_items(failed):
            remaining.append(item)
            return
        failing.append(failed)
        if _has_items(rest):
            remaining.append(rest)

    # -- fetches

    def _add_fetched(self, response: Any) -> None:
        """Add the partitions of a session that have nothing new, and so are not in its response."""
        session = self._ctx.broker.fetch_sessions.find(response.session_id)
        if session is None:
            return
        topic_class = _element(type(response), "responses")
        partition_class = _element(topic_class, "partitions")
        image = self._ctx.broker.image
        for partition in session.partitions.values():
            known = image.topic_by_id(partition.topic_id)
            name = partition.topic or ("" if known is None else known.name)
            if self._has_failed(Place(partition, name, partition.index, None, None, None, 0)):
                item = partition_class(partition_index=partition.index)
                self._fail(item, "error_code")
                topic = topic_class(topic=partition.topic, topic_id=partition.topic_id, partitions=[item])
                response.responses.append(topic)


def _elections_of_all(request: ElectLeadersRequest, image: ClusterImage) -> ElectLeadersRequest:
    """A request for all partitions with those named that Kafka's answer would have: that need an election."""
    kind = ElectionType(request.election_type)
    named = copy(request)
    named.topic_partitions = [
        ElectLeadersRequestTopicPartitions(
            topic=topic.name,
            partitions=[index for index, partition in topic.partitions.items() if needs_election(partition, kind)],
        )
        for topic in image.topics.values()
    ]
    return named


def _element(struct_class: type[StructBase], name: str) -> Any:
    return next(field.struct_class for field in struct_class.declared if field.name == name)


def _has_failing_items(response_class: Any) -> bool:
    """Whether items of a response can have an error of their own: the items of heartbeats cannot."""
    items = [field.struct_class for field in response_class.declared if field.struct_class is not None]
    return any(any(field.name in ERROR_FIELDS for field in item.declared) or _has_failing_items(item) for item in items)


def _has_items(struct: Any) -> bool:
    return any(field.kind == "array" and getattr(struct, field.name) for field in type(struct).declared)


def _failures_of(
    request: Any, response_class: Any, exists: Callable[[Field], bool], fail: Callable[[Any, str], None]
) -> Any:
    """A response, or an item of one, that answers a request or its item with an error, in the fields that exist."""
    response = response_class()
    keys = _values(request)
    for field in response_class.declared:
        if field.kind == "array" and field.element_kind == "struct":
            items = _items_for(field, request) if exists(field) else []
            setattr(response, field.name, [_failures_of(item, field.struct_class, exists, fail) for item in items])
        elif field.kind not in {"array", "struct"} and (key := _SAME.get(field.name, field.name)) in keys:
            setattr(response, field.name, keys[key])
    errors = [name for name in ERROR_FIELDS if hasattr(response, name)]
    is_item = not hasattr(response, "api_key")
    if errors and is_item:
        fail(response, errors[0])
    return response


def _values(item: Any) -> dict[str, Any]:
    """The keys of an item, also for APIs whose items are plain texts or numbers."""
    if isinstance(item, int):
        return {"partition_index": item}
    if isinstance(item, str):
        return {"name": item, "group_id": item}
    fields = [field.name for field in type(item).declared if field.kind not in {"array", "struct", "records"}]
    return {_SAME.get(name, name): getattr(item, name) for name in fields}


def _items_for(field: Field, request: Any) -> list[Any]:
    """The items of a request that an array of its response answers: the array that shares the most keys.

    Where no keys are shared, as for ACLs and quotas, the answers are in the order of all items.
    """
    arrays = _arrays(request)
    names = [subfield.name for subfield in field.struct_class.declared]  # type: ignore[union-attr]
    keys = {_SAME.get(name, name) for name in names}
    inner = [[part for item in items for array in _arrays(item) for part in array] for items in arrays]
    candidates = [*arrays, *filter(None, inner)]
    best = max(candidates, key=lambda items: len(keys & _values(items[0]).keys()), default=[])
    if best and keys & _values(best[0]).keys():
        return best
    return [item for items in arrays for item in items] if set(names) & set(ERROR_FIELDS) else []


def _arrays(item: Any) -> list[list[Any]]:
    """The arrays of a request or an item that have items."""
    if isinstance(item, (int, str)):
        return []
    arrays = [getattr(item, field.name) for field in type(item).declared if field.kind == "array"]
    return [list(array) for array in arrays if array]


def _joined(response: Any, failures: Any) -> Any:
    """The response of a request with the answers of the items that have failed; items of one topic are one."""
    for field in type(response).declared:
        if field.kind == "array" and field.element_kind == "struct" and getattr(failures, field.name):
            items = list(getattr(response, field.name) or [])
            for item in getattr(failures, field.name):
                _join(items, item)
            setattr(response, field.name, items)
    return response


def _join(items: list[Any], item: Any) -> None:
    arrays = [field.name for field in type(item).declared if field.kind == "array" and field.element_kind == "struct"]
    keys = _topic_keys(item)
    for known in items if keys and arrays else ():
        if _topic_keys(known) == keys:
            for name in arrays:
                setattr(known, name, [*(getattr(known, name) or ()), *(getattr(item, name) or ())])
            return
    items.append(item)


def _topic_keys(item: Any) -> Iterable[Any]:
    return [
        getattr(item, name) for name, what, is_array in shape_of(type(item)).own if what != PARTITION and not is_array
    ]
