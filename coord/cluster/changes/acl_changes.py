"""CreateAcls, DeleteAcls: validates requests against the image and returns records. KIP-140, KIP-290, KIP-801.

Each ACL and each filter succeeds or fails on its own, but for the limit of records: nothing is changed beyond it. An
ACL that is there already is created successfully and changes nothing. Source: Kafka 4.4 `AclControlManager`, `AclApis`.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from typing import Any, Final

from barnabas.coord.cluster.image import ClusterImage
from barnabas.coord.security.acl_filters import AclFilter, filter_of
from barnabas.coord.security.acls import (
    CLUSTER_NAME,
    WILDCARD,
    Acl,
    Operation,
    PatternType,
    Permission,
    ResourceType,
    known,
    recorded_acl,
)
from barnabas.coord.security.host_patterns import parse_range
from barnabas.wire.errors import ErrorCode, KafkaError
from barnabas.wire.messages.records.metadata_records import AccessControlEntryRecord, RemoveAccessControlEntryRecord
from barnabas.wire.messages.security.acls import (
    AclCreation,
    AclCreationResult,
    CreateAclsRequest,
    CreateAclsResponse,
    DeleteAclsFilterResult,
    DeleteAclsMatchingAcl,
    DeleteAclsRequest,
    DeleteAclsResponse,
)
from barnabas.wire.schema import Message
from barnabas.wire.types import Uuid

MAX_RECORDS: Final = 10_000
"""The number of ACLs that one request may create or delete, as in Kafka."""
ACLS_PER_STEP: Final = 200
"""The number of ACLs that are looked at in one step."""
RANGES_METADATA_VERSION: Final = 32
"""4.4-IV1, from which on the hosts of ACLs may be ranges (KIP-1276)."""

Answer = tuple[list[Message], CreateAclsResponse | DeleteAclsResponse]


def create_acls(
    image: ClusterImage, request: CreateAclsRequest, new_uuid: Callable[[], Uuid]
) -> Generator[None, None, tuple[list[Message], CreateAclsResponse]]:
    """The records and the response; KafkaError(POLICY_VIOLATION) for too many records."""
    existing: set[Acl] = set()
    for count, record in enumerate(list(image.acls.values()), 1):
        existing.add(recorded_acl(record))
        if count % ACLS_PER_STEP == 0:
            yield
    records: list[Message] = []
    results = []
    for count, creation in enumerate(request.creations, 1):
        acl = acl_of(creation)
        try:
            _check(acl, ranges=image.metadata_version >= RANGES_METADATA_VERSION)
        except KafkaError as error:
            results.append(AclCreationResult(error_code=int(error.code), error_message=error.message))
            continue
        results.append(AclCreationResult(error_message=None))
        if acl not in existing:
            existing.add(acl)
            records.append(_record(acl, new_uuid()))
        if count % ACLS_PER_STEP == 0:
            yield
    if len(records) > MAX_RECORDS:
        raise KafkaError(ErrorCode.POLICY_VIOLATION, "Unable to perform excessively large batch operation.")
    return records, CreateAclsResponse(results=results)


def delete_acls(
    image: ClusterImage, request: DeleteAclsRequest
) -> Generator[None, None, tuple[list[Message], DeleteAclsResponse]]:
    """The records and the response; KafkaError(INVALID_REQUEST) if more match than one request may delete."""
    acls = [(acl_id, recorded_acl(record)) for acl_id, record in image.acls.items()]
    yield
    deleted: dict[Uuid, None] = {}
    response = DeleteAclsResponse()
    for entry in request.filters:
        chosen = filter_of(entry)
        if chosen.unknown_part is not None:
            code, text = int(ErrorCode.INVALID_REQUEST), f"Unknown {chosen.unknown_part}."
            response.filter_results.append(DeleteAclsFilterResult(error_code=code, error_message=text))
            continue
        result = DeleteAclsFilterResult(error_message=None)
        response.filter_results.append(result)
        yield from _match(acls, chosen, deleted, result)
    return [RemoveAccessControlEntryRecord(id=acl_id) for acl_id in deleted], response


def _match(
    acls: list[tuple[Uuid, Acl]], chosen: AclFilter, deleted: dict[Uuid, None], result: DeleteAclsFilterResult
) -> Generator[None, None, None]:
    """Add the ACLs that a filter matches to the result and to `deleted`."""
    for count, (acl_id, acl) in enumerate(acls, 1):
        if chosen.matches(acl):
            if len(deleted) >= MAX_RECORDS:
                text = f"Cannot remove more than {MAX_RECORDS} acls in a single delete operation."
                raise KafkaError(ErrorCode.INVALID_REQUEST, text)
            deleted[acl_id] = None
            result.matching_acls.append(_matching(acl))
        if count % ACLS_PER_STEP == 0:
            yield


def acl_of(creation: AclCreation) -> Acl:
    """The ACL that a request creates."""
    return Acl(
        known(ResourceType, creation.resource_type),
        creation.resource_name,
        known(PatternType, creation.resource_pattern_type),
        creation.principal,
        creation.host,
        known(Operation, creation.operation),
        known(Permission, creation.permission_type),
    )


def _record(acl: Acl, acl_id: Uuid) -> AccessControlEntryRecord:
    return AccessControlEntryRecord(id=acl_id, **_fields(acl))


def _matching(acl: Acl) -> DeleteAclsMatchingAcl:
    return DeleteAclsMatchingAcl(error_message=None, **_fields(acl))


def _fields(acl: Acl) -> dict[str, Any]:
    return {
        "resource_type": acl.resource_type,
        "resource_name": acl.resource_name,
        "pattern_type": acl.pattern_type,
        "principal": acl.principal,
        "host": acl.host,
        "operation": acl.operation,
        "permission_type": acl.permission,
    }


def _check(acl: Acl, *, ranges: bool) -> None:
    """KafkaError if there can be no such ACL."""
    if acl.resource_type == ResourceType.CLUSTER and acl.resource_name != CLUSTER_NAME:
        raise _invalid(f"The only valid name for the CLUSTER resource is {CLUSTER_NAME}")
    if not acl.resource_name:
        raise _invalid("Invalid empty resource name")
    if acl.resource_type in (ResourceType.UNKNOWN, ResourceType.ANY):
        raise _invalid(f"Invalid resourceType {acl.resource_type.name}")
    if acl.pattern_type not in (PatternType.LITERAL, PatternType.PREFIXED):
        raise _invalid(f"Invalid patternType {acl.pattern_type.name}")
    if acl.operation in (Operation.UNKNOWN, Operation.ANY):
        raise _invalid(f"Invalid operation {acl.operation.name}")
    if acl.permission not in (Permission.DENY, Permission.ALLOW):
        raise _invalid(f"Invalid permissionType {acl.permission.name}")
    if ":" not in acl.principal:
        raise _invalid(
            f"Could not parse principal from `{acl.principal}` (no colon is present separating the principal type "
            "from the principal name)"
        )
    _check_host(acl.host, ranges=ranges)


def _check_host(host: str, *, ranges: bool) -> None:
    if not host:
        raise _invalid("Host pattern cannot be null or empty")
    if host == WILDCARD or "/" not in host:
        return
    if not ranges:
        raise KafkaError(
            ErrorCode.UNSUPPORTED_VERSION,
            "CIDR-based ACL host patterns require metadata version 4.4-IV1 or higher.",
        )
    try:
        parse_range(host)
    except ValueError as error:
        raise _invalid(f"Invalid CIDR notation '{host}': {error}") from error


def _invalid(text: str) -> KafkaError:
    return KafkaError(ErrorCode.INVALID_REQUEST, text)
