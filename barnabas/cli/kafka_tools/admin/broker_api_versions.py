"""kafka-broker-api-versions: the APIs that each broker offers; kafka-cluster api-versions since Kafka 4.4."""

from __future__ import annotations

from collections.abc import Sequence

from barnabas.cli.kafka_tools.arguments import BOOTSTRAP, COMMAND_CONFIG, Parser, Usage
from barnabas.cli.kafka_tools.common import connect
from barnabas.client.admin.cluster import describe_cluster
from barnabas.client.cluster import Cluster
from barnabas.wire.api_keys import ApiKey
from barnabas.wire.frame import message_for
from barnabas.wire.messages.api_versions import ApiVersion

PARSER = Parser(
    "kafka-broker-api-versions",
    "This tool helps to retrieve broker version information.",
    [BOOTSTRAP, COMMAND_CONFIG],
)


def main(arguments: Sequence[str]) -> int:
    """Run the tool."""
    if not arguments:
        raise Usage(PARSER.purpose)
    options = PARSER.parse(arguments)
    options.require("bootstrap-server")
    with connect(options) as cluster:
        print_brokers(cluster)
    return 0


def print_brokers(cluster: Cluster) -> None:
    """Every broker with every API that clients may use."""
    for broker in describe_cluster(cluster, with_fenced=False).brokers:
        rack = broker.rack or "null"
        fenced = str(broker.is_fenced).lower()
        print(f"{broker.host}:{broker.port} (id: {broker.broker_id} rack: {rack} isFenced: {fenced}) -> (")
        print(",\n".join(f"\t{line}" for line in _lines(_offered(cluster, broker.broker_id))))
        print(")")


def _offered(cluster: Cluster, node_id: int) -> dict[int, ApiVersion]:
    return cluster.retry(lambda deadline: cluster.node(node_id, deadline).versions)


def _lines(offered: dict[int, ApiVersion]) -> list[str]:
    lines = []
    for key in ApiKey:
        request, _ = message_for(key)
        if "broker" not in request.api_listeners or not request.versions:
            continue
        name = f"{request.__name__.removesuffix('Request')}({int(key)})"
        api = offered.get(int(key))
        if api is None:
            lines.append(f"{name}: UNSUPPORTED")
            continue
        low, high = api.min_version, api.max_version
        usable = min(high, request.max_version)
        versions = str(low) if low == high else f"{low} to {high}"
        lines.append(f"{name}: {versions} [usable: {usable}]")
    known = {int(key) for key in ApiKey}
    lines += [
        f"UNKNOWN({key}): {offered[key].min_version} to {offered[key].max_version}"
        for key in offered
        if key not in known
    ]
    return lines
