"""DescribeConfigs (32), AlterConfigs (33), IncrementalAlterConfigs (44), ListConfigResources (74).

KIP-133, KIP-226, KIP-339, KIP-412, KIP-569, KIP-1142. The configs of topics, brokers, groups and client metrics
subscriptions belong to the controller; log levels of this broker are in `broker_loggers`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

from barnabas.broker.apis.broker_loggers import alter_loggers, describe_loggers
from barnabas.broker.apis.config_access import config_error, split_refused
from barnabas.broker.apis.metadata_changes import change_metadata
from barnabas.broker.apis.parts import Parts
from barnabas.broker.apis.registry import api
from barnabas.broker.apis.tls_configs import refuse_certificates, without
from barnabas.coord.cluster.local_controller import Outcome
from barnabas.coord.cluster.resources import BROKER_LOGGER
from barnabas.coord.security.acls import Operation as AclOperation
from barnabas.wire.errors import KafkaError
from barnabas.wire.messages.configs import (
    AlterConfigsRequest,
    AlterConfigsResponse,
    AlterConfigsResponseAlterConfigsResourceResponse,
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResponse,
    DescribeConfigsResult,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
    IncrementalAlterConfigsResponseAlterConfigsResourceResponse,
    ListConfigResourcesRequest,
    ListConfigResourcesResponse,
)

if TYPE_CHECKING:
    from barnabas.broker.apis.config_access import Resource
    from barnabas.broker.context import RequestContext
    from barnabas.broker.steps import Steps

A = TypeVar(
    "A",
    AlterConfigsResponseAlterConfigsResourceResponse,
    IncrementalAlterConfigsResponseAlterConfigsResourceResponse,
)


def _distinct(resources: list[DescribeConfigsResource]) -> list[DescribeConfigsResource]:
    """Each resource once, with all keys that are requested of it."""
    distinct: dict[tuple[int, str], DescribeConfigsResource] = {}
    for resource in resources:
        first = distinct.setdefault((resource.resource_type, resource.resource_name), resource)
        if first is not resource and first.configuration_keys is not None:
            keys = resource.configuration_keys
            if keys is None:
                first.configuration_keys = None
            else:
                first.configuration_keys += keys
    return list(distinct.values())


@api(DescribeConfigsRequest, parts=Parts("resources", "results", size=4, distinct=_distinct))
def describe_configs(ctx: RequestContext, request: DescribeConfigsRequest) -> DescribeConfigsResponse:
    """Describe the configs of each resource."""
    metadata = ctx.broker.metadata
    results: list[DescribeConfigsResult] = []
    for resource in request.resources:
        error = config_error(ctx, AclOperation.DESCRIBE_CONFIGS, resource)
        if error is not None:
            results.append(
                DescribeConfigsResult(
                    resource_type=resource.resource_type,
                    resource_name=resource.resource_name,
                    error_code=error.code,
                    error_message=error.message,
                )
            )
        elif resource.resource_type == BROKER_LOGGER:
            results.append(describe_loggers(ctx, resource, synonyms=request.include_synonyms))
        else:
            alone = DescribeConfigsRequest(
                resources=[resource],
                include_synonyms=request.include_synonyms,
                include_documentation=request.include_documentation,
            )
            results += metadata.describe_configs(alone).results
    return DescribeConfigsResponse(results=results)


def _none_altered(request: AlterConfigsRequest, error: KafkaError) -> AlterConfigsResponse:
    response_class = AlterConfigsResponseAlterConfigsResourceResponse
    return AlterConfigsResponse(responses=[_failed(response_class, resource, error) for resource in request.resources])


@api(AlterConfigsRequest, on_error=_none_altered, send_before_close=True)
async def alter_configs(ctx: RequestContext, request: AlterConfigsRequest) -> AlterConfigsResponse:
    """Replace all configs of each resource."""
    local = ctx.broker.controller.local
    response_class = AlterConfigsResponseAlterConfigsResourceResponse

    def validate() -> Steps[Outcome[AlterConfigsResponse]]:
        allowed, refused = split_refused(ctx, AclOperation.ALTER_CONFIGS, request.resources)
        bad_certificates = yield from refuse_certificates(ctx, allowed, response_class)
        outcome = yield from local.alter_configs_in_steps(
            AlterConfigsRequest(resources=without(allowed, bad_certificates), validate_only=request.validate_only)
        )
        outcome.response.responses += bad_certificates
        outcome.response.responses += [_failed(response_class, resource, error) for resource, error in refused]
        return outcome

    return await change_metadata(ctx, validate, items=len(request.resources))


def _failed(response_class: type[A], resource: Resource, error: KafkaError) -> A:
    """The result of a resource whose configs are not changed."""
    return response_class(
        resource_type=resource.resource_type,
        resource_name=resource.resource_name,
        error_code=error.code,
        error_message=error.message,
    )


def _none_incrementally_altered(
    request: IncrementalAlterConfigsRequest, error: KafkaError
) -> IncrementalAlterConfigsResponse:
    response_class = IncrementalAlterConfigsResponseAlterConfigsResourceResponse
    return IncrementalAlterConfigsResponse(
        responses=[_failed(response_class, resource, error) for resource in request.resources]
    )


@api(IncrementalAlterConfigsRequest, on_error=_none_incrementally_altered, send_before_close=True)
async def incremental_alter_configs(
    ctx: RequestContext, request: IncrementalAlterConfigsRequest
) -> IncrementalAlterConfigsResponse:
    """Change individual configs of each resource; log levels, which no record has, whether the others are or not."""
    loggers = [resource for resource in request.resources if resource.resource_type == BROKER_LOGGER]
    others = [resource for resource in request.resources if resource.resource_type != BROKER_LOGGER]
    response_class = IncrementalAlterConfigsResponseAlterConfigsResourceResponse
    response = IncrementalAlterConfigsResponse()

    def validate() -> Steps[Outcome[IncrementalAlterConfigsResponse]]:
        nonlocal response
        allowed, refused = split_refused(ctx, AclOperation.ALTER_CONFIGS, others)
        bad_certificates = yield from refuse_certificates(ctx, allowed, response_class)
        outcome = yield from ctx.broker.controller.local.incremental_alter_configs_in_steps(
            IncrementalAlterConfigsRequest(
                resources=without(allowed, bad_certificates), validate_only=request.validate_only
            )
        )
        response = outcome.response
        response.responses += bad_certificates
        response.responses += [_failed(response_class, resource, error) for resource, error in refused]
        return outcome

    try:
        await change_metadata(ctx, validate, items=len(request.resources))
    except KafkaError as error:
        if not response.responses:  # the change was not validated
            response.responses = [_failed(response_class, resource, error) for resource in others]
        for changed in response.responses:
            if not changed.error_code:
                changed.error_code, changed.error_message = error.code, error.message
    response.responses += [alter_loggers(ctx, resource, validate_only=request.validate_only) for resource in loggers]
    return response


@api(ListConfigResourcesRequest, requires=AclOperation.DESCRIBE_CONFIGS)
def list_config_resources(ctx: RequestContext, request: ListConfigResourcesRequest) -> ListConfigResourcesResponse:
    """List the resources that have configs."""
    return ctx.broker.metadata.list_config_resources(request, ctx.api_version)
