"""DescribeConfigs (32), AlterConfigs (33), IncrementalAlterConfigs (44), ListConfigResources (74).

KIP-133, KIP-226, KIP-339, KIP-412, KIP-569, KIP-1142. The configs of topics, brokers, groups and client metrics
subscriptions belong to the controller; log levels of this broker are in `broker_loggers`.

When all earlier changes are in effect, resources that the client may not change are refused, then certificates of this
broker that could not be used: Kafka's broker checks its own configs before it passes a change on. Stores are read in a
thread. A client that may not change the configs learns nothing of files. Source: Kafka 4.4
`ConfigHelper.handleDescribeConfigsRequest`, `ControllerApis.authorizeAlterResource`.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final, Protocol, TypeAlias, TypeVar

from barnabas.broker.apis.access import CLUSTER_TEXT, GROUP_TEXT, TOPIC_TEXT
from barnabas.broker.apis.admin.broker_loggers import alter_loggers, describe_loggers
from barnabas.broker.apis.metadata_changes import change_metadata
from barnabas.broker.apis.parts import Parts
from barnabas.broker.apis.registry import api
from barnabas.coord.cluster.changes.config_changes import Operation as ConfigOperation
from barnabas.coord.cluster.changes.topic_changes import duplicates
from barnabas.coord.cluster.resources import BROKER, BROKER_LOGGER, CLIENT_METRICS, GROUP, TOPIC
from barnabas.coord.security.acls import Operation, ResourceType
from barnabas.wire.configdef import ConfigError
from barnabas.wire.errors import ErrorCode, KafkaError
from barnabas.wire.messages.configs import (
    AlterConfigsRequest,
    AlterConfigsRequestAlterConfigsResource,
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
    from collections.abc import Sequence

    from barnabas.broker.config.server_config import ServerConfig
    from barnabas.broker.context import RequestContext
    from barnabas.broker.event_loop.steps import Steps
    from barnabas.coord.cluster.local_controller import Outcome

N = TypeVar("N", bound="Resource")
Change: TypeAlias = AlterConfigsRequestAlterConfigsResource | IncrementalAlterConfigsRequestAlterConfigsResource
C = TypeVar("C", AlterConfigsRequestAlterConfigsResource, IncrementalAlterConfigsRequestAlterConfigsResource)
A = TypeVar(
    "A",
    AlterConfigsResponseAlterConfigsResourceResponse,
    IncrementalAlterConfigsResponseAlterConfigsResourceResponse,
)

_RESOURCES = {
    TOPIC: (ResourceType.TOPIC, ErrorCode.TOPIC_AUTHORIZATION_FAILED, TOPIC_TEXT),
    GROUP: (ResourceType.GROUP, ErrorCode.GROUP_AUTHORIZATION_FAILED, GROUP_TEXT),
}
_OF_TLS: Final = ".ssl."


class Resource(Protocol):
    """A resource that has configs, as a request names it."""

    resource_type: int
    resource_name: str


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
        error = _access_error(ctx, Operation.DESCRIBE_CONFIGS, resource)
        resource.configuration_keys = resource.configuration_keys or None  # no keys are all keys, as in Kafka
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
        allowed, refused = _split_refused(ctx, Operation.ALTER_CONFIGS, request.resources)
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
    """Change individual configs of each resource; log levels, which no record has, also if others are refused."""
    loggers = [resource for resource in request.resources if resource.resource_type == BROKER_LOGGER]
    others = [resource for resource in request.resources if resource.resource_type != BROKER_LOGGER]
    response_class = IncrementalAlterConfigsResponseAlterConfigsResourceResponse
    response = IncrementalAlterConfigsResponse()

    def validate() -> Steps[Outcome[IncrementalAlterConfigsResponse]]:
        nonlocal response
        allowed, refused = _split_refused(ctx, Operation.ALTER_CONFIGS, others)
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


@api(ListConfigResourcesRequest, requires=Operation.DESCRIBE_CONFIGS)
def list_config_resources(ctx: RequestContext, request: ListConfigResourcesRequest) -> ListConfigResourcesResponse:
    """List the resources that have configs."""
    return ctx.broker.metadata.list_config_resources(request, ctx.api_version)


# ---- access


def _access_error(ctx: RequestContext, operation: Operation, resource: Resource) -> KafkaError | None:
    """The error if the request may not do something to configs; an unknown kind of resource is refused later."""
    if resource.resource_type in (BROKER, BROKER_LOGGER, CLIENT_METRICS):
        if ctx.is_allowed_on_cluster(operation):
            return None
        return KafkaError(ErrorCode.CLUSTER_AUTHORIZATION_FAILED, CLUSTER_TEXT)
    if resource.resource_type not in _RESOURCES:
        return None
    kind, code, text = _RESOURCES[resource.resource_type]
    return None if ctx.is_allowed(operation, kind, resource.resource_name) else KafkaError(code, text)


def _split_refused(
    ctx: RequestContext, operation: Operation, resources: Sequence[N]
) -> tuple[list[N], list[tuple[N, KafkaError]]]:
    """The resources whose configs may be changed, and the others with their errors; one named twice is invalid."""
    twice = duplicates((resource.resource_type, resource.resource_name) for resource in resources)
    allowed = []
    refused = []
    for resource in resources:
        is_once = (resource.resource_type, resource.resource_name) not in twice
        error = _access_error(ctx, operation, resource) if is_once else None
        if error is None:
            allowed.append(resource)
        else:
            refused.append((resource, error))
    return allowed, refused


# ---- certificates


def concerns_certificates(ctx: RequestContext, changes: Sequence[C]) -> bool:
    """Whether one of the changes needs the check."""
    return ctx.broker.tls is not None and any(_is_concerned(ctx, change) for change in changes)


def _is_concerned(ctx: RequestContext, change: Change) -> bool:
    """Whether a permitted change of this broker's configs sets a key of TLS, or removes one by leaving it out."""
    if change.resource_type != BROKER or change.resource_name != str(ctx.broker.node_id):
        return False
    names = [config.name for config in change.configs]
    if isinstance(change, AlterConfigsRequestAlterConfigsResource):
        names += ctx.broker.image.config(BROKER, change.resource_name)
    if not any(_OF_TLS in f".{name}" for name in names):
        return False
    return _access_error(ctx, Operation.ALTER_CONFIGS, change) is None


def refuse_certificates(ctx: RequestContext, changes: Sequence[C], response: type[A]) -> Steps[list[A]]:
    """The responses for the changes whose certificates could not be used."""
    refused: list[A] = []
    tls = ctx.broker.tls
    for change in changes:
        if tls is None or not _is_concerned(ctx, change):
            continue
        try:
            settings = tls.settings_with(_proposed(ctx, change))
            yield partial(tls.check, settings)
        except ConfigError as error:
            refused.append(
                response(
                    error_code=ErrorCode.INVALID_REQUEST,
                    error_message=str(error),
                    resource_type=change.resource_type,
                    resource_name=change.resource_name,
                )
            )
    return refused


def _proposed(ctx: RequestContext, change: Change) -> ServerConfig:
    """This broker's configuration with the change; values appended to lists are checked when they take effect."""
    image = ctx.broker.image
    own: dict[str, str]
    if isinstance(change, AlterConfigsRequestAlterConfigsResource):
        own = {config.name: config.value for config in change.configs if config.value is not None}
    else:
        own = dict(image.config(BROKER, change.resource_name))
        for config in change.configs:
            if config.config_operation == ConfigOperation.DELETE:
                own.pop(config.name, None)
            elif config.config_operation == ConfigOperation.SET and config.value is not None:
                own[config.name] = config.value
    return ctx.broker.config.with_dynamic(own, image.config(BROKER, ""))


def without(changes: Sequence[C], refused: Sequence[A]) -> list[C]:
    """The changes that are not refused."""
    names = {(result.resource_type, result.resource_name) for result in refused}
    return [change for change in changes if (change.resource_type, change.resource_name) not in names]
