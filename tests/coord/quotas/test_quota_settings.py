"""Precedence of quota settings, against the eight steps of Kafka's documentation written one below the other."""

from __future__ import annotations

import itertools

from barnabas.coord.quotas.keys import CLIENT_ID, IP, USER, Entity, QuotaType
from barnabas.coord.quotas.settings import ANY, Name, QuotaSettings, QuotaTags, settings_in_steps
from barnabas.wire.steps import result_of

NAMES = ("a", "b")
PLACES = [
    (user, client) for user in (*NAMES, ANY, None) for client in (*NAMES, ANY, None) if (user, client) != (None,) * 2
]


def steps(user: str, client_id: str) -> list[tuple[tuple[Name, Name], QuotaTags]]:
    """The eight settings that may apply, the most specific first, each with the tags of clients that share it."""
    both, of_user, of_client = QuotaTags(user, client_id), QuotaTags(user, ""), QuotaTags("", client_id)
    return [
        ((user, client_id), both),
        ((user, ANY), both),
        ((user, None), of_user),
        ((ANY, client_id), both),
        ((ANY, ANY), both),
        ((ANY, None), of_user),
        ((None, client_id), of_client),
        ((None, ANY), of_client),
    ]


def test_the_most_specific_setting_applies() -> None:
    """With every set of at most four settings, of different limits."""
    for count in range(5):
        for places in itertools.combinations(PLACES, count):
            limits = dict(zip(places, (1.0, 2.0, 3.0, 4.0), strict=False))
            settings = QuotaSettings(limits)
            for user, client_id in itertools.product(NAMES, repeat=2):
                tags = settings.tags(user, client_id)
                match = next((step for step in steps(user, client_id) if step[0] in limits), None)
                if match is None:
                    assert settings.limit(tags) is None, (limits, user, client_id)
                else:
                    assert (settings.limit(tags), tags) == (limits[match[0]], match[1]), (limits, user, client_id)


def test_a_quota_of_any_user_is_one_for_each_user() -> None:
    settings = QuotaSettings({(ANY, None): 10.0})
    assert settings.tags("alice", "one") == settings.tags("alice", "two") != settings.tags("bob", "one")


def test_a_quota_of_a_client_id_is_one_for_all_users() -> None:
    settings = QuotaSettings({(None, "one"): 10.0, ("alice", None): 5.0})
    assert settings.tags("bob", "one") == settings.tags("carol", "one") == QuotaTags("", "one")
    assert settings.tags("alice", "one") == QuotaTags("alice", "")


def test_a_client_without_a_client_id_has_no_quota_of_client_ids() -> None:
    settings = QuotaSettings({(None, ANY): 10.0})
    assert settings.limit(settings.tags("alice", "")) is None


def test_settings_are_those_of_the_type_in_the_metadata() -> None:
    quotas: dict[Entity, dict[str, float]] = {
        ((CLIENT_ID, None), (USER, "alice")): {"producer_byte_rate": 1.0, "consumer_byte_rate": 2.0},
        ((USER, None),): {"request_percentage": 3.0},
        ((IP, "10.0.0.1"),): {"connection_creation_rate": 4.0},
    }
    settings = result_of(settings_in_steps(quotas))
    produce, request = settings[QuotaType.PRODUCE], settings[QuotaType.REQUEST]
    assert produce.limit(produce.tags("alice", "any")) == 1.0
    assert produce.limit(produce.tags("bob", "any")) is None
    assert request.limit(request.tags("bob", "any")) == 3.0
    assert not settings[QuotaType.CONTROLLER_MUTATION]
