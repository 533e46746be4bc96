"""ApiVersions (18) of a controller: the APIs of its listener, and the features."""

from __future__ import annotations

from typing import TYPE_CHECKING

from barnabas.broker.apis.api_versions import refused, whole_answer
from barnabas.broker.apis.registry import CONTROLLER, CONTROLLER_APIS, api
from barnabas.wire.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse

if TYPE_CHECKING:
    from barnabas.broker.context import RequestContext


@api(ApiVersionsRequest, listener=CONTROLLER)
def api_versions(ctx: RequestContext, request: ApiVersionsRequest) -> ApiVersionsResponse:
    """Return every API of a controller with its versions, and the features."""
    return refused(ctx, request) or whole_answer(ctx.broker.metadata, CONTROLLER_APIS)
