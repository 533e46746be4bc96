"""DescribeAcls (29), CreateAcls (30), DeleteAcls (31), on the listeners of brokers and of controllers.

KIP-140; v1 prefixes (KIP-290). Without an authorizer, which would use the ACLs, the error is SECURITY_DISABLED.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from barnabas.broker.apis.metadata_changes import LONG_FROM, change_metadata
from barnabas.broker.apis.registry import api
from barnabas.broker.event_loop.waiting import pause
from barnabas.coord.security.acl_filters import filter_of
from barnabas.coord.security.acls import Operation, recorded_acl
from barnabas.wire.errors import ErrorCode, KafkaError, ProtocolError
from barnabas.wire.messages.security.acls import (
    AclCreationResult,
    AclDescription,
    CreateAclsRequest,
    CreateAclsResponse,
    DeleteAclsFilterResult,
    DeleteAclsRequest,
    DeleteAclsResponse,
    DescribeAclsRequest,
    DescribeAclsResource,
    DescribeAclsResponse,
)

if TYPE_CHECKING:
    from barnabas.broker.context import RequestContext

ACLS_OF_A_STEP = 200
"""Each takes a few microseconds."""


@api(DescribeAclsRequest, requires=Operation.DESCRIBE)
async def describe_acls(ctx: RequestContext, request: DescribeAclsRequest) -> DescribeAclsResponse:
    """The ACLs that match the filter, by resource."""
    _check_authorizer(ctx, "No Authorizer is configured on the broker")
    codes = (request.resource_type_filter, request.pattern_type_filter, request.operation, request.permission_type)
    _check_codes(codes)
    acl_filter = filter_of(request)
    resources: dict[tuple[int, str, int], DescribeAclsResource] = {}
    for count, acl_id in enumerate(list(ctx.broker.image.acls), 1):
        record = ctx.broker.image.acls.get(acl_id)  # None: deleted during a pause
        if record is not None and acl_filter.matches(acl := recorded_acl(record)):
            key = (acl.resource_type, acl.resource_name, acl.pattern_type)
            resource = resources.get(key)
            if resource is None:
                resource = resources[key] = DescribeAclsResource(
                    resource_type=key[0], resource_name=key[1], pattern_type=key[2]
                )
            resource.acls.append(
                AclDescription(
                    principal=acl.principal, host=acl.host, operation=acl.operation, permission_type=acl.permission
                )
            )
        if count % ACLS_OF_A_STEP == 0:
            await pause()
    return DescribeAclsResponse(error_message=None, resources=list(resources.values()))


def _none_created(request: CreateAclsRequest, error: KafkaError) -> CreateAclsResponse:
    return CreateAclsResponse(
        results=[AclCreationResult(error_code=int(error.code), error_message=error.message)] * len(request.creations)
    )


@api(CreateAclsRequest, requires=Operation.ALTER, on_error=_none_created, send_before_close=True)
async def create_acls(ctx: RequestContext, request: CreateAclsRequest) -> CreateAclsResponse:
    """Create each ACL, or report its error."""
    _check_authorizer(ctx, "No Authorizer is configured.")
    for acl in request.creations:
        _check_codes((acl.resource_type, acl.resource_pattern_type, acl.operation, acl.permission_type))
    local = ctx.broker.controller.local
    return await change_metadata(ctx, lambda: local.create_acls_in_steps(request), items=len(request.creations))


def _none_deleted(request: DeleteAclsRequest, error: KafkaError) -> DeleteAclsResponse:
    return DeleteAclsResponse(
        filter_results=[DeleteAclsFilterResult(error_code=int(error.code), error_message=error.message)]
        * len(request.filters)
    )


@api(DeleteAclsRequest, requires=Operation.ALTER, on_error=_none_deleted, send_before_close=True)
async def delete_acls(ctx: RequestContext, request: DeleteAclsRequest) -> DeleteAclsResponse:
    """Delete the ACLs that match the filters; the response lists them."""
    _check_authorizer(ctx, "No Authorizer is configured.")
    for acl in request.filters:
        _check_codes((acl.resource_type_filter, acl.pattern_type_filter, acl.operation, acl.permission_type))
    local = ctx.broker.controller.local
    return await change_metadata(ctx, lambda: local.delete_acls_in_steps(request), items=LONG_FROM)


def _check_authorizer(ctx: RequestContext, text: str) -> None:
    if ctx.broker.authorizer is None:
        raise KafkaError(ErrorCode.SECURITY_DISABLED, text)


def _check_codes(codes: Iterable[int]) -> None:
    """ProtocolError for the code of unknown values: no request may have it, as in Kafka."""
    if 0 in codes:
        raise ProtocolError("ACLs with UNKNOWN elements")
