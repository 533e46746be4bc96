"""Functions for the handlers of all group protocols."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

from barnabas.broker.apis.access import DESCRIBED_TEXT, check_group, check_topics
from barnabas.broker.apis.authorized_operations import group_operations
from barnabas.coord.groups.context import ClientContext
from barnabas.coord.security.acls import Operation
from barnabas.wire.errors import ErrorCode, KafkaError

if TYPE_CHECKING:
    from barnabas.broker.context import RequestContext
    from barnabas.coord.groups.coordinator import GroupCoordinator
    from barnabas.wire.schema import Message

MAX_MEMBER_ID_LENGTH = 36
"""Limit of the ids that members of share groups choose (KIP-932)."""


def client_of(ctx: RequestContext) -> ClientContext:
    """The client of a request, in the form in which coordinators record it."""
    return ClientContext(ctx.client_id or "", ctx.client_host, ctx.api_version)


def seeing_client_of(ctx: RequestContext) -> ClientContext:
    """The client of a request, with the topics that it may see."""
    client = client_of(ctx)
    authorizer = ctx.broker.authorizer
    return client if authorizer is None else client._replace(may_describe=authorizer.topics_seen_by(ctx))


def described(
    ctx: RequestContext,
    request: Any,
    group_class: Callable[..., Any],
    describe: Callable[[GroupCoordinator, str], Any],
    topics_of: Callable[[Any], Iterable[str]],
    denied_text: str = DESCRIBED_TEXT,
) -> list[Any]:
    """The description of each group, or its error: the client needs access to the group and to the topics it uses.

    `request` and `group_class` are those of consumer, share or streams groups.
    """

    def of(group_id: str) -> Any:
        try:
            check_group(ctx, Operation.DESCRIBE, group_id)
            if not group_id:
                raise KafkaError(ErrorCode.INVALID_GROUP_ID)
            group = describe(ctx.broker.group_coordinators.coordinator_of(group_id), group_id)
            check_topics(ctx, Operation.DESCRIBE, topics_of(group), denied_text)
        except KafkaError as error:
            return group_class(group_id=group_id, error_code=int(error.code), error_message=error.message)
        if request.include_authorized_operations and not group.error_code:
            group.authorized_operations = group_operations(ctx, group_id)
        return group

    return [of(group_id) for group_id in request.group_ids]


def none_described(
    response_class: type[Message], group_class: Callable[..., Any]
) -> Callable[[Any, KafkaError], Message]:
    """Return a function that makes the response in which every group of the request has the same error."""

    def failed(request: Any, error: KafkaError) -> Message:
        code, message = int(error.code), error.message
        groups = [group_class(group_id=name, error_code=code, error_message=message) for name in request.group_ids]
        return response_class(groups=groups)

    return failed
