"""Quotas of users, client ids and addresses (KIP-13, KIP-546): list, set, remove."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from barnabas.client.admin.quotas import ENTITY_TYPES, KEYS, Quotas, alter_quotas, entity_name, list_quotas
from barnabas.client.cluster import Cluster
from barnabas.console.resources import Done, action, resource
from barnabas.console.tables import Page, TableQuery, paged
from barnabas.console.values import BadInput

DEFAULT = "<default>"
"""The name of the default of all users, client ids or addresses."""
Key = Literal[
    "producer_byte_rate",
    "consumer_byte_rate",
    "request_percentage",
    "controller_mutation_rate",
    "connection_creation_rate",
]


@dataclass(frozen=True)
class QuotaRow:
    """One quota of an entity."""

    entity: str
    """In words."""
    user: str
    client: str
    ip: str
    """The names; `<default>` for the default of all, empty if the entity has none of this kind."""
    key: str
    value: float
    meaning: str


@dataclass(frozen=True)
class QuotasView:
    """All quotas."""

    quotas: Page[QuotaRow]
    keys: dict[str, str]
    """What each key limits."""


@resource("/quotas", template="access/quotas.html", summary="The quotas of users, client ids and addresses.")
def list_of_quotas(cluster: Cluster, query: TableQuery) -> QuotasView:
    """A row for each key of each entity."""
    rows = [row for quotas in list_quotas(cluster, {}) for row in _rows(quotas)]
    page = paged(
        rows, query, columns=("entity", "key", "value"), search=lambda row: f"{row.entity} {row.key}", sort="entity"
    )
    return QuotasView(page, KEYS)


def _rows(quotas: Quotas) -> list[QuotaRow]:
    names = {kind: "" if kind not in quotas.entity else quotas.entity[kind] or DEFAULT for kind in ENTITY_TYPES}
    entity = {kind: quotas.entity[kind] for kind in ENTITY_TYPES if kind in quotas.entity}
    return [
        QuotaRow(entity_name(entity), **names, key=key, value=value, meaning=KEYS.get(key, ""))
        for key, value in quotas.values.items()
    ]


@dataclass(frozen=True)
class QuotaForm:
    """A quota to set or to remove. A name may be `<default>`."""

    key: Key
    user: str = ""
    client: str = ""
    ip: str = ""
    value: float | None = None
    """None removes it."""

    def entity(self) -> dict[str, str | None]:
        """The entity. `BadInput` if there is none, or one that Kafka does not have."""
        named = {"user": self.user, "client": self.client, "ip": self.ip}
        entity = {kind: None if name == DEFAULT else name for kind, name in named.items() if name}
        if not entity:
            raise BadInput("user: name a user, a client id or an address; <default> is the default of all")
        if "ip" in entity and len(entity) > 1:
            raise BadInput("ip: an address has quotas of its own, not together with a user or a client id")
        return entity


@action("/set-quota", summary="Set a quota, or remove it if there is no value.")
def set_quota(cluster: Cluster, form: QuotaForm) -> Done:
    """The broker refuses keys that are not quotas of the entity."""
    entity = form.entity()
    if form.value is not None and not 0 < form.value < float("inf"):
        raise BadInput("value: must be above 0")
    alter_quotas(cluster, entity, {form.key: form.value})
    done = f"removed {form.key}" if form.value is None else f"set {form.key} to {form.value:g}"
    return Done(f"{done} of {entity_name(entity)}", "/quotas")
