"""CreateDelegationToken (38), RenewDelegationToken (39), ExpireDelegationToken (40), DescribeDelegationToken (41).

KIP-48, KIP-373. A client that is not authenticated, or authenticated by a token, is refused (`check_allowed`): a token
cannot create tokens. Owners and renewers may renew, expire and see their tokens; others need ACLs of users and tokens.
The controller makes the changes; descriptions come from this broker's metadata. The brokers that forward a change to a
controller have checked how the client is authenticated. Source: Kafka 4.4 `KafkaApis`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from barnabas.broker.apis.metadata_changes import change_metadata
from barnabas.broker.apis.registry import CONTROLLER, api
from barnabas.broker.config.keys.general import (
    DELEGATION_TOKEN_EXPIRY_TIME_MS,
    DELEGATION_TOKEN_MAX_LIFETIME_MS,
    DELEGATION_TOKEN_SECRET_KEY,
)
from barnabas.coord.security.acls import Operation, ResourceType
from barnabas.coord.security.tokens import (
    NO_TIMESTAMP,
    Requester,
    TokenSettings,
    create_token,
    creation_response,
    describe_tokens,
    expire_token,
    owner_of,
    renew_token,
)
from barnabas.wire.errors import ErrorCode, KafkaError
from barnabas.wire.messages.security.tokens import (
    CreateDelegationTokenRequest,
    CreateDelegationTokenResponse,
    DescribeDelegationTokenRequest,
    DescribeDelegationTokenResponse,
    ExpireDelegationTokenRequest,
    ExpireDelegationTokenResponse,
    RenewDelegationTokenRequest,
    RenewDelegationTokenResponse,
)
from barnabas.wire.types import uuid_to_text

if TYPE_CHECKING:
    from barnabas.broker.config.server_config import ServerConfig
    from barnabas.broker.context import RequestContext
    from barnabas.coord.cluster.local_controller import Outcome
    from barnabas.wire.messages.records.metadata_records import DelegationTokenRecord
    from barnabas.wire.schema import Message

FIRST_VERSION_WITH_REQUESTER = 3


def token_settings(config: ServerConfig) -> TokenSettings:
    """The config keys of delegation tokens."""
    return TokenSettings(
        config[DELEGATION_TOKEN_SECRET_KEY] or None,
        config[DELEGATION_TOKEN_MAX_LIFETIME_MS],
        config[DELEGATION_TOKEN_EXPIRY_TIME_MS],
    )


def check_allowed(ctx: RequestContext) -> None:
    """KafkaError(DELEGATION_TOKEN_REQUEST_NOT_ALLOWED) if the client is anonymous, or authenticated by a token."""
    protocol = ctx.connection.security_protocol
    is_anonymous = protocol == "PLAINTEXT" or (protocol == "SSL" and ctx.principal.name == "ANONYMOUS")
    if is_anonymous or ctx.principal.is_token_authenticated:
        raise KafkaError(ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED)


@api(CreateDelegationTokenRequest, listener=CONTROLLER, send_before_close=True)
@api(ExpireDelegationTokenRequest, listener=CONTROLLER, send_before_close=True)
@api(RenewDelegationTokenRequest, listener=CONTROLLER, send_before_close=True)
async def change(ctx: RequestContext, request: Message) -> Message:
    """Have the controller of this process change a token; how the client is authenticated was checked before."""
    broker = ctx.broker
    if isinstance(request, CreateDelegationTokenRequest):
        owner = str(owner_of(request, ctx.principal))
        if owner != str(ctx.principal) and not ctx.is_allowed(Operation.CREATE_TOKENS, ResourceType.USER, owner):
            return _failed(ctx, request, int(ErrorCode.DELEGATION_TOKEN_AUTHORIZATION_FAILED))
    settings = token_settings(broker.config)

    def validate() -> Outcome[Any]:
        from barnabas.coord.cluster.local_controller import Outcome

        image = broker.image
        origin = Requester(ctx.principal, broker.loop.now_ms(), image.metadata_version)
        if isinstance(request, CreateDelegationTokenRequest):
            return Outcome(*create_token(settings, request, origin, lambda: uuid_to_text(broker.log_dirs.new_id())))
        if isinstance(request, RenewDelegationTokenRequest):
            return Outcome(*renew_token(settings, image.tokens, request, origin))
        assert isinstance(request, ExpireDelegationTokenRequest)
        return Outcome(*expire_token(settings, image.tokens, request, origin))

    return await change_metadata(ctx, validate)


@api(CreateDelegationTokenRequest, send_before_close=True)
@api(ExpireDelegationTokenRequest, send_before_close=True)
@api(RenewDelegationTokenRequest, send_before_close=True)
async def change_if_allowed(ctx: RequestContext, request: Message) -> Message:
    """Check the client of a broker's listener, then change a token."""
    response = refused(ctx, request) or await change(ctx, request)
    if isinstance(response, CreateDelegationTokenResponse) and ctx.api_version < FIRST_VERSION_WITH_REQUESTER:
        response.token_requester_principal_type = response.token_requester_principal_name = ""
    return response


def refused(ctx: RequestContext, request: Message) -> Message | None:
    """The response to a client that may not change tokens; None for others."""
    try:
        check_allowed(ctx)
    except KafkaError as error:
        return _failed(ctx, request, int(error.code))
    return None


def _failed(ctx: RequestContext, request: Message, code: int) -> Message:
    if isinstance(request, CreateDelegationTokenRequest):
        return creation_response(owner_of(request, ctx.principal), ctx.principal, code)
    if isinstance(request, RenewDelegationTokenRequest):
        return RenewDelegationTokenResponse(error_code=code, expiry_timestamp_ms=NO_TIMESTAMP)
    return ExpireDelegationTokenResponse(error_code=code, expiry_timestamp_ms=NO_TIMESTAMP)


@api(DescribeDelegationTokenRequest)
def describe_delegation_token(
    ctx: RequestContext, request: DescribeDelegationTokenRequest
) -> DescribeDelegationTokenResponse:
    """The tokens of owners that the client may see, with their HMACs."""
    check_allowed(ctx)
    secret = ctx.broker.config[DELEGATION_TOKEN_SECRET_KEY]
    if not secret:
        raise KafkaError(ErrorCode.DELEGATION_TOKEN_AUTH_DISABLED)

    def may_see(token: DelegationTokenRecord) -> bool:
        return (
            str(ctx.principal) in {token.owner, token.requester, *token.renewers}
            or ctx.is_allowed(Operation.DESCRIBE, ResourceType.DELEGATION_TOKEN, token.token_id)
            or ctx.is_allowed(Operation.DESCRIBE_TOKENS, ResourceType.USER, token.owner)
        )

    return describe_tokens(secret, ctx.broker.image.tokens, request, may_see)
