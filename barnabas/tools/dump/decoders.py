"""Decodes records of internal topics and of the cluster metadata log to JSON."""

from __future__ import annotations

import re
from types import ModuleType

from barnabas.coord.cluster.metadata_log.metadata_serde import RECORD_TYPES
from barnabas.tools.dump.item import Decoded, Decoder, Fields
from barnabas.tools.dump.secrets import hide_secrets
from barnabas.wire.batches.records import ControlRecordType, Record
from barnabas.wire.codec.json_form import to_json
from barnabas.wire.errors import KafkaError, ProtocolError
from barnabas.wire.messages.groups.consumer_protocol import ConsumerProtocolAssignment, ConsumerProtocolSubscription
from barnabas.wire.messages.records import coordinator_records, raft_records
from barnabas.wire.schema import Message
from barnabas.wire.varint import unsigned_varint

DELETED = "<DELETE>"
_VALUE_VERSION_SIZE = 2

Pair = tuple["type[Message]", "type[Message]"]


def offsets_decoder() -> Decoder:
    """`__consumer_offsets`."""
    pairs = _pairs(coordinator_records, without=("TransactionLog", "ShareSnapshot", "ShareUpdate"))
    return lambda record: _coordinator_record(pairs, record)


def transaction_log_decoder() -> Decoder:
    """`__transaction_state`."""
    pairs = _pairs(coordinator_records, only=("TransactionLog",))
    return lambda record: _coordinator_record(pairs, record)


def share_state_decoder() -> Decoder:
    """`__share_group_state`."""
    pairs = _pairs(coordinator_records, only=("ShareSnapshot", "ShareUpdate"))
    return lambda record: _coordinator_record(pairs, record)


def _pairs(module: ModuleType, only: tuple[str, ...] = (), without: tuple[str, ...] = ()) -> dict[int, Pair]:
    """Key and value class by record type, for the given kinds of records."""
    pairs: dict[int, Pair] = {}
    for name, key in vars(module).items():
        kind = name.removesuffix("Key")
        if name.endswith("Key") and hasattr(module, f"{kind}Value") and (kind in only if only else kind not in without):
            pairs[key.api_key] = key, getattr(module, f"{kind}Value")
    return pairs


def _coordinator_record(pairs: dict[int, Pair], record: Record) -> Decoded:
    """Decode a record: the first two bytes of the key are its type, the first two of the value the value's version."""
    if record.key is None or len(record.key) < _VALUE_VERSION_SIZE:
        return f"Error at offset {record.offset}, skipping. The record has no key", None
    kind = int.from_bytes(record.key[:2], "big")
    if kind not in pairs:
        return f"Unknown record type {kind} at offset {record.offset}, skipping.", None
    key_class, value_class = pairs[kind]
    try:
        key: Fields = {"type": str(kind), "data": to_json(key_class.decode(record.key[2:], 0), 0)}
        if record.value is None:
            return key, DELETED
        version = int.from_bytes(record.value[:2], "big")
        data = to_json(value_class.decode(record.value[2:], version), version)
    except (KafkaError, ProtocolError) as error:
        return f"Error at offset {record.offset}, skipping. {error}", None
    if value_class.__name__ == "GroupMetadataValue" and data.get("protocolType") == "consumer":
        _open_members(data)
    return key, {"version": str(version), "data": data}


def _open_members(group: Fields) -> None:
    """Replace the consumer protocol's bytes in a classic group's members by their decoded content."""
    classes: dict[str, type[Message]] = {
        "subscription": ConsumerProtocolSubscription,
        "assignment": ConsumerProtocolAssignment,
    }
    members = group.get("members")
    assert isinstance(members, list)
    for member in members:
        for name, declared in classes.items():
            member[name] = _open(member[name], declared)


def _open(text: object, declared: type[Message]) -> object:
    from base64 import b64decode

    if not isinstance(text, str):
        return text
    data = b64decode(text)
    version = int.from_bytes(data[:2], "big")
    try:
        decoded, _ = declared.codec(version).parse(data, 2)  # additional bytes of newer members are ignored
        return to_json(decoded, version)
    except (KafkaError, ProtocolError):
        return text


def cluster_metadata_decoder() -> Decoder:
    """`__cluster_metadata`: KRaft records, each framed by version, type and version of the type."""

    def decode(record: Record) -> Decoded:
        value = record.value or b""
        try:
            frame_version, pos = unsigned_varint(value, 0)
            kind, pos = unsigned_varint(value, pos)
            version, pos = unsigned_varint(value, pos)
            if frame_version != 1 or kind not in RECORD_TYPES:
                return None, f"Error at {record.offset}, skipping. Frame {frame_version}, record type {kind}"
            declared = RECORD_TYPES[kind]
            data = hide_secrets(declared.__name__, to_json(declared.decode(value[pos:], version), version))
        except (KafkaError, ProtocolError, IndexError) as error:
            return None, f"Error at {record.offset}, skipping. {error}"
        return None, {"type": record_type_name(declared.__name__), "version": version, "data": data}

    return decode


def record_type_name(class_name: str) -> str:
    """`TopicRecord` -> `TOPIC_RECORD`, the name in Kafka's MetadataRecordType."""
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", class_name).upper()


def decode_control_record(kind: int, record: Record) -> Fields:
    """The control records of the metadata log and its snapshots, with the names of Kafka's tool."""
    names: dict[int, tuple[str, type[Message]]] = {
        ControlRecordType.LEADER_CHANGE: ("LeaderChange", raft_records.LeaderChangeMessage),
        ControlRecordType.SNAPSHOT_HEADER: ("SnapshotHeader", raft_records.SnapshotHeaderRecord),
        ControlRecordType.SNAPSHOT_FOOTER: ("SnapshotFooter", raft_records.SnapshotFooterRecord),
        ControlRecordType.KRAFT_VERSION: ("KRaftVersion", raft_records.KRaftVersionRecord),
        ControlRecordType.KRAFT_VOTERS: ("KRaftVoters", raft_records.VotersRecord),
    }
    if kind not in names:
        return {"controlType": f"UNKNOWN({kind})"}
    name, declared = names[kind]
    value = record.value or b""
    version = int.from_bytes(value[:2], "big")  # the first field of each of them
    try:
        return {name: to_json(declared.decode(value, version), version)}
    except (KafkaError, ProtocolError) as error:
        return {name: f"unreadable: {error}"}
