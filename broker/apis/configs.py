"""DescribeConfigs (32), AlterConfigs (33), IncrementalAlterConfigs (44), ListConfigResources (74).

KIP-133, KIP-226, KIP-339, KIP-412, KIP-569, KIP-1142. The configs of topics, brokers, groups and client metrics
subscriptions belong to the controller; those of broker loggers are in `broker_loggers`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, TypeVar

from barnabas.broker.apis.broker_loggers import alter_loggers, describe_loggers
from barnabas.broker.apis.config_access import Resource, config_error, split_refused
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
    IncrementalAlterConfigsRequestAlterConfigsResource,
    IncrementalAlterConfigsResponse,
    IncrementalAlterConfigsResponseAlterConfigsResourceResponse,
    ListConfigResourcesRequest,
    ListConfigResourcesResponse,
)

if TYPE_CHECKING:
    from barnabas.broker.context import RequestContext
    from barnabas.broker.net.delayed_response import DelayedResponse
    from barnabas.broker.steps import Steps

A = TypeVar(
    "A",
    AlterConfigsResponseAlterConfigsResourceResponse,
    IncrementalAlterConfigsResponseAlterConfigsResourceResponse,
)


def _distinct(resources: list[DescribeConfigsResource]) -> list[DescribeConfigsResource]:
    """Each resource once, with all keys that are requested of it."""
    found: dict[tuple[int, str], DescribeConfigsResource] = {}
    for resource in resources:
        first = found.setdefault((resource.resource_type, resource.resource_name), resource)
        if first is not resource and first.configuration_keys is not None:
            keys = resource.configuration_keys
            if keys is None:
                first.configuration_keys = None
            else:
                first.configuration_keys += keys
    return list(found.values())


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


@api(AlterConfigsRequest)
def alter_configs(ctx: RequestContext, request: AlterConfigsRequest) -> DelayedResponse:
    """Replace all configs of each resource."""

    def shape(outcome: AlterConfigsResponse | KafkaError) -> AlterConfigsResponse:
        if not isinstance(outcome, KafkaError):
            return outcome
        return AlterConfigsResponse(
            responses=[
                AlterConfigsResponseAlterConfigsResourceResponse(
                    resource_type=resource.resource_type,
                    resource_name=resource.resource_name,
                    error_code=outcome.code,
                    error_message=outcome.message,
                )
                for resource in request.resources
            ]
        )

    local = ctx.broker.controller.local

    def validate() -> Steps[Outcome[AlterConfigsResponse]]:
        allowed, refused = split_refused(ctx, AclOperation.ALTER_CONFIGS, request.resources)
        bad_certificates = yield from refuse_certificates(
            ctx, allowed, AlterConfigsResponseAlterConfigsResourceResponse
        )
        outcome = yield from local.alter_configs_in_steps(
            AlterConfigsRequest(resources=without(allowed, bad_certificates), validate_only=request.validate_only)
        )
        outcome.response.responses += bad_certificates
        outcome.response.responses += [
            _refused(AlterConfigsResponseAlterConfigsResourceResponse, one, error) for one, error in refused
        ]
        return outcome

    return change_metadata(ctx, validate, shape, items=len(request.resources))


def _refused(response_class: type[A], resource: Resource, error: KafkaError) -> A:
    """The answer of a resource whose configs may not be changed."""
    return response_class(
        resource_type=resource.resource_type,
        resource_name=resource.resource_name,
        error_code=error.code,
        error_message=error.message,
    )


@api(IncrementalAlterConfigsRequest)
def incremental_alter_configs(ctx: RequestContext, request: IncrementalAlterConfigsRequest) -> DelayedResponse:
    """Change individual configs of each resource."""
    loggers = [resource for resource in request.resources if resource.resource_type == BROKER_LOGGER]
    others = [resource for resource in request.resources if resource.resource_type != BROKER_LOGGER]
    response = IncrementalAlterConfigsResponse()

    def validate() -> Steps[Outcome[IncrementalAlterConfigsResponse]]:
        nonlocal response
        allowed, refused = split_refused(ctx, AclOperation.ALTER_CONFIGS, others)
        bad_certificates = yield from refuse_certificates(
            ctx, allowed, IncrementalAlterConfigsResponseAlterConfigsResourceResponse
        )
        allowed = without(allowed, bad_certificates)
        outcome = yield from ctx.broker.controller.local.incremental_alter_configs_in_steps(
            IncrementalAlterConfigsRequest(resources=allowed, validate_only=request.validate_only)
        )
        response = outcome.response
        response.responses += bad_certificates
        response.responses += [
            _refused(IncrementalAlterConfigsResponseAlterConfigsResourceResponse, one, error) for one, error in refused
        ]
        return outcome

    def shape(outcome: IncrementalAlterConfigsResponse | KafkaError) -> IncrementalAlterConfigsResponse:
        if isinstance(outcome, KafkaError):
            _fail_unless_refused(response, others, outcome)
        response.responses += [alter_loggers(ctx, one, validate_only=request.validate_only) for one in loggers]
        return response

    return change_metadata(ctx, validate, shape, items=len(request.resources))


def _fail_unless_refused(
    response: IncrementalAlterConfigsResponse,
    resources: Sequence[IncrementalAlterConfigsRequestAlterConfigsResource],
    error: KafkaError,
) -> None:
    """Report the error of the whole change for each resource that has none of its own."""
    if not response.responses:  # the change was not validated
        response.responses = [
            IncrementalAlterConfigsResponseAlterConfigsResourceResponse(
                resource_type=one.resource_type, resource_name=one.resource_name
            )
            for one in resources
        ]
    for changed in response.responses:
        if not changed.error_code:
            changed.error_code, changed.error_message = error.code, error.message


@api(ListConfigResourcesRequest, requires=AclOperation.DESCRIBE_CONFIGS)
def list_config_resources(ctx: RequestContext, request: ListConfigResourcesRequest) -> ListConfigResourcesResponse:
    """List the resources that have configs."""
    return ctx.broker.metadata.list_config_resources(request, ctx.api_version)
