"""Absurd requests: well-formed messages of every served API and version, with typed values of every kind.

Integers are extremes or small, strings are empty, huge, null, or names that exist, arrays are null, empty, long or full
of duplicates. Values of responses are learned under the name or the entity of their field, so that some requests have
the producer ids, epochs, member ids and topic ids that the broker has given out.
"""

from __future__ import annotations

from collections import defaultdict, deque
from functools import cache
from random import Random
from typing import Any, NamedTuple

from barnabas.broker.apis.registry import BROKER_APIS, served_versions
from barnabas.wire.codec.fields import Field, StructBase, parse_versions
from barnabas.wire.frame import message_for
from barnabas.wire.messages.cluster import UpdateFeaturesRequest
from barnabas.wire.messages.configs import AlterConfigsRequest, IncrementalAlterConfigsRequest
from barnabas.wire.messages.groups.consumer_protocol import ConsumerProtocolSubscription
from barnabas.wire.messages.topics import CreatePartitionsRequest, CreateTopicsRequest
from barnabas.wire.schema import Message
from barnabas.wire.types import ONE_UUID, ZERO_UUID
from tests.support.requests.random_batches import some_records

HEALTHY_TOPIC = "healthy"
"""The topic of the healthy client: no request names it."""
TOPICS = ("orders", "payments.eu", "payments_eu2", "compacted")
"""Topics that exist from the start."""
PARTITIONS = 3
LIMITS = {"int8": 7, "int16": 15, "uint16": 16, "int32": 31, "uint32": 32, "int64": 63}
NAMES = {
    "topicName": (
        *TOPICS,
        "new-topic",
        "new.topic",
        "__consumer_offsets",
        "__transaction_state",
        "__share_group_state",
    ),
    "groupId": ("g", "group-1", "group-2", "consumer-1", "share-1", "streams-1"),
    "transactionalId": ("t", "tx-1", "tx-2"),
}
TEXTS = (
    "",
    "a",
    ".",
    "..",
    "a" * 249,
    "a" * 300,
    "ü€😀",
    "two\nlines",
    "\x1b[31mred",
    "\x00",
    "a b",
    "a/b",
    "%s%n",
    "range",
)
SAME_MEANING = {
    "generation_id": "generation",
    "member_epoch": "generation",
    "group_epoch": "generation",
    "generation_id_or_member_epoch": "generation",
    "error_code": "",
    "throttle_time_ms": "",
}
WAITS = (0, 0, 1, 1, 5, 20, -1, -(1 << 31))
SESSIONS = (0, 1, 6000, 10_000, 45_000, 1_800_000, -1, (1 << 31) - 1)
SENSIBLE: dict[str, tuple[Any, ...]] = {
    "acks": (-1, -1, 1, 1, 0),
    "assignments": ([],),
    "cluster_id": (None,),
    "configs": ([],),
    "controller_id": (-1,),
    "current_leader_epoch": (-1, 0),
    "group_instance_id": (None,),
    "include_cluster_authorized_operations": (False,),
    "instance_id": (None,),
    "isolation_level": (0, 1),
    "key_type": (0, 0, 1, 2),
    "last_fetched_epoch": (-1,),
    "leader_epoch": (-1, 0, 0),
    "max_bytes": (1, 1000, 1 << 20),
    "max_records": (1, 10, 500),
    "max_version_level": (1,),
    "member_epoch": (0, 0, -1),
    "member_id": ("", "", "member-1", "member-2"),
    "min_bytes": (0, 1),
    "num_partitions": (-1, 1, 2, 3),
    "partition_max_bytes": (1000, 1 << 20),
    "producer_epoch": (0,),
    "protocol_type": ("consumer",),
    "rebalance_timeout_ms": (100, 5000),
    "replica_id": (-1,),
    "replication_factor": (-1, 1),
    "resource_type": (2, 2, 4, 32),
    "session_epoch": (-1, 0, 0),
    "session_id": (0,),
    "session_timeout_ms": (6000, 10_000),
    "share_session_epoch": (0, 0, 1, -1),
    "state_epoch": (0, 1),
    "timestamp": (-1, -2, -3, 1000),
    "topic_partitions": (None, []),
    "transactional_id": (None, "t"),
    "transaction_timeout_ms": (1000, 60_000),
    "unsupported_version": (False,),
    "validate_only": (False,),
}
"""Values with which a request gets further than to the check of that field, by the name of the field."""
MAX_NEW_PARTITIONS = 100


class Plan(NamedTuple):
    """A field and the versions it exists in."""

    field: Field
    versions: range
    nullable: range
    name: str


class Api(NamedTuple):
    """A served API with its versions."""

    request: type[Message]
    response: type[Message]
    first: int
    last: int


@cache
def served() -> tuple[Api, ...]:
    """All served APIs, by key."""
    return tuple(Api(*message_for(key), *served_versions(key)) for key in sorted(BROKER_APIS))


@cache
def plan_of(cls: type[StructBase]) -> tuple[Plan, ...]:
    """The fields of a struct."""
    return tuple(
        Plan(field, parse_versions(field.versions), parse_versions(field.nullable), _meaning(field))
        for field in cls.declared
    )


def _meaning(field: Field) -> str:
    return field.entity or SAME_MEANING.get(field.name, field.name)


class Learned:
    """Values that responses had, by the meaning of their field."""

    def __init__(self) -> None:
        self._values: dict[str, deque[Any]] = defaultdict(lambda: deque(maxlen=24))
        self._ignored: set[Any] = {HEALTHY_TOPIC}

    def ignore(self, value: object) -> None:
        """Never use this value: the healthy client's topic."""
        self._ignored.add(value)

    def any(self, random: Random, name: str) -> Any:
        """A learned value, or None."""
        values = self._values.get(name)
        return random.choice(values) if values else None

    def learn(self, value: Any, budget: int = 60) -> None:
        """Learn the values of a response."""
        for field in value.declared:
            field_value = getattr(value, field.name)
            kind = field.kind
            if kind == "struct":
                if field_value is not None:
                    self.learn(field_value, budget)
            elif kind == "array":
                for element in (field_value or ())[:3]:
                    if isinstance(element, StructBase):
                        self.learn(element, budget)
                    elif element not in self._ignored:
                        self._values[_meaning(field)].append(element)
            elif kind != "records" and field_value not in (None, 0, -1, "", b"", False, ZERO_UUID):
                name = _meaning(field)
                if name and field_value not in self._ignored:
                    self._values[name].append(field_value)


class Absurd:
    """Makes requests; equal seeds and equal learned values make equal requests."""

    def __init__(self, random: Random, learned: Learned) -> None:
        self._random = random
        self._learned = learned
        self._left = 0

    def request(self, api: Api | None = None) -> tuple[Message, int]:
        """A request, and the version it is made for."""
        random = self._random
        api = api or random.choice(served())
        version = api.last if random.random() < 0.4 else random.randint(api.first, api.last)
        self._left = 3000
        absurd_request = self._struct(api.request, version, 0)
        if version >= api.request.flexible_since and random.random() < 0.03:
            absurd_request.unknown_tagged_fields = tuple(
                (1000 + n, random.randbytes(n)) for n in range(random.randint(1, 40))
            )
        tame(absurd_request, random)
        return absurd_request, version

    def _struct(self, cls: type[Any], version: int, depth: int) -> Any:
        struct = cls()
        for field, versions, nullable, name in plan_of(cls):
            if version in versions:
                setattr(struct, field.name, self._field(field, version, version in nullable, name, depth))
        return struct

    def _field(self, field: Field, version: int, nullable: bool, name: str, depth: int) -> Any:
        random = self._random
        sensible = SENSIBLE.get(field.name)
        if sensible is not None and random.random() < 0.6:
            value = random.choice(sensible)
            if value is not None or nullable:
                return list(value) if type(value) is list else value
        if nullable and random.random() < 0.15:
            return None
        if field.kind == "array":
            return self._array(field, version, name, depth)
        if field.kind == "struct":
            return self._struct(field.element, version, depth + 1)  # type: ignore[arg-type]
        return self._primitive(field.kind, name)

    def _array(self, field: Field, version: int, name: str, depth: int) -> list[Any]:
        random = self._random
        count = random.choice((0, 1, 1, 1, 1, 2, 2, 3, 5))
        if random.random() < 0.01:
            count = random.choice((30, 300, 3000)) >> depth
        count = min(count, max(self._left, 0))
        self._left -= count
        inner = field.struct_class
        kind = field.element_kind
        items = [
            self._struct(inner, version, depth + 1) if inner else self._primitive(kind, name) for _ in range(count)
        ]
        if items and random.random() < 0.05:
            items = [random.choice(items) for _ in items] + items
        return items

    def _primitive(self, kind: str, name: str) -> Any:
        random = self._random
        if kind != "records" and random.random() < 0.5:
            learned = self._learned.any(random, name)
            if learned is not None and _fits(kind, learned):
                return learned
        if kind in LIMITS:
            return self._integer(kind, name)
        match kind:
            case "string":
                return self._string(name)
            case "boolean":
                return random.random() < 0.5
            case "uuid":
                return random.choice((ZERO_UUID, ONE_UUID, random.randbytes(16), b"\xff" * 16))
            case "bytes":
                return self._bytes()
            case "records":
                return some_records(random, self._learned)
        return random.choice((0.0, -1.0, 1e308, float("inf"), float("nan")))

    def _integer(self, kind: str, name: str) -> int:
        random = self._random
        if name.endswith("timeout_ms") and name not in ("timeout_ms", "transaction_timeout_ms"):
            return random.choice(SESSIONS)
        if "wait" in name or "timeout" in name:
            return random.choice(WAITS)
        bits = LIMITS[kind]
        low = 0 if kind.startswith("u") else -(1 << bits)
        chance = random.random()
        if chance < 0.6:
            return random.choice((0, 0, 1, 1, 2, 3, PARTITIONS - 1))
        if chance < 0.75:
            return max(low, random.choice((-1, -1, -2, 5, 100)))
        if chance < 0.9:
            return random.choice((low, low + 1, (1 << bits) - 1, (1 << bits) - 2, 1 << random.randrange(bits)))
        return random.randint(low, (1 << bits) - 1)

    def _string(self, name: str) -> str:
        random = self._random
        known = NAMES.get(name) or NAMES["groupId" if name in ("key", "coordinator_keys") else "topicName"]
        if random.random() < 0.75:
            return random.choice(known)
        if random.random() < 0.02:
            return "x" * random.choice((1000, 32767, 32767))
        return random.choice(TEXTS)

    def _bytes(self) -> bytes:
        random = self._random
        if random.random() < 0.5:
            version = random.randint(0, 3)
            subscription: Message = self._struct(ConsumerProtocolSubscription, version, 2)
            return version.to_bytes(2, "big") + subscription.encode(version)
        return random.choice((b"", b"\x00", random.randbytes(random.randrange(60)), bytes(random.randrange(5000))))


def _fits(kind: str, value: object) -> bool:
    if kind in LIMITS:
        if type(value) is not int:
            return False
        bits = LIMITS[kind]
        return (0 if kind.startswith("u") else -(1 << bits)) <= value < 1 << bits
    return type(value) is {"string": str, "bytes": bytes, "uuid": bytes, "boolean": bool}.get(kind) and (
        kind != "uuid" or len(value) == 16  # type: ignore[arg-type]
    )


def tame(request: Message, random: Random) -> None:
    """Keep a request from changing what the fuzz itself needs: the broker's limits, a bounded number of partitions."""
    if isinstance(request, AlterConfigsRequest | IncrementalAlterConfigsRequest):
        if any(resource.resource_type in (4, 8) for resource in request.resources or ()):
            request.validate_only = True
    elif isinstance(request, CreateTopicsRequest):
        partitions = sum(max(topic.num_partitions, len(topic.assignments or ())) for topic in request.topics or ())
        request.validate_only = request.validate_only or partitions > MAX_NEW_PARTITIONS
    elif isinstance(request, CreatePartitionsRequest):
        partitions = sum(topic.count for topic in request.topics or () if topic.count > 0)
        request.validate_only = request.validate_only or partitions > MAX_NEW_PARTITIONS
    elif isinstance(request, UpdateFeaturesRequest) and random.random() < 0.98:
        request.feature_updates = []
