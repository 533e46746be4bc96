"""DescribeConfigs (32), AlterConfigs (33), IncrementalAlterConfigs (44), ListConfigResources (74).

KIP-133, KIP-226, KIP-339, KIP-412, KIP-569, KIP-1142. The configs of topics, brokers, groups and client metrics
subscriptions belong to the controller; those of broker loggers are in `broker_loggers`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from barnabas.broker.apis.broker_loggers import alter_loggers, describe_loggers
from barnabas.broker.apis.registry import api
from barnabas.coord.cluster.local_controller import Outcome
from barnabas.coord.cluster.resources import BROKER_LOGGER
from barnabas.wire.errors import KafkaError
from barnabas.wire.messages.configs import (
    AlterConfigsRequest,
    AlterConfigsResponse,
    AlterConfigsResponseAlterConfigsResourceResponse,
    DescribeConfigsRequest,
    DescribeConfigsResponse,
    DescribeConfigsResult,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
    ListConfigResourcesRequest,
    ListConfigResourcesResponse,
)

if TYPE_CHECKING:
    from barnabas.broker.context import RequestContext


@api(DescribeConfigsRequest)
def describe_configs(ctx: RequestContext, request: DescribeConfigsRequest) -> DescribeConfigsResponse:
    """Describe the configs of each resource."""
    local = ctx.broker.controller.local
    results: list[DescribeConfigsResult] = []
    for resource in request.resources:
        if resource.resource_type == BROKER_LOGGER:
            results.append(describe_loggers(ctx, resource, synonyms=request.include_synonyms))
        else:
            alone = DescribeConfigsRequest(
                resources=[resource],
                include_synonyms=request.include_synonyms,
                include_documentation=request.include_documentation,
            )
            results += local.describe_configs(alone).results
    return DescribeConfigsResponse(results=results)


@api(AlterConfigsRequest)
def alter_configs(ctx: RequestContext, request: AlterConfigsRequest) -> AlterConfigsResponse:
    """Replace all configs of each resource."""
    controller = ctx.broker.controller
    try:
        return controller.commit(controller.local.alter_configs(request))
    except KafkaError as error:
        return AlterConfigsResponse(
            responses=[
                AlterConfigsResponseAlterConfigsResourceResponse(
                    resource_type=resource.resource_type,
                    resource_name=resource.resource_name,
                    error_code=error.code,
                    error_message=error.message,
                )
                for resource in request.resources
            ]
        )


@api(IncrementalAlterConfigsRequest)
def incremental_alter_configs(
    ctx: RequestContext, request: IncrementalAlterConfigsRequest
) -> IncrementalAlterConfigsResponse:
    """Change individual configs of each resource."""
    controller = ctx.broker.controller
    loggers = [resource for resource in request.resources if resource.resource_type == BROKER_LOGGER]
    others = [resource for resource in request.resources if resource.resource_type != BROKER_LOGGER]
    outcome: Outcome[IncrementalAlterConfigsResponse] = controller.local.incremental_alter_configs(
        IncrementalAlterConfigsRequest(resources=others, validate_only=request.validate_only)
    )
    try:
        response = controller.commit(outcome)
    except KafkaError as error:
        response = outcome.response
        for changed in response.responses:
            if not changed.error_code:
                changed.error_code, changed.error_message = error.code, error.message
    response.responses += [alter_loggers(ctx, resource, validate_only=request.validate_only) for resource in loggers]
    return response


@api(ListConfigResourcesRequest)
def list_config_resources(ctx: RequestContext, request: ListConfigResourcesRequest) -> ListConfigResourcesResponse:
    """List the resources that have configs."""
    return ctx.broker.controller.local.list_config_resources(request, ctx.api_version)
