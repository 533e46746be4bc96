"""DescribeClientQuotas (48) and AlterClientQuotas (49). KIP-546, KIP-612.

When a change is answered it is durable and in effect on this node. Names of hosts in place of addresses are looked up
in a thread before the change is made, a few in a request.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from barnabas.broker.apis.metadata_changes import change_metadata
from barnabas.broker.apis.registry import api, check_cluster
from barnabas.broker.event_loop.waiting import in_thread, pause
from barnabas.broker.security.ip_rates import addresses_of, is_address
from barnabas.coord.quotas.filter import QuotaFilter
from barnabas.coord.quotas.keys import IP
from barnabas.coord.security.acls import Operation
from barnabas.wire.errors import ErrorCode, KafkaError
from barnabas.wire.messages.quotas import (
    AlterClientQuotasRequest,
    AlterClientQuotasResponse,
    AlterClientQuotasResponseEntityData,
    AlterClientQuotasResponseEntryData,
    DescribeClientQuotasRequest,
    DescribeClientQuotasResponse,
    DescribeClientQuotasResponseEntityData,
    DescribeClientQuotasResponseEntryData,
    ValueData,
)

if TYPE_CHECKING:
    from barnabas.broker.context import RequestContext

ENTITIES_PER_STEP: Final = 200
MOST_HOSTS: Final = 20
"""The maximum of host names in a request that are looked up, which may take seconds each."""


def _describing_failed(_request: DescribeClientQuotasRequest, error: KafkaError) -> DescribeClientQuotasResponse:
    return DescribeClientQuotasResponse(error_code=int(error.code), error_message=error.message, entries=None)


@api(DescribeClientQuotasRequest, on_error=_describing_failed, requires=Operation.DESCRIBE_CONFIGS)
async def describe_client_quotas(
    ctx: RequestContext, request: DescribeClientQuotasRequest
) -> DescribeClientQuotasResponse:
    """Describe the quotas that the filter selects."""
    quota_filter = QuotaFilter(request)
    entries: list[DescribeClientQuotasResponseEntryData] = []
    for count, entity in enumerate(list(ctx.broker.image.quotas), 1):
        values = ctx.broker.image.quotas.get(entity)  # None: deleted during a pause
        if values is not None and quota_filter.selects(entity):
            parts = [
                DescribeClientQuotasResponseEntityData(entity_type=kind, entity_name=name) for kind, name in entity
            ]
            settings = [ValueData(key=key, value=value) for key, value in values.items()]
            entries.append(DescribeClientQuotasResponseEntryData(entity=parts, values=settings))
        if count % ENTITIES_PER_STEP == 0:
            await pause()
    return DescribeClientQuotasResponse(error_message="", entries=entries)


def _altering_failed(request: AlterClientQuotasRequest, error: KafkaError) -> AlterClientQuotasResponse:
    return AlterClientQuotasResponse(
        entries=[
            AlterClientQuotasResponseEntryData(
                error_code=int(error.code),
                error_message=error.message,
                entity=[
                    AlterClientQuotasResponseEntityData(entity_type=part.entity_type, entity_name=part.entity_name)
                    for part in entry.entity
                ],
            )
            for entry in request.entries
        ]
    )


@api(
    AlterClientQuotasRequest,
    on_error=_altering_failed,
    requires=Operation.ALTER_CONFIGS,
    send_before_close=True,
)
async def alter_client_quotas(ctx: RequestContext, request: AlterClientQuotasRequest) -> AlterClientQuotasResponse:
    """Change the quotas of each entity, or report its error."""
    hosts = {part.entity_name for entry in request.entries for part in entry.entity if part.entity_type == IP}
    names = sorted(name for name in hosts if name and not is_address(name))
    unknown: list[str] = []
    if len(names) > MOST_HOSTS:
        text = f"The request has {len(names)} names of hosts: at most {MOST_HOSTS} are looked up."
        raise KafkaError(ErrorCode.INVALID_REQUEST, text)
    if names:
        unknown = await in_thread(ctx.broker.runner, lambda: [name for name in names if not addresses_of(name)])
        check_cluster(ctx, Operation.ALTER_CONFIGS)  # again: ACLs may have changed
    local = ctx.broker.controller.local
    return await change_metadata(
        ctx, lambda: local.alter_client_quotas_in_steps(request, unknown), items=len(request.entries)
    )
