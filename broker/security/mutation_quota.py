"""The quota of one request that creates or deletes partitions (controller_mutation_rate, KIP-599).

New versions of the requests have THROTTLING_QUOTA_EXCEEDED: once the tokens are used up each topic gets it, and nothing
is created, until the client has waited. Older versions are served, and their clients wait afterwards. A topic's
partitions are charged when it has been found valid, also where the request only validates. Source: Kafka 4.4
`StrictControllerMutationQuota`, `PermissiveControllerMutationQuota`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from barnabas.wire.errors import ErrorCode, KafkaError

if TYPE_CHECKING:
    from barnabas.broker.security.client_quotas import ClientQuotas


class MutationQuota:
    """The quota of a client, as seen by one of its requests."""

    __slots__ = ("_client_id", "_quotas", "_strict", "_throttled_at_ms", "_throttled_for_ms", "_user")

    def __init__(self, quotas: ClientQuotas, user: str, client_id: str | None, *, strict: bool) -> None:
        self._quotas = quotas
        self._user = user
        self._client_id = client_id or ""
        self._strict = strict
        self._throttled_at_ms = self._throttled_for_ms = 0

    def charge(self, partitions: int) -> None:
        """Charge `partitions` to create or delete; KafkaError(THROTTLING_QUOTA_EXCEEDED) if they must not be."""
        now_ms = self._quotas.now_ms
        account = self._quotas.mutation.account(self._user, self._client_id, now_ms)
        if account is None:
            return
        if not self._strict:
            account.use.record(partitions, account.limit, now_ms)
        throttle_ms = account.use.throttle_ms(account.limit, now_ms)
        if throttle_ms:
            self._throttled_at_ms, self._throttled_for_ms = now_ms, throttle_ms
            if self._strict:
                raise KafkaError(ErrorCode.THROTTLING_QUOTA_EXCEEDED, "The throttling quota has been exceeded.")
        elif self._strict:
            account.use.record(partitions, account.limit, now_ms)

    def remaining_throttle_ms(self) -> int:
        """How long the client has to wait from now on."""
        return max(0, self._throttled_for_ms - (self._quotas.now_ms - self._throttled_at_ms))
