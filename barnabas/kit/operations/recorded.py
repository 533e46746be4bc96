"""Operations on the recorded requests of a cluster's clients: `recorded`, `timeline`, `lint`; lint at a test's end."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from functools import partial
from typing import TYPE_CHECKING, Final

from barnabas.coord.cluster.resources import TOPIC
from barnabas.kit.errors import ControlError
from barnabas.kit.operations.registry import operation
from barnabas.kit.operations.requests import api_named
from barnabas.kit.traffic.lint import EXPLANATIONS, Traces, findings
from barnabas.kit.traffic.timeline import lines
from barnabas.kit.values import Values

if TYPE_CHECKING:
    from barnabas.kit.clusters.virtual_cluster import VirtualCluster
    from barnabas.kit.traffic.recorder import Entry

FILTER: Final = ("api", "client_id", "topic", "group", "transactional_id")
_NONE: Final[frozenset[str]] = frozenset()
_LATE: Final = frozenset(
    {"clock_advance", "clock_jump", "clock_freeze", "expire_member", "fence_instance", "fault_add", "restore"}
    | {"fence_producer", "kill_broker", "reload_coordinator", "rebalance"}
)
CAUSES: Final = {
    "member-removed": _LATE,
    "rebalance-storm": _LATE,
    "transaction-left-open": _LATE,
    "retry-storm": _LATE - {"fault_add"},
}
"""Operations after which a rule may report an effect of the test, not a mistake of the client. A client that sends a
request again without a pause does so whatever made it fail."""


@operation("recorded", *FILTER)
async def recorded(cluster: VirtualCluster, values: Values) -> object:
    """The last requests of clients that match, oldest first, and how many there have been in all."""
    entries = [entry.to_json() for entry in _matching(cluster, values)]
    return {"requests": entries, "count": cluster.traffic.recorder.count}


@operation("clients")
async def clients(cluster: VirtualCluster, values: Values) -> object:  # noqa: ARG001 - every operation has values
    """How many requests each client id has made since the start, and how many responses had an error."""
    counted = cluster.traffic.recorder.clients.items()
    rows = [
        {"client_id": name, "requests": counts.requests, "errors": counts.errors, "apis": counts.apis}
        for name, counts in counted
    ]
    return {"clients": rows}


@operation("timeline", *FILTER, "last")
async def timeline(cluster: VirtualCluster, values: Values) -> object:
    """The requests of clients in readable lines; only the last ones if `last` is given."""
    return {"lines": lines(_matching(cluster, values), values.integer("last", None))}


@operation("lint", "ignore")
async def lint(cluster: VirtualCluster, values: Values) -> object:
    """The mistakes of clients in the recorded requests, but for ignored rules; each with its meaning."""
    return {"findings": findings_of(cluster, set(map(str, values.list_of("ignore"))))}


def findings_at_close(cluster: VirtualCluster, ignored: Collection[str]) -> list[dict[str, object]]:
    """The mistakes of clients that do not follow from an operation of the test."""
    shown = findings_of(cluster, ignored)
    return [finding for finding in shown if not CAUSES.get(str(finding["rule"]), _NONE) & cluster.performed]


def findings_of(cluster: VirtualCluster, ignored: Collection[str]) -> list[dict[str, object]]:
    """All findings but the ignored rules'. ControlError for a rule that does not exist."""
    unknown = sorted(set(ignored) - EXPLANATIONS.keys())
    if unknown:
        raise ControlError(f"There is no rule {', '.join(unknown)}; the rules are {', '.join(EXPLANATIONS)}")
    recorder = cluster.traffic.recorder
    if not recorder.entries:
        return []
    connections = recorder.open_connections()
    open_clients = {entry.client_id for entry in recorder.entries if entry.connection in connections}
    config = partial(cluster.broker.image.config, TOPIC)
    traces = Traces(
        tuple(recorder.entries), open_clients, lambda topic: "compact" in config(topic).get("cleanup.policy", "")
    )
    return [
        finding._asdict() | {"explanation": EXPLANATIONS[finding.rule]}
        for finding in findings(traces)
        if finding.rule not in ignored
    ]


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
