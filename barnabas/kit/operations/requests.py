"""The operation that sends any request of Kafka's protocol to the broker, in JSON."""

from __future__ import annotations

from typing import TYPE_CHECKING

from barnabas.broker.apis.registry import BROKER_APIS
from barnabas.kit.errors import ControlError
from barnabas.kit.operations.registry import operation
from barnabas.wire.api_keys import ApiKey
from barnabas.wire.codec.json_form import from_json, to_json
from barnabas.wire.registry import message_for

if TYPE_CHECKING:
    from barnabas.kit.clusters.virtual_cluster import VirtualCluster
    from barnabas.kit.values import Values


def api_named(name: str) -> ApiKey:
    """The API with this name, as Kafka writes it: Produce, JoinGroup. ControlError if none is served."""
    letters = name.replace("_", "").upper()
    for key in BROKER_APIS:
        if key.name.replace("_", "") == letters:
            return key
    raise ControlError(f"There is no API {name!r}; they are called as in Kafka: Produce, Fetch, JoinGroup")


@operation("request", "api", "version", "body", "broker")
async def request(cluster: VirtualCluster, values: Values) -> object:
    """Make a request in Kafka's JSON, in this version or the latest; its response, in JSON too.

    Of several brokers the first one that runs is asked, unless `broker` is given.
    """
    request_class, response_class = message_for(api_named(values.text("api")))
    version = values.integer("version", request_class.max_version)
    if version not in request_class.versions:
        raise ControlError(f"{request_class.__name__} has no version {version}")
    try:
        message = from_json(request_class, values.mapping("body"), version)
    except ValueError as error:
        raise ControlError(str(error)) from error
    client = cluster.client_on(values.integer("broker")) if values.has("broker") else cluster.client
    return to_json(await client.ask(message, response_class, version), version)
