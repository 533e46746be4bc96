"""The use of one type of quota: one account for all clients that share a quota.

Clients without a limit have no account. A client that invents client ids gets an account for each where quotas are
for each client id, so accounts in the state of new ones are closed, and there are never more than `MAX_ACCOUNTS`: then
another one is removed, which only loses the use of its clients (Kafka keeps all for an hour). Times are milliseconds.
Source: Kafka 4.4 `ClientQuotaManager`.
"""

from __future__ import annotations

from typing import Final, Generic, TypeVar

from barnabas.coord.quotas.rate import Rate
from barnabas.coord.quotas.settings import QuotaSettings, QuotaTags
from barnabas.coord.quotas.token_bucket import TokenBucket

U = TypeVar("U", Rate, TokenBucket)

MAX_ACCOUNTS: Final = 10_000
"""Accounts of a type of quota, and clients whose account is remembered."""
LOOKED_AT: Final = 2
"""With each new account so many others are looked at: one at least is removed for each that is opened, if it can be."""


class Account(Generic[U]):
    """The limit of the clients that share a quota, and their use."""

    __slots__ = ("is_closed", "limit", "use")

    def __init__(self, limit: float, use: U) -> None:
        self.limit = limit
        self.use: U = use
        self.is_closed = False


class QuotaBook(Generic[U]):
    """The accounts of one type of quota."""

    __slots__ = ("_accounts", "_by_client", "_new_use", "_settings", "_window_ms", "_windows")

    def __init__(self, new_use: type[U], windows: int, window_ms: int) -> None:
        self._new_use: type[U] = new_use
        self._windows = windows
        self._window_ms = window_ms
        self._settings = QuotaSettings({})
        self._accounts: dict[QuotaTags, Account[U]] = {}
        self._by_client: dict[tuple[str, str], Account[U] | None] = {}

    def __len__(self) -> int:
        return len(self._accounts)

    @property
    def is_empty(self) -> bool:
        """Whether no client has a limit."""
        return not self._settings

    def change(self, settings: QuotaSettings) -> None:
        """Replace the settings; what was used before counts for the new limits too, from the next use on."""
        self._settings = settings
        self._by_client.clear()
        if not settings:
            self._accounts = {}

    def account(self, user: str, client_id: str, now_ms: int) -> Account[U] | None:
        """The account that a client counts for; None if it has no limit."""
        client = (user, client_id)
        known = self._by_client.get(client, _UNKNOWN)
        if known is None or (isinstance(known, Account) and not known.is_closed):
            return known
        if len(self._by_client) >= MAX_ACCOUNTS:
            self._by_client.clear()
        tags = self._settings.tags(user, client_id)
        limit = self._settings.limit(tags)
        account = self._accounts.get(tags)
        if limit is None:
            if account is not None:
                self._close(tags)
                account = None
        elif account is not None:
            account.limit = limit
        else:
            self._make_place(now_ms)
            account = self._accounts[tags] = Account(limit, self._new_use(self._windows, self._window_ms))
        self._by_client[client] = account
        return account

    def _make_place(self, now_ms: int) -> None:
        """Close the accounts at the head that are in the state of new ones; move the others to the end."""
        accounts = self._accounts
        for _ in range(min(LOOKED_AT, len(accounts))):
            tags = next(iter(accounts))
            account = accounts[tags]
            if account.use.is_as_new(account.limit, now_ms):
                self._close(tags)
            else:
                accounts[tags] = accounts.pop(tags)
        if len(accounts) >= MAX_ACCOUNTS:
            self._close(next(iter(accounts)))

    def _close(self, tags: QuotaTags) -> None:
        self._accounts.pop(tags).is_closed = True


_UNKNOWN: Final = object()
