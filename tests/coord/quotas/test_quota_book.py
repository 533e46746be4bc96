"""Accounts of quotas: which clients share one, changes of limits, and how many there are at most."""

from __future__ import annotations

from barnabas.coord.quotas.book import MAX_ACCOUNTS, QuotaBook
from barnabas.coord.quotas.rate import Rate
from barnabas.coord.quotas.settings import ANY, QuotaSettings

EXPIRY_MS = 11_000


def book(*settings: tuple[object, object]) -> QuotaBook[Rate]:
    quotas = QuotaBook(Rate, 11, 1000)
    quotas.change(QuotaSettings(dict.fromkeys(settings, 100.0)))  # type: ignore[arg-type]
    return quotas


def test_clients_of_a_user_share_its_account() -> None:
    quotas = book(("alice", None))
    assert quotas.account("alice", "one", 0) is quotas.account("alice", "two", 0) is not None
    assert quotas.account("bob", "one", 0) is None


def test_a_changed_limit_applies_to_what_was_used_before() -> None:
    quotas = book((ANY, None))
    account = quotas.account("alice", "one", 0)
    assert account is not None
    account.use.record(1000, 0)
    assert account.use.throttle_ms(account.limit, 0) == 0
    quotas.change(QuotaSettings({("alice", None): 50.0, (ANY, None): 100.0}))
    again = quotas.account("alice", "one", 0)
    assert again is account
    assert account.use.throttle_ms(account.limit, 0) == 10_000


def test_without_a_limit_there_is_no_account() -> None:
    quotas = book((ANY, None))
    assert quotas.account("alice", "one", 0) is not None
    quotas.change(QuotaSettings({}))
    assert quotas.is_empty
    assert quotas.account("alice", "one", 0) is None
    assert len(quotas) == 0


def test_made_up_client_ids_take_a_bounded_number_of_accounts() -> None:
    quotas = book((None, ANY))
    for number in range(MAX_ACCOUNTS + 1000):
        account = quotas.account("alice", f"id-{number}", 0)
        assert account is not None
        account.use.record(1, 0)
    assert len(quotas) == MAX_ACCOUNTS


def test_accounts_that_are_as_good_as_new_are_closed_as_others_are_opened() -> None:
    quotas = book((None, ANY))
    first = quotas.account("alice", "first", 0)
    assert first is not None
    first.use.record(1, 0)
    for number in range(5):
        account = quotas.account("alice", f"id-{number}", EXPIRY_MS - 1)
        assert account is not None
        account.use.record(1, EXPIRY_MS - 1)
    assert not first.is_closed
    for number in range(5, 20):
        account = quotas.account("alice", f"id-{number}", EXPIRY_MS)
        assert account is not None
        account.use.record(1, EXPIRY_MS)
    assert first.is_closed
    reopened = quotas.account("alice", "first", EXPIRY_MS)
    assert reopened is not None
    assert not reopened.is_closed
    assert reopened is quotas.account("bob", "first", EXPIRY_MS)
