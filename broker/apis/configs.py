"""DescribeConfigs (32), AlterConfigs (33), IncrementalAlterConfigs (44), ListConfigResources (74).

KIP-133, KIP-226, KIP-339, KIP-412, KIP-569, KIP-1142. Topics, brokers, groups and client metrics subscriptions are
the controller's; broker loggers are the process' own and last as long as it does.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from barnabas.broker.apis.registry import api
from barnabas.coord.cluster.config_changes import Operation
from barnabas.coord.cluster.config_schema import DYNAMIC_BROKER_LOGGER_CONFIG
from barnabas.coord.cluster.local_controller import Outcome
from barnabas.coord.cluster.resources import BROKER_LOGGER
from barnabas.wire.errors import ErrorCode, KafkaError
from barnabas.wire.messages.configs import (
    AlterConfigsRequest,
    AlterConfigsResponse,
    AlterConfigsResponseAlterConfigsResourceResponse,
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResourceResult,
    DescribeConfigsResponse,
    DescribeConfigsResult,
    DescribeConfigsSynonym,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsRequestAlterableConfig,
    IncrementalAlterConfigsRequestAlterConfigsResource,
    IncrementalAlterConfigsResponse,
    IncrementalAlterConfigsResponseAlterConfigsResourceResponse,
    ListConfigResourcesRequest,
    ListConfigResourcesResponse,
)

if TYPE_CHECKING:
    from barnabas.broker.context import RequestContext

LEVELS = {"FATAL": 50, "ERROR": 40, "WARN": 30, "INFO": 20, "DEBUG": 10, "TRACE": 5}
"""Kafka's names of log levels, with Python's numbers."""

ROOT = "root"
STRING_TYPE = 2


@api(DescribeConfigsRequest)
def describe_configs(ctx: RequestContext, request: DescribeConfigsRequest) -> DescribeConfigsResponse:
    """Tell each resource's configs."""
    local = ctx.broker.controller.local
    results: list[DescribeConfigsResult] = []
    for asked in request.resources:
        if asked.resource_type == BROKER_LOGGER:
            results.append(_describe_loggers(ctx, asked, synonyms=request.include_synonyms))
        else:
            alone = DescribeConfigsRequest(
                resources=[asked],
                include_synonyms=request.include_synonyms,
                include_documentation=request.include_documentation,
            )
            results += local.describe_configs(alone).results
    return DescribeConfigsResponse(results=results)


@api(AlterConfigsRequest)
def alter_configs(ctx: RequestContext, request: AlterConfigsRequest) -> AlterConfigsResponse:
    """Replace each resource's configs by those given."""
    controller = ctx.broker.controller
    try:
        return controller.commit(controller.local.alter_configs(request))
    except KafkaError as error:
        return AlterConfigsResponse(
            responses=[
                AlterConfigsResponseAlterConfigsResourceResponse(
                    resource_type=asked.resource_type,
                    resource_name=asked.resource_name,
                    error_code=error.code,
                    error_message=error.message,
                )
                for asked in request.resources
            ]
        )


@api(IncrementalAlterConfigsRequest)
def incremental_alter_configs(
    ctx: RequestContext, request: IncrementalAlterConfigsRequest
) -> IncrementalAlterConfigsResponse:
    """Change single configs of each resource."""
    controller = ctx.broker.controller
    loggers = [asked for asked in request.resources if asked.resource_type == BROKER_LOGGER]
    others = [asked for asked in request.resources if asked.resource_type != BROKER_LOGGER]
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
    response.responses += [_alter_loggers(ctx, asked, validate_only=request.validate_only) for asked in loggers]
    return response


@api(ListConfigResourcesRequest)
def list_config_resources(ctx: RequestContext, request: ListConfigResourcesRequest) -> ListConfigResourcesResponse:
    """Name the resources that have configs."""
    return ctx.broker.controller.local.list_config_resources(request, ctx.api_version)


# Broker loggers (KIP-412)


def _check_broker(ctx: RequestContext, name: str) -> None:
    if not name:
        raise KafkaError(ErrorCode.INVALID_REQUEST, "Broker id must not be empty")
    if name != str(ctx.broker.node_id):
        raise KafkaError(
            ErrorCode.INVALID_REQUEST, f"Unexpected broker id, expected {ctx.broker.node_id} but received {name}"
        )


def _level_name(level: int) -> str:
    return next((name for name, number in LEVELS.items() if level >= number), "TRACE")


def _logger(name: str) -> logging.Logger:
    return logging.getLogger() if name == ROOT else logging.getLogger(name)


def _logger_names() -> list[str]:
    known = logging.getLogger().manager.loggerDict
    return [ROOT, *sorted(name for name, found in known.items() if isinstance(found, logging.Logger))]


def _describe_loggers(ctx: RequestContext, asked: DescribeConfigsResource, *, synonyms: bool) -> DescribeConfigsResult:
    result = DescribeConfigsResult(resource_type=asked.resource_type, resource_name=asked.resource_name)
    try:
        _check_broker(ctx, asked.resource_name)
    except KafkaError as error:
        result.error_code, result.error_message = error.code, error.message
        return result
    for name in _logger_names():
        if asked.configuration_keys is None or name in asked.configuration_keys:
            level = _level_name(_logger(name).getEffectiveLevel())
            layer = DescribeConfigsSynonym(name=name, value=level, source=DYNAMIC_BROKER_LOGGER_CONFIG)
            entry = DescribeConfigsResourceResult(
                name=name, value=level, config_source=DYNAMIC_BROKER_LOGGER_CONFIG, config_type=STRING_TYPE
            )
            entry.synonyms = [layer] if synonyms else []
            result.configs.append(entry)
    return result


def _alter_loggers(
    ctx: RequestContext, asked: IncrementalAlterConfigsRequestAlterConfigsResource, *, validate_only: bool
) -> IncrementalAlterConfigsResponseAlterConfigsResourceResponse:
    response = IncrementalAlterConfigsResponseAlterConfigsResourceResponse(
        resource_type=asked.resource_type, resource_name=asked.resource_name, error_message=None
    )
    try:
        _check_broker(ctx, asked.resource_name)
        for config in asked.configs:
            _check_logger_change(config)
    except KafkaError as error:
        response.error_code, response.error_message = error.code, error.message
        return response
    for config in asked.configs:
        if not validate_only:
            level = logging.NOTSET if config.config_operation == Operation.DELETE else LEVELS[config.value or "INFO"]
            _logger(config.name).setLevel(level)
    return response


def _check_logger_change(config: IncrementalAlterConfigsRequestAlterableConfig) -> None:
    if config.name not in _logger_names():
        raise KafkaError(ErrorCode.INVALID_CONFIG, f"Logger {config.name} does not exist!")
    if config.config_operation == Operation.DELETE:
        if config.name == ROOT:
            raise KafkaError(ErrorCode.INVALID_REQUEST, "Removing the log level of the root logger is not allowed")
    elif config.config_operation == Operation.SET:
        if config.value not in LEVELS:
            raise KafkaError(
                ErrorCode.INVALID_CONFIG,
                f"Cannot set the log level of {config.name} to {config.value} as it is not a supported log level. "
                f"Valid log levels are {', '.join(LEVELS)}",
            )
    else:
        raise KafkaError(
            ErrorCode.INVALID_REQUEST, f"Operation {config.config_operation} is not allowed for broker loggers"
        )
