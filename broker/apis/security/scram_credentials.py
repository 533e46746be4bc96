"""AlterUserScramCredentials (51) and DescribeUserScramCredentials (50): the users of SCRAM (KIP-554).

The controller makes the changes; descriptions come from this broker's metadata.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from barnabas.broker.apis.metadata_changes import change_metadata
from barnabas.broker.apis.registry import api
from barnabas.coord.security.acls import Operation
from barnabas.coord.security.scram_changes import describe_credentials, failed_alteration, failed_description
from barnabas.wire.messages.security.sasl import (
    AlterUserScramCredentialsRequest,
    DescribeUserScramCredentialsRequest,
    DescribeUserScramCredentialsResponse,
)

if TYPE_CHECKING:
    from barnabas.broker.context import RequestContext
    from barnabas.wire.messages.security.sasl import AlterUserScramCredentialsResponse


@api(AlterUserScramCredentialsRequest, on_error=failed_alteration, requires=Operation.ALTER, send_before_close=True)
async def alter_user_scram_credentials(
    ctx: RequestContext, request: AlterUserScramCredentialsRequest
) -> AlterUserScramCredentialsResponse:
    """Set and delete credentials; each user has its own result."""
    local = ctx.broker.controller.local
    items = len(request.deletions) + len(request.upsertions)
    return await change_metadata(ctx, lambda: local.alter_user_scram_credentials_in_steps(request), items=items)


@api(DescribeUserScramCredentialsRequest, on_error=failed_description, requires=Operation.DESCRIBE)
def describe_user_scram_credentials(
    ctx: RequestContext, request: DescribeUserScramCredentialsRequest
) -> DescribeUserScramCredentialsResponse:
    """Mechanisms and iterations of users; nothing against which passwords could be tested."""
    return describe_credentials(ctx.broker.image.scram, request)
