"""DescribeClientQuotas (48) and AlterClientQuotas (49). KIP-546, KIP-612.

When a change is answered it is durable and in effect on this node. Names of hosts in place of addresses are looked up
in a thread before the change is made, a few in a request.
"""

from __future__ import annotations

from collections.abc import Generator
from typing import TYPE_CHECKING, Final

from barnabas.broker.apis.metadata_changes import change_metadata
from barnabas.broker.apis.registry import api
from barnabas.broker.apis.sliced_response import respond_in_steps
from barnabas.broker.net.delayed_response import DelayedResponse
from barnabas.broker.security.addresses import addresses_of, is_address
from barnabas.coord.security.acls import Operation
from barnabas.coord.security.quota_filter import QuotaFilter
from barnabas.coord.security.quota_keys import IP
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
    from barnabas.broker.steps import Steps
    from barnabas.coord.cluster.local_controller import Outcome

ENTITIES_PER_STEP: Final = 200
MOST_HOSTS: Final = 20
"""The names of hosts in a request that are looked up, which may take seconds each."""


def _describing_failed(_request: DescribeClientQuotasRequest, error: KafkaError) -> DescribeClientQuotasResponse:
    return DescribeClientQuotasResponse(error_code=int(error.code), error_message=error.message, entries=None)


@api(DescribeClientQuotasRequest, on_error=_describing_failed, requires=Operation.DESCRIBE_CONFIGS)
def describe_client_quotas(
    ctx: RequestContext, request: DescribeClientQuotasRequest
) -> DescribeClientQuotasResponse | DelayedResponse:
    """Describe the quotas that the filter selects."""
    return respond_in_steps(ctx, _describe(ctx, QuotaFilter(request)))


def _describe(ctx: RequestContext, wanted: QuotaFilter) -> Generator[None, None, DescribeClientQuotasResponse]:
    entries: list[DescribeClientQuotasResponseEntryData] = []
    for count, (entity, values) in enumerate(list(ctx.broker.image.quotas.items()), 1):
        if wanted.selects(entity):
            parts = [
                DescribeClientQuotasResponseEntityData(entity_type=kind, entity_name=name) for kind, name in entity
            ]
            settings = [ValueData(key=key, value=value) for key, value in values.items()]
            entries.append(DescribeClientQuotasResponseEntryData(entity=parts, values=settings))
        if count % ENTITIES_PER_STEP == 0:
            yield
    return DescribeClientQuotasResponse(error_message=None, entries=entries)


def _altering_failed(request: AlterClientQuotasRequest, error: KafkaError) -> AlterClientQuotasResponse:
    return AlterClientQuotasResponse(
        entries=[
            AlterClientQuotasResponseEntryData(
                error_code=int(error.code),
                error_message=error.message,
                entity=[
                    AlterClientQuotasResponseEntityData(entity_type=one.entity_type, entity_name=one.entity_name)
                    for one in entry.entity
                ],
            )
            for entry in request.entries
        ]
    )


@api(AlterClientQuotasRequest, on_error=_altering_failed, requires=Operation.ALTER_CONFIGS)
def alter_client_quotas(ctx: RequestContext, request: AlterClientQuotasRequest) -> DelayedResponse:
    """Change the quotas of each entity, or report its error."""
    hosts = {one.entity_name for entry in request.entries for one in entry.entity if one.entity_type == IP}
    names = sorted(name for name in hosts if name and not is_address(name))
    if not names:
        return _alter(ctx, request, ())
    if len(names) > MOST_HOSTS:
        text = f"The request has {len(names)} names of hosts: at most {MOST_HOSTS} are looked up."
        raise KafkaError(ErrorCode.INVALID_REQUEST, text)
    delayed = DelayedResponse()
    ctx.broker.runner.start(
        _unknown(names), lambda unknown: delayed.follow(_alter(ctx, request, unknown)), delayed.complete
    )
    return delayed


def _unknown(names: list[str]) -> Steps[list[str]]:
    """The names that nobody knows."""
    unknown: list[str] = []

    def look_up() -> None:
        unknown.extend(name for name in names if not addresses_of(name))

    yield look_up
    return unknown


def _alter(ctx: RequestContext, request: AlterClientQuotasRequest, unknown: list[str] | tuple[()]) -> DelayedResponse:
    def validate() -> Steps[Outcome[AlterClientQuotasResponse]]:
        return ctx.broker.controller.local.alter_client_quotas_in_steps(request, unknown)

    return change_metadata(ctx, validate, items=len(request.entries))
