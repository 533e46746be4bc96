"""Configs of the resource BROKER_LOGGER: the log levels of this process, which are not persistent (KIP-412)."""

from __future__ import annotations

import logging
from collections.abc import Container
from typing import TYPE_CHECKING

from barnabas.broker.apis.access import CLUSTER_TEXT
from barnabas.coord.cluster.changes.config_changes import Operation
from barnabas.coord.cluster.changes.config_schema import DYNAMIC_BROKER_LOGGER_CONFIG
from barnabas.coord.security.acls import Operation as AclOperation
from barnabas.wire.errors import ErrorCode, KafkaError
from barnabas.wire.messages.configs import (
    DescribeConfigsResource,
    DescribeConfigsResourceResult,
    DescribeConfigsResult,
    DescribeConfigsSynonym,
    IncrementalAlterConfigsRequestAlterableConfig,
    IncrementalAlterConfigsRequestAlterConfigsResource,
    IncrementalAlterConfigsResponseAlterConfigsResourceResponse,
)

if TYPE_CHECKING:
    from barnabas.broker.context import RequestContext

LEVELS = {"FATAL": 50, "ERROR": 40, "WARN": 30, "INFO": 20, "DEBUG": 10, "TRACE": 5}
"""Kafka's log levels, with Python's numbers."""

ROOT = "root"
STRING_TYPE = 2


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
    return [ROOT, *sorted(name for name, entry in known.items() if isinstance(entry, logging.Logger))]


def describe_loggers(
    ctx: RequestContext, resource: DescribeConfigsResource, *, synonyms: bool
) -> DescribeConfigsResult:
    """The levels of the loggers that the resource names, or of all."""
    result = DescribeConfigsResult(resource_type=resource.resource_type, resource_name=resource.resource_name)
    try:
        _check_broker(ctx, resource.resource_name)
    except KafkaError as error:
        result.error_code, result.error_message = error.code, error.message
        return result
    requested = None if resource.configuration_keys is None else set(resource.configuration_keys)
    for name in _logger_names():
        if requested is None or name in requested:
            level = _level_name(_logger(name).getEffectiveLevel())
            layer = DescribeConfigsSynonym(name=name, value=level, source=DYNAMIC_BROKER_LOGGER_CONFIG)
            entry = DescribeConfigsResourceResult(
                name=name, value=level, config_source=DYNAMIC_BROKER_LOGGER_CONFIG, config_type=STRING_TYPE
            )
            entry.synonyms = [layer] if synonyms else []
            result.configs.append(entry)
    return result


def alter_loggers(
    ctx: RequestContext, resource: IncrementalAlterConfigsRequestAlterConfigsResource, *, validate_only: bool
) -> IncrementalAlterConfigsResponseAlterConfigsResourceResponse:
    """Set the levels of loggers, or reset them: all changes are made, or none."""
    response = IncrementalAlterConfigsResponseAlterConfigsResourceResponse(
        resource_type=resource.resource_type, resource_name=resource.resource_name, error_message=None
    )
    try:
        if not ctx.is_allowed_on_cluster(_needed_operation(ctx)):
            raise KafkaError(ErrorCode.CLUSTER_AUTHORIZATION_FAILED, CLUSTER_TEXT)
        _check_broker(ctx, resource.resource_name)
        known = set(_logger_names())
        for config in resource.configs:
            _check_logger_change(config, known)
    except KafkaError as error:
        response.error_code, response.error_message = error.code, error.message
        return response
    for config in resource.configs:
        if not validate_only:
            level = logging.NOTSET if config.config_operation == Operation.DELETE else LEVELS[config.value or "INFO"]
            _logger(config.name).setLevel(level)
    if ctx.broker.authorizer is not None:
        ctx.broker.authorizer.forget()  # the audit log may have to log allowed operations from now on
    return response


def _needed_operation(ctx: RequestContext) -> AclOperation:
    """The operation that changing log levels requires, which depends on the kind of listener."""
    controllers = {endpoint.name for endpoint in ctx.broker.config.controller_listeners}
    return AclOperation.CLUSTER_ACTION if ctx.listener in controllers else AclOperation.ALTER_CONFIGS


def _check_logger_change(config: IncrementalAlterConfigsRequestAlterableConfig, known: Container[str]) -> None:
    if config.name not in known:
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
