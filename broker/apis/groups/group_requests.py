"""Functions for the handlers of all group protocols."""

from __future__ import annotations

from typing import TYPE_CHECKING

from barnabas.coord.groups.context import ClientContext

if TYPE_CHECKING:
    from barnabas.broker.context import RequestContext

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
