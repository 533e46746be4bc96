"""The quota for changes of topics, as a request for one of them uses it (KIP-599)."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from barnabas.wire.errors import KafkaError
from barnabas.wire.messages.topics import CreatePartitionsResponse, CreateTopicsResponse, DeleteTopicsResponse

if TYPE_CHECKING:
    from barnabas.broker.context import RequestContext

R = TypeVar("R", CreateTopicsResponse, DeleteTopicsResponse, CreatePartitionsResponse)


class ChargedRequest(NamedTuple):
    """What charges the partitions of a request, and how long its client has to wait then."""

    charge: Callable[[int], None] | None = None
    """None: nobody has such a quota."""
    throttle_ms: Callable[[], int] = int

    def told(self, outcome: R | KafkaError) -> R | KafkaError:
        """The response, with the time for which the client has to wait."""
        if not isinstance(outcome, KafkaError):
            outcome.throttle_time_ms = self.throttle_ms()
        return outcome


UNCHARGED = ChargedRequest()


def mutation_quota(ctx: RequestContext, strict_since: int) -> ChargedRequest:
    """The quota of the client; from version `strict_since` on nothing is made above it."""
    quotas = ctx.broker.client_quotas
    if quotas is None or quotas.mutation.is_empty:
        return UNCHARGED
    from barnabas.broker.security.mutation_quota import MutationQuota

    quota = MutationQuota(quotas, ctx.principal.name, ctx.client_id, strict=ctx.api_version >= strict_since)
    return ChargedRequest(quota.charge, quota.remaining_throttle_ms)
