"""The declarations equal Kafka's in names, types, versions and defaults; tests/data/versions.txt lists the versions."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from barnabas.wire.api_keys import ApiKey
from barnabas.wire.codec.fields import Field, StructBase, parse_versions
from barnabas.wire.codec.json_form import json_name
from barnabas.wire.errors import ErrorCode, KafkaError, ProtocolError
from barnabas.wire.messages.fetch import FetchResponse, FetchResponsePartitionData
from barnabas.wire.messages.produce import PartitionProduceData, ProduceRequest
from barnabas.wire.registry import FAMILIES, all_messages, message_for, message_named
from barnabas.wire.schema import Message
from barnabas.wire.types import ZERO_UUID
from tests.support.requests.recorded import DATA, message_table

KINDS = {
    "request": "request", "response": "response", "header": "header", "data": "data", "metadata": "record",
    "coordinator-key": "key", "coordinator-value": "value",
}  # fmt: skip


def kafka_default(spec: dict[str, Any]) -> object:
    """The default of Kafka's field as a Python value; "fresh" for an empty array or a new struct."""
    default, kind = spec.get("default"), spec["type"]
    if isinstance(default, str) and default == "null":
        return None
    if kind.startswith("[]") or kind[0].isupper():
        return "fresh"
    if default is None or default == "":
        null = "nullableVersions" in spec and kind == "records"
        zero = {"string": "", "bytes": b"", "records": b"", "bool": False, "uuid": ZERO_UUID, "float64": 0.0}
        return None if null else zero.get(kind, 0)
    if kind == "bool":
        return str(default).lower() == "true"
    return default if kind == "string" else int(str(default), 0)


def our_type(field: Field) -> str:
    names = {"boolean": "bool", "struct": "(struct)"}
    if field.kind != "array":
        return names.get(field.kind, field.kind)
    return f"[]{names.get(field.element_kind, field.element_kind)}"


def kafka_type(name: str) -> str:
    if name.startswith("[]"):
        return "[]" + kafka_type(name[2:])
    return "(struct)" if name[0].isupper() else name


def compare(
    struct_class: type[StructBase], specs: list[dict[str, Any]], common: dict[str, Any], where: str
) -> list[str]:
    """The differences between a class and Kafka's fields."""
    wrong = []
    names = [spec["name"][0].lower() + spec["name"][1:] for spec in specs]
    if names != [json_name(field.name) for field in struct_class.declared]:
        return [f"{where}: {names}"]
    for spec, field in zip(specs, struct_class.declared, strict=True):
        at = f"{where}.{field.name}"
        ours = {
            "type": our_type(field),
            "versions": parse_versions(field.versions),
            "nullable": parse_versions(field.nullable),
            "tag": field.tag,
            "default": "fresh" if field.has_fresh_default else field.default,
            "ignorable": field.ignorable,
            "entity": field.entity,
        }
        versions = spec.get("versions", spec.get("taggedVersions", "none"))
        theirs = {
            "type": kafka_type(spec["type"]),
            "versions": parse_versions(versions),
            "nullable": parse_versions(spec.get("nullableVersions", "none")),
            "tag": spec.get("tag", -1),
            "default": kafka_default(spec),
            "ignorable": spec.get("ignorable", False),
            "entity": spec.get("entityType", ""),
        }
        wrong += [f"{at}: {key} {ours[key]!r}, Kafka {theirs[key]!r}" for key in ours if ours[key] != theirs[key]]
        inner = spec.get("fields") or common.get(spec["type"].removeprefix("[]"))
        if field.struct_class is not None:
            wrong += compare(field.struct_class, inner or [], common, at)
    return wrong


def test_every_field_equals_kafkas_declaration() -> None:
    wrong: list[str] = []
    for spec in message_table():
        message = message_named(spec["name"])
        common = {struct["name"]: struct["fields"] for struct in spec.get("commonStructs", [])}
        assert (message.kind, message.api_key) == (KINDS[spec["type"]], spec.get("apiKey", -1)), spec["name"]
        assert message.versions == parse_versions(spec["validVersions"]), spec["name"]
        flexible = spec.get("flexibleVersions", "none")
        assert flexible == "none" or message.flexible_since == parse_versions(flexible).start, spec["name"]
        assert message.api_listeners == tuple(spec.get("listeners", ())), spec["name"]
        assert message.latest_version_unstable == spec.get("latestVersionUnstable", False), spec["name"]
        wrong += compare(message, spec["fields"], common, spec["name"])
    assert wrong == []
    assert len(all_messages()) == len(message_table()) == 286


def test_annotations_match_nullable_versions() -> None:
    wrong = []
    for message in all_messages().values():
        for struct_class in {message, *structs_of(message)}:
            for field in struct_class.declared:
                says_null = struct_class.__annotations__[field.name].endswith(" | None")
                if says_null != (field.nullable != "none" or field.default is None):
                    wrong.append(f"{struct_class.__name__}.{field.name}")
    assert wrong == []


def structs_of(struct_class: type[StructBase]) -> set[type[StructBase]]:
    structs: set[type[StructBase]] = set()
    for field in struct_class.declared:
        if field.struct_class is not None:
            structs |= {field.struct_class} | structs_of(field.struct_class)
    return structs


def test_no_field_hides_an_attribute_of_message() -> None:
    reserved = {name for name in dir(Message) if not name.startswith("__")}
    hidden = [
        (name, field.name)
        for name, message in all_messages().items()
        for field in message.declared
        if field.name in reserved
    ]
    assert hidden == []


def test_versions_equal_the_reviewed_table() -> None:
    """A change of the supported versions is a change of tests/data/versions.txt, which is reviewed."""
    rows = []
    for name, message in all_messages().items():
        valid = f"{message.min_version}-{message.max_version}" if message.versions else "none"
        flexible = f"{message.flexible_since}+" if message.flexible_since <= message.max_version else "none"
        unstable = " latest-unstable" if message.latest_version_unstable else ""
        rows.append(f"{name} {message.api_key} {valid} flexible {flexible}{unstable}")
    assert rows == (DATA / "versions.txt").read_text().splitlines()


def test_every_api_has_a_request_and_a_response() -> None:
    assert set(FAMILIES) == set(ApiKey)
    for key in ApiKey:
        request, response = message_for(key)
        assert (request.kind, response.kind) == ("request", "response")
        assert request.api_key == response.api_key == key
        assert request.versions == response.versions
        if request.versions:
            assert request.flexible_since == response.flexible_since


def test_unknown_api_is_a_protocol_error() -> None:
    with pytest.raises(ProtocolError, match="1234"):
        message_for(1234)


def test_apis_without_versions_are_declared_and_have_no_codec() -> None:
    without = [name for name, message in all_messages().items() if not message.versions]
    assert without == [
        "ControlledShutdownRequest", "ControlledShutdownResponse", "LeaderAndIsrRequest", "LeaderAndIsrResponse",
        "StopReplicaRequest", "StopReplicaResponse", "UpdateMetadataRequest", "UpdateMetadataResponse",
    ]  # fmt: skip
    for name in without:
        with pytest.raises(KafkaError, match="has no version") as caught:
            message_named(name).codec(0)
        assert caught.value.code is ErrorCode.UNSUPPORTED_VERSION


def test_importing_declarations_imports_neither_construct_nor_other_families() -> None:
    """Importing construct is slow: a broker imports it at the first request, not at start."""
    code = (
        "import sys; import barnabas.wire.frame, barnabas.wire.messages.produce\n"
        "heavy = {'construct', 'dataclasses', 'inspect', 'json', 'barnabas.wire.messages.security.acls'}\n"
        "heavy.add('barnabas.wire.codec.composites')\n"
        "print(sorted(heavy & set(sys.modules)))"
    )
    root = Path(__file__).parents[3]
    run = subprocess.run([sys.executable, "-c", code], cwd=root, capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "[]"


def test_constructor_takes_keywords_and_sets_kafkas_defaults() -> None:
    assert ProduceRequest().acks == 0
    assert ProduceRequest(acks=-1).acks == -1
    assert PartitionProduceData().records is None
    assert ProduceRequest().topic_data == []
    assert FetchResponsePartitionData().last_stable_offset == -1
    assert FetchResponsePartitionData().current_leader.leader_epoch == -1
    with pytest.raises(TypeError):
        ProduceRequest(acknowledgements=1)  # type: ignore[call-arg]
    with pytest.raises(TypeError):
        ProduceRequest("t")  # type: ignore[misc]


def test_mutable_defaults_are_not_shared() -> None:
    first, second = FetchResponse(), FetchResponse()
    first.responses.append(None)  # type: ignore[arg-type]
    assert second.responses == []
    data, other_data = FetchResponsePartitionData(), FetchResponsePartitionData()
    data.current_leader.leader_id = 7
    assert other_data.current_leader.leader_id == -1


def test_equality_and_repr_use_field_values() -> None:
    assert ProduceRequest(acks=1) == ProduceRequest(acks=1)
    assert ProduceRequest(acks=1) != ProduceRequest(acks=2)
    assert ProduceRequest() != FetchResponse()
    assert repr(ProduceRequest(acks=1)) == "ProduceRequest(transactional_id=None, acks=1, timeout_ms=0, topic_data=[])"
    assert repr(PartitionProduceData(records=bytes(999))) == "PartitionProduceData(index=0, records=<999 bytes>)"


def test_messages_have_slots() -> None:
    with pytest.raises(AttributeError):
        ProduceRequest().ackz = 1  # type: ignore[attr-defined]
