"""CreateDelegationToken (38), RenewDelegationToken (39) and ExpireDelegationToken (40) at the controller.

The brokers that forward them have checked how the client is authenticated (`broker.apis.delegation_tokens`).
"""

from __future__ import annotations

from barnabas.broker.apis.delegation_tokens import change
from barnabas.broker.apis.registry import CONTROLLER, api
from barnabas.wire.messages.tokens import (
    CreateDelegationTokenRequest,
    ExpireDelegationTokenRequest,
    RenewDelegationTokenRequest,
)

for _request in (CreateDelegationTokenRequest, RenewDelegationTokenRequest, ExpireDelegationTokenRequest):
    api(_request, listener=CONTROLLER)(change)
