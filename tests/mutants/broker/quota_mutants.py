"""Bugs in the quotas of clients and addresses."""

from __future__ import annotations

from tests.mutants.mutant import Mutant

_SETTINGS = "tests/coord/quotas/test_quota_settings.py::"
_THROTTLING = "tests/broker/net/test_throttling.py::"

QUOTAS = (
    Mutant(
        "quota-of-any-user-before-that-of-the-user",
        "coord/quotas/settings.py",
        "((user, client_id), (user, ANY), (ANY, client_id), (ANY, ANY))",
        "((user, client_id), (ANY, client_id), (user, ANY), (ANY, ANY))",
        _SETTINGS + "test_the_most_specific_setting_applies",
    ),
    Mutant(
        "quota-of-a-user-for-each-client-id",
        "coord/quotas/settings.py",
        '                return QuotaTags(user, "")\n',
        "                return QuotaTags(user, client_id)\n",
        _SETTINGS + "test_the_most_specific_setting_applies",
    ),
    Mutant(
        "rate-without-missing-windows",
        "coord/quotas/rate.py",
        "elapsed + max(missing, 0) * self.window_ms",
        "elapsed",
        "tests/coord/quotas/test_quota_rate.py::test_a_new_client_may_use_at_once_what_all_windows_but_one_allow",
    ),
    Mutant(
        "accounts-of-quotas-without-bound",
        "coord/quotas/book.py",
        "        if len(accounts) >= MAX_ACCOUNTS:\n",
        "        if False:\n",
        "tests/coord/quotas/test_quota_book.py::test_made_up_client_ids_take_a_bounded_number_of_accounts",
    ),
    Mutant(
        "throttled-client-served-on",
        "broker/apis/metering.py",
        "    usage.finish()\n    if throttle_ms:\n",
        "    usage.finish()\n    if False:\n",
        _THROTTLING + "test_who_produces_too_much_is_told_and_not_served_until_then",
    ),
    Mutant(
        "throttled-client-without-acks-served-on",
        "broker/apis/metering.py",
        "    throttle_ms = usage.produce_throttle_ms()\n    if throttle_ms:\n",
        "    throttle_ms = usage.produce_throttle_ms()\n    if False:\n",
        _THROTTLING + "test_without_acknowledgements_a_client_is_muted_too",
    ),
    Mutant(
        "requests-throttled-without-bound",
        "broker/security/client_quotas.py",
        "min(account.use.throttle_ms(account.limit, now_ms), self._window_ms)",
        "account.use.throttle_ms(account.limit, now_ms)",
        _THROTTLING + "test_requests_that_take_too_much_time_are_throttled_for_a_window_at_most",
    ),
    Mutant(
        "throttled-fetch-ends-its-session",
        "broker/apis/fetch/plan.py",
        "                response.session_id = NO_SESSION if self.session is None else self.session.session_id\n"
        "                return response\n",
        "                return response\n",
        _THROTTLING + "test_a_session_goes_on_behind_a_throttled_fetch",
    ),
    Mutant(
        "refused-changes-charged",
        "broker/security/mutation_quota.py",
        "        if not self._strict:\n",
        "        if True:\n",
        _THROTTLING + "test_new_versions_of_changes_are_refused_above_the_quota",
    ),
    Mutant(
        "refused-connections-counted",
        "broker/security/ip_rates.py",
        "            account.use.record(-1, now_ms)\n",
        "            pass\n",
        "tests/broker/net/test_quotas_of_addresses.py::test_refused_connections_do_not_count_for_the_rate",
    ),
)
