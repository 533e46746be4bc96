"""Well-formed requests with absurd content: for each API and each of its arrays, that array with `count` elements.

The elements name things that exist or not, all the same thing or all different ones. Only the declarations say what a
field means: its entity (topic name, group id ...), or its name.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from barnabas.broker.apis.registry import BROKER_APIS, served_versions
from barnabas.coord.cluster.resources import TOPIC
from barnabas.wire.api_keys import ApiKey
from barnabas.wire.codec.fields import Field, StructBase, parse_versions
from barnabas.wire.frame import message_for
from barnabas.wire.messages.configs import (
    AlterConfigsRequest,
    AlterConfigsRequestAlterableConfig,
    AlterConfigsRequestAlterConfigsResource,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsRequestAlterableConfig,
    IncrementalAlterConfigsRequestAlterConfigsResource,
)
from barnabas.wire.messages.topics import (
    CreatableTopic,
    CreatePartitionsRequest,
    CreatePartitionsTopic,
    CreateTopicsRequest,
    DeleteTopicsRequest,
    DeleteTopicState,
)
from barnabas.wire.schema import Message


class Names(NamedTuple):
    """What exists in the broker under test."""

    topics: list[str]
    topic_ids: list[bytes]
    groups: list[str]
    transactional_ids: list[str]


class Mode(NamedTuple):
    """Whether the elements name what exists, and whether each names something else."""

    exists: bool
    differs: bool

    def __str__(self) -> str:
        return f"{'different' if self.differs else 'same'} {'existing' if self.exists else 'missing'}"


class Case(NamedTuple):
    """One request."""

    name: str
    request: Message
    version: int


_REMOVING = {ApiKey.DELETE_TOPICS, ApiKey.DELETE_GROUPS, ApiKey.OFFSET_DELETE}
"""Sent last, since afterwards nothing is there."""

MODES = [Mode(exists, differs) for exists in (True, False) for differs in (False, True)]

_FIXED = {
    "acks": 1,
    "replica_id": -1,
    "max_wait_ms": 0,
    "min_bytes": 0,
    "max_bytes": 1 << 20,
    "partition_max_bytes": 1 << 10,
    "session_epoch": -1,
    "generation_id_or_member_epoch": -1,
    "generation_id": -1,
    "num_partitions": 1,
    "replication_factor": 1,
    "count": 2000,
    "current_leader_epoch": -1,
    "timestamp": -1,
    "validate_only": True,
    "resource_type": 2,
    "session_timeout_ms": 10_000,
    "rebalance_timeout_ms": 10_000,
    "protocol_type": "consumer",
    "protocol_name": "range",
    "allow_auto_topic_creation": False,
    "upgrade_type": 1,
    "max_version_level": 1,
    "committed_offset": 7,
    "response_partition_limit": 2000,
    "include_synonyms": True,
    "include_documentation": True,
    "include_authorized_operations": True,
    "include_topic_authorized_operations": True,
    "timeout_ms": 1000,
    "offset": 0,
}
"""Values of fields with which a request does more than be refused."""


_NAMED = {
    "group_names": "groupId",
    "groups_names": "groupId",
    "transactional_ids": "transactionalId",
    "v3_and_below_transactional_id": "transactionalId",
    "resource_name": "topicName",
    "coordinator_keys": "groupId",
    "key": "groupId",
    "topic_names": "topicName",
    "topic_name": "topicName",
}


class _Filler:
    """Fills one request: the array at `path` has `count` elements, every other one has one."""

    def __init__(self, names: Names, version: int, path: tuple[str, ...], count: int, mode: Mode) -> None:
        self._names = names
        self._version = version
        self._path = path
        self._count = count
        self._mode = mode

    def struct(self, cls: type[StructBase], path: tuple[str, ...], index: int) -> Any:
        """An instance of a declared class; `index` is its position in the long array, or 0."""
        instance: Any = cls()
        fields = [declared for declared in cls.declared if self._version in parse_versions(declared.versions)]
        has_name = any(declared.entity == "topicName" for declared in fields)
        for field in fields:
            if field.kind == "uuid" and has_name:
                continue  # by name; Metadata and DeleteTopics allow one of both
            value = self._value(field, (*path, field.name), index)
            if value is not None:
                setattr(instance, field.name, value)
        return instance

    def _value(self, field: Field, path: tuple[str, ...], index: int) -> Any:
        if field.kind == "array":
            if path == self._path:
                return [self._element(field, path, position) for position in range(self._count)]
            if path != self._path[: len(path)] and field.name in ("topics", "partitions") and len(path) == 1:
                return [self._element(field, path, 0)]
            return [self._element(field, path, index)] if path == self._path[: len(path)] or len(path) > 1 else None
        if field.kind == "struct":
            assert field.struct_class is not None
            return None if field.tag >= 0 else self.struct(field.struct_class, path, index)
        return self._scalar(field.kind, field.name, field.entity, index)

    def _element(self, field: Field, path: tuple[str, ...], index: int) -> Any:
        if field.struct_class is not None:
            return self.struct(field.struct_class, path, index)
        value = self._scalar(field.element_kind, field.name, field.entity, index)
        if value is not None:
            return value
        return "" if field.element_kind == "string" else index % 100 if self._mode.differs else 0

    def _scalar(self, kind: str, name: str, entity: str, index: int) -> Any:
        at = index if self._mode.differs else 0
        if name in _FIXED:
            return _FIXED[name]
        entity = entity or _NAMED.get(name, "")
        if kind == "string":
            return self._text(entity, name, at)
        if kind == "uuid":
            return self._names.topic_ids[at % len(self._names.topic_ids)] if self._mode.exists else b"%016d" % at
        if kind.startswith(("int", "uint")) and ("partition" in name or name in ("indexes", "index", "producer_id")):
            if kind in ("int8", "int16"):
                return at % 100
            return at if self._mode.exists else at + 1_000_000
        return None

    def _text(self, entity: str, name: str, at: int) -> str | None:
        exists = self._mode.exists
        if entity == "topicName":
            return self._names.topics[at % len(self._names.topics)] if exists else f"missing.topic_{at}"
        if entity == "groupId":
            return self._names.groups[at % len(self._names.groups)] if exists else f"missing-{at}"
        if entity == "transactionalId":
            ids = self._names.transactional_ids
            return ids[at % len(ids)] if exists else f"missing-{at}"
        if name in ("member_id", "group_instance_id", "instance_id", "metadata", "committed_metadata", "rack_id"):
            return None
        return "retention.ms" if exists and not self._mode.differs else f"name.{at}"


def _arrays(cls: type[StructBase], version: int, path: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """The paths of all arrays of a version, outer ones first."""
    for field in cls.declared:
        if version not in parse_versions(field.versions):
            continue
        here = (*path, field.name)
        if field.kind == "array":
            yield here
        if field.struct_class is not None:
            yield from _arrays(field.struct_class, version, here)


def elements(value: Any) -> int:
    """The array elements and tagged fields in a struct, or in an array and its elements."""
    if isinstance(value, list):
        return len(value) + sum([elements(member) for member in value if isinstance(member, StructBase)])
    count = 0
    for field in value.declared:
        member = getattr(value, field.name)
        count += field.tag >= 0 and not field.is_default(member)
        if isinstance(member, list | StructBase):
            count += elements(member)
    return count


def _inner(request: Any, path: tuple[str, ...]) -> Any:
    """The array at a path of which every array has one element."""
    for name in path:
        request = getattr(request[0] if isinstance(request, list) else request, name)
    return request


def cases(names: Names, count: int, apis: list[str] | None = None) -> Iterator[Case]:
    """The cases of all served APIs, or of those named, in their newest version and the oldest one."""
    for key in sorted(BROKER_APIS, key=lambda key: key in _REMOVING):
        if not apis or key.name in apis:
            yield from _cases_of(key, names, count)


def changes(names: list[str]) -> list[Case]:
    """Requests that change the metadata of all these topics, none of which exists: made, extended, set, deleted."""
    topics = [CreatableTopic(name=name, num_partitions=1, replication_factor=1) for name in names]
    extended = [CreatePartitionsTopic(name=name, count=2) for name in names]
    altered = [
        IncrementalAlterConfigsRequestAlterConfigsResource(
            resource_type=TOPIC,
            resource_name=name,
            configs=[IncrementalAlterConfigsRequestAlterableConfig(name="retention.ms", value="1000")],
        )
        for name in names
    ]
    replaced = [
        AlterConfigsRequestAlterConfigsResource(
            resource_type=TOPIC,
            resource_name=name,
            configs=[AlterConfigsRequestAlterableConfig(name="retention.ms", value="2000")],
        )
        for name in names
    ]
    return [
        Case("CREATE_TOPICS valid", CreateTopicsRequest(topics=topics), 7),
        Case("CREATE_PARTITIONS valid", CreatePartitionsRequest(topics=extended), 3),
        Case("INCREMENTAL_ALTER_CONFIGS valid", IncrementalAlterConfigsRequest(resources=altered), 1),
        Case("ALTER_CONFIGS valid", AlterConfigsRequest(resources=replaced), 2),
        Case("DELETE_TOPICS valid", DeleteTopicsRequest(topics=[DeleteTopicState(name=topic) for topic in names]), 6),
    ]


def _cases_of(key: ApiKey, names: Names, count: int) -> Iterator[Case]:
    request_class = message_for(key)[0]
    first, last = served_versions(key)
    for version in sorted({first, last}, reverse=True):
        yield Case(f"{key.name} v{version} empty", request_class(), version)
        for path in _arrays(request_class, version):
            for mode in MODES:
                request = _Filler(names, version, path, 1, mode).struct(request_class, (), 0)
                fits = max(1, count // max(1, elements(_inner(request, path))))
                request = _Filler(names, version, path, fits, mode).struct(request_class, (), 0)
                yield Case(f"{key.name} v{version} {'.'.join(path)} {mode}", request, version)
