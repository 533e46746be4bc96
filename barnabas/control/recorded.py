"""Operations on what was recorded of a cluster's clients: `recorded`, `timeline`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from barnabas.control.operations import operation
from barnabas.control.requests import api_named
from barnabas.control.traffic.timeline import lines
from barnabas.control.values import Values

if TYPE_CHECKING:
    from barnabas.control.traffic.recorder import Entry
    from barnabas.control.virtual_cluster import VirtualCluster

FILTER: Final = ("api", "client_id", "topic", "group", "transactional_id")


@operation("recorded", *FILTER)
async def recorded(cluster: VirtualCluster, values: Values) -> object:
    """The last requests of clients that match, oldest first, and how many there have been in all."""
    entries = [entry.to_json() for entry in _matching(cluster, values)]
    return {"requests": entries, "count": cluster.traffic.recorder.count}


@operation("timeline", *FILTER, "last")
async def timeline(cluster: VirtualCluster, values: Values) -> object:
    """What clients did, in lines; the last ones if `last` is given."""
    return {"lines": lines(_matching(cluster, values), values.integer("last", None))}


def _matching(cluster: VirtualCluster, values: Values) -> Iterator[Entry]:
    api = values.text("api", None)
    key = None if api is None else api_named(api)
    client_id, topic, group = values.text("client_id", None), values.text("topic", None), values.text("group", None)
    transactional_id = values.text("transactional_id", None)
    for entry in cluster.traffic.recorder.entries:
        if (
            (key is None or entry.api == key)
            and (client_id is None or entry.client_id == client_id)
            and (topic is None or topic in entry.topics)
            and (group is None or group in entry.groups)
            and (transactional_id is None or transactional_id in entry.transactional_ids)
        ):
            yield entry
