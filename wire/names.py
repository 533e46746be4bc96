"""The names in any message of Kafka's protocol: topics, partitions, groups, transactional ids, error codes.

Kafka's declarations say which text is a topic's name, a group's id or a transactional id (`entity`). A class is
analyzed once; reading a message then looks only at the fields that can name something.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Protocol

from barnabas.wire.errors import ErrorCode
from barnabas.wire.messages.groups.classic_groups import FindCoordinatorRequest
from barnabas.wire.types import ZERO_UUID, uuid_to_text

if TYPE_CHECKING:
    from barnabas.wire.codec.fields import StructBase

TOPIC: Final = "topicName"
TOPIC_ID: Final = "topicId"
GROUP: Final = "groupId"
TRANSACTIONAL_ID: Final = "transactionalId"
PARTITION: Final = "partition"

ERROR_FIELDS: Final = ("error_code", "partition_error_code")
"""The names of an item's error code."""
_ENTITIES: Final = frozenset({TOPIC, GROUP, TRANSACTIONAL_ID})
_PARTITIONS: Final = frozenset({"partition", "partition_index", "index", "partitions", "partition_indexes"})
_TRANSACTIONS: Final = 1
"""FindCoordinator's type of key for transactional ids; 0 are groups, 2 share partitions."""


class Shape(NamedTuple):
    """Which fields of a class name something."""

    own: tuple[tuple[str, str, bool], ...]
    """Name of the field, the kind of its name, whether it is an array."""
    error: str | None
    children: tuple[tuple[str, bool, Shape], ...]
    """Structs and arrays of structs that name something: field, whether it is an array, shape."""


class Place(NamedTuple):
    """A struct of a message, with the names that apply to it."""

    struct: Any
    topic: str | None
    partition: int | None
    group: str | None
    transactional_id: str | None
    error: str | None
    """The name of its field for an error code."""
    depth: int


class NamedTopic(Protocol):
    """A topic that is known."""

    @property
    def name(self) -> str:
        """Its name."""


class TopicNames(Protocol):
    """Knows the topics of ids, such as the image of a cluster."""

    def topic_by_id(self, topic_id: bytes, /) -> NamedTopic | None:
        """The topic of an id; None if there is none."""


_shapes: dict[type, Shape] = {}


def shape_of(message_class: type[StructBase]) -> Shape:
    """Which fields of a class name something."""
    shape = _shapes.get(message_class)
    if shape is None:
        shape = _shapes[message_class] = _analyzed(message_class)
    return shape


def _analyzed(message_class: type[StructBase]) -> Shape:
    own, children, error = [], [], None
    for declared in message_class.declared:
        name, is_array = declared.name, declared.kind == "array"
        kind = declared.element_kind if is_array else declared.kind
        if declared.entity in _ENTITIES:
            own.append((name, declared.entity, is_array))
        elif kind == "uuid" and name.startswith("topic_id"):
            own.append((name, TOPIC_ID, is_array))
        elif kind == "int32" and name in _PARTITIONS:
            own.append((name, PARTITION, is_array))
        elif name in ERROR_FIELDS:
            error = name
        elif kind == "struct" and declared.struct_class is not None:
            shape = shape_of(declared.struct_class)
            if shape.own or shape.error or shape.children:
                children.append((name, is_array, shape))
    return Shape(tuple(own), error, tuple(children))


def places(message: StructBase, topics: TopicNames) -> Iterator[Place]:
    """The structs of a message, outer ones first, each with its names and the names of the structs around it."""
    yield from _places(message, shape_of(type(message)), topics, Place(message, None, None, None, None, None, -1))


def _places(struct: Any, shape: Shape, topics: TopicNames, around: Place) -> Iterator[Place]:
    _, topic, partition, group, transactional_id, _, depth = around
    for name, what, is_array in shape.own:
        if is_array:
            continue
        value = getattr(struct, name)
        if what == TOPIC:
            topic = value or topic
        elif what == TOPIC_ID:
            topic = _name_of(value, topics) if value != ZERO_UUID else topic
        elif what == PARTITION:
            partition = value
        elif what == GROUP:
            group = value or group
        else:
            transactional_id = value or transactional_id
    here = Place(struct, topic, partition, group, transactional_id, shape.error, depth + 1)
    yield here
    for name, is_array, child in shape.children:
        value = getattr(struct, name)
        if value is not None:
            for item in value if is_array else (value,):
                yield from _places(item, child, topics, here)


def _name_of(topic_id: bytes, topics: TopicNames) -> str:
    topic = topics.topic_by_id(topic_id)
    return uuid_to_text(topic_id) if topic is None else topic.name


@dataclass(slots=True)
class Named:
    """Everything that a request names."""

    topics: dict[str, None] = field(default_factory=dict)
    partitions: set[tuple[str | None, int]] = field(default_factory=set)
    groups: dict[str, None] = field(default_factory=dict)
    transactional_ids: dict[str, None] = field(default_factory=dict)


def named_by(request: StructBase, topics: TopicNames) -> Named:
    """The names in a request, each once and in its order."""
    named = Named()
    if type(request) is FindCoordinatorRequest:
        keys = [key for key in (request.key, *request.coordinator_keys) if key]
        names = named.transactional_ids if request.key_type == _TRANSACTIONS else named.groups
        names.update(dict.fromkeys(keys))
        return named
    _collect(request, shape_of(type(request)), topics, named, None)
    return named


def _collect(struct: Any, shape: Shape, topics: TopicNames, named: Named, topic: str | None) -> None:
    for name, what, is_array in shape.own:
        value = getattr(struct, name)
        if value is not None:
            for text in value if is_array else (value,):
                topic = _add(named, what, text, topics, topic)
    for name, is_array, child in shape.children:
        value = getattr(struct, name)
        if value is not None:
            for item in value if is_array else (value,):
                _collect(item, child, topics, named, topic)


def _add(named: Named, what: str, value: Any, topics: TopicNames, topic: str | None) -> str | None:
    """Add one name; return the topic of the names after it."""
    if what == PARTITION:
        named.partitions.add((topic, value))
    elif what == GROUP and value:
        named.groups[value] = None
    elif what == TRANSACTIONAL_ID and value:
        named.transactional_ids[value] = None
    elif (what == TOPIC and value) or (what == TOPIC_ID and value != ZERO_UUID):
        topic = value if what == TOPIC else _name_of(value, topics)
        named.topics[topic] = None
    return topic


MAX_ERRORS: Final = 20
"""Error codes that are read of one response."""


def errors_in(response: StructBase, topics: TopicNames) -> Iterator[tuple[str, str]]:
    """The errors of a response: where (a topic's partition, a group; empty: the whole response), and its name."""
    count = 0
    for place in places(response, topics):
        code = 0 if place.error is None else getattr(place.struct, place.error)
        if code:
            count += 1
            if count > MAX_ERRORS:
                return
            name = place.topic or place.group or place.transactional_id or ""
            where = name if place.partition is None or place.topic is None else f"{name}-{place.partition}"
            yield where, error_name(code)


def error_name(code: int) -> str:
    """The name of an error code; the number of one that Kafka does not have."""
    try:
        return ErrorCode(code).name
    except ValueError:
        return str(code)
