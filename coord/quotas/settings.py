"""Which quota a client has, and with which other clients it shares it: the precedence of Kafka's settings.

The most specific setting applies: of the user and client id, the user and any client id, the user; then the same for
any user; then of the client id, and of any client id. It also decides which clients share a quota: all clients of a
user share the user's quota, a quota of any user counts for each user, a quota with a client id for each pair of user
and client id, and a quota of a client id alone for all users with that client id. As in Kafka, while all settings are
of one kind (users, client ids, or both) every client counts under that kind, also one for which there is no limit.

An empty client id is a client without one: settings of client ids never apply to it.

Immutable: a change of the settings makes new ones. Source: Kafka 4.4 `ClientQuotaManager.DefaultQuotaCallback`. KIP-55.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping
from typing import Final, NamedTuple, TypeAlias

from barnabas.coord.quotas.keys import CLIENT_ID, USER, Entity, QuotaType

ENTITIES_PER_STEP: Final = 200
"""Each takes a few microseconds."""


class QuotaTags(NamedTuple):
    """The clients that share a quota, as in the tags of Kafka's metrics: empty is any."""

    user: str
    client_id: str


ANY: Final = ()
"""The name of the default of a type, which no user and no client id can have."""
Name: TypeAlias = "str | tuple[()] | None"
"""A user or a client id in the place of a setting: None if it has none."""


class QuotaSettings:
    """The settings of one type of quota."""

    __slots__ = ("_by_place", "_kinds")

    def __init__(self, limits: Mapping[tuple[Name, Name], float]) -> None:
        """`limits` by user and client id: None without one, `ANY` for the default."""
        self._by_place = limits
        self._kinds = {(user is not None, client_id is not None) for user, client_id in limits}

    def __bool__(self) -> bool:
        return bool(self._by_place)

    def tags(self, user: str, client_id: str) -> QuotaTags:
        """The user and client id that a client's use is counted under; empty if its quota has none."""
        if len(self._kinds) <= 1:
            has_user, has_client_id = next(iter(self._kinds), (False, True))
            return QuotaTags(user if has_user else "", client_id if has_client_id else "")
        places = self._by_place
        for named_user in (user, ANY):
            if (named_user, client_id) in places or (named_user, ANY) in places:
                return QuotaTags(user, client_id)
            if (named_user, None) in places:
                return QuotaTags(user, "")
        return QuotaTags("", client_id)

    def limit(self, tags: QuotaTags) -> float | None:
        """The limit of the clients that share a quota, None without one."""
        user, client_id = tags
        places = self._by_place
        if user and client_id:
            order: tuple[tuple[Name, Name], ...] = ((user, client_id), (user, ANY), (ANY, client_id), (ANY, ANY))
        elif user:
            order = ((user, None), (ANY, None))
        elif client_id:
            order = ((None, client_id), (None, ANY))
        else:
            return None
        return next((places[place] for place in order if place in places), None)


def settings_in_steps(
    quotas: Mapping[Entity, Mapping[str, float]],
) -> Generator[None, None, dict[QuotaType, QuotaSettings]]:
    """The settings of every type in the cluster's metadata; yields after a step of a millisecond at most."""
    limits: dict[QuotaType, dict[tuple[Name, Name], float]] = {quota_type: {} for quota_type in QuotaType}
    for count, (entity, values) in enumerate(list(quotas.items()), 1):
        names = dict(entity)
        if names.keys() <= {USER, CLIENT_ID}:
            place = (_place(names, USER), _place(names, CLIENT_ID))
            for quota_type in QuotaType:
                if quota_type.value in values:
                    limits[quota_type][place] = values[quota_type.value]
        if count % ENTITIES_PER_STEP == 0:
            yield
    return {quota_type: QuotaSettings(limits_of_type) for quota_type, limits_of_type in limits.items()}


def _place(names: Mapping[str, str | None], kind: str) -> Name:
    if kind not in names:
        return None
    name = names[kind]
    return ANY if name is None else name
