"""Users that log in with SCRAM (KIP-554): list, add, change the password, delete; what one user may do."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal

import msgspec

from barnabas.client.admin.acls import AclFilter, list_acls
from barnabas.client.admin.quotas import list_quotas
from barnabas.client.admin.users import UserCredential, delete_credentials, list_credentials, set_credential
from barnabas.client.cluster import Cluster
from barnabas.client.errors import NotFound
from barnabas.client.security.scram import DEFAULT_ITERATIONS, credential
from barnabas.console.console import Call
from barnabas.console.pages import part
from barnabas.console.resources import Done, action, resource
from barnabas.console.screens.access.acls import AclRow, rows_of
from barnabas.console.screens.access.secured import advice
from barnabas.console.tables import Page, TableQuery, paged
from barnabas.wire.errors import ErrorCode, KafkaError

Mechanism = Literal["SCRAM-SHA-512", "SCRAM-SHA-256"]


@dataclass(frozen=True)
class UserRow:
    """A user with its credentials."""

    user: str
    mechanisms: list[str]
    iterations: list[int]


@dataclass(frozen=True)
class Users:
    """The users with SCRAM credentials."""

    users: Page[UserRow]
    advice: str
    """How to get security, on a broker that is not secured."""


@resource("/users", template="access/users.html", summary="The users with SCRAM credentials.")
def list_of_users(cluster: Cluster, call: Call, query: TableQuery) -> Users:
    """Passwords are not shown: brokers do not have them."""
    rows = _rows(list_credentials(cluster))
    page = paged(rows, query, columns=("user", "mechanisms"), search=lambda row: row.user, sort="user")
    return Users(page, advice(call))


def _rows(credentials: list[UserCredential]) -> list[UserRow]:
    by_user: dict[str, list[UserCredential]] = {}
    for each in credentials:
        by_user.setdefault(each.user, []).append(each)
    return [
        UserRow(user, [each.mechanism for each in own], [each.iterations for each in own])
        for user, own in by_user.items()
    ]


@dataclass(frozen=True)
class UserQuery:
    """Which user."""

    user: str


@dataclass(frozen=True)
class UserView:
    """One user: credentials, ACLs, quotas."""

    user: str
    credentials: UserRow | None
    """None: it has no SCRAM credential, and may log in in another way."""
    acls: list[AclRow]
    acls_unknown: str
    """Why the ACLs are not known."""
    quotas: dict[str, float]


@resource("/users/{user}", template="access/user.html", summary="One user: credentials, ACLs and quotas.")
def one_user(cluster: Cluster, query: UserQuery) -> UserView:
    """A principal without credentials has a page too: it may log in with PLAIN, a certificate or a token."""
    try:
        credentials = next(iter(_rows(list_credentials(cluster, [query.user]))), None)
    except NotFound:
        credentials = None
    acls: list[AclRow] = []
    why = ""
    try:
        acls = rows_of(list_acls(cluster, AclFilter(principal=f"User:{query.user}")))
    except KafkaError as error:
        if error.code not in (ErrorCode.SECURITY_DISABLED, ErrorCode.CLUSTER_AUTHORIZATION_FAILED):
            raise
        why = str(error)
    quotas = list_quotas(cluster, {"user": query.user}, strict=True)
    return UserView(query.user, credentials, acls, why, quotas[0].values if quotas else {})


@dataclass(frozen=True)
class SetUser:
    """A user and its new password."""

    user: Annotated[str, msgspec.Meta(min_length=1, max_length=255)]
    password: Annotated[str, msgspec.Meta(min_length=1, max_length=1024)]
    mechanism: Mechanism = "SCRAM-SHA-512"
    iterations: Annotated[int, msgspec.Meta(ge=4096, le=16384)] = DEFAULT_ITERATIONS


@action("/set-user", summary="Add a user, or change the password of one.", secrets=("password",))
def set_user(cluster: Cluster, form: SetUser) -> Done:
    """The password does not leave the console: the broker gets what SCRAM stores."""
    existed = any(each.user == form.user and each.mechanism == form.mechanism for each in list_credentials(cluster))
    set_credential(cluster, form.user, credential(form.mechanism, form.password, form.iterations))
    done = f"changed the password of user {form.user!r}" if existed else f"added user {form.user!r}"
    return Done(f"{done} ({form.mechanism})", f"/users/{part(form.user)}")


@dataclass(frozen=True)
class DeleteUser:
    """Which credentials: all, or those of one mechanism."""

    user: str
    mechanism: Literal["", "SCRAM-SHA-512", "SCRAM-SHA-256"] = ""


@action("/users/{user}/delete", summary="Delete credentials of a user; its ACLs and quotas stay.")
def delete_user(cluster: Cluster, form: DeleteUser) -> Done:
    """The user cannot log in with SCRAM any more."""
    own = [each.mechanism for each in list_credentials(cluster, [form.user])]
    chosen = [name for name in own if form.mechanism in ("", name)]
    if not chosen:
        raise NotFound(f"user {form.user!r} has no credential of {form.mechanism}")
    delete_credentials(cluster, form.user, chosen)
    return Done(f"deleted the credentials of user {form.user!r} ({', '.join(chosen)})", "/users")
