"""kafka-cluster: the cluster's id, its brokers, and the APIs that they offer."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from barnabas.cli.kafka_tools.admin.broker_api_versions import print_brokers
from barnabas.cli.kafka_tools.subcommands import ToolParser, add_server, connect
from barnabas.client.admin.cluster import describe_cluster, unregister_broker
from barnabas.client.cluster import Cluster
from barnabas.wire.errors import ErrorCode, KafkaError

NAME = "kafka-cluster"


def make_parser() -> argparse.ArgumentParser:
    """The options."""
    parser = ToolParser(prog=NAME, description="The Kafka cluster tool.")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)
    add_server(commands.add_parser("cluster-id", help="Print the id of the cluster."))
    endpoints = commands.add_parser("list-endpoints", help="List the brokers and their addresses.")
    add_server(endpoints)
    endpoints.add_argument("--include-fenced-brokers", action="store_true", help="Also brokers that are fenced.")
    add_server(commands.add_parser("api-versions", help="List the APIs that each broker offers."))
    unregister = commands.add_parser("unregister", help="Remove the registration of a broker that is gone.")
    add_server(unregister)
    unregister.add_argument("--id", type=int, required=True, metavar="ID", help="The broker.")
    return parser


def main(arguments: Sequence[str]) -> int:
    """Run the tool."""
    args = make_parser().parse_args(list(arguments))
    with connect(args) as cluster:
        if args.command == "cluster-id":
            print(f"Cluster ID: {describe_cluster(cluster, with_fenced=False).cluster_id}")
        elif args.command == "list-endpoints":
            _list_endpoints(cluster, with_fenced=args.include_fenced_brokers)
        elif args.command == "api-versions":
            print_brokers(cluster)
        else:
            return _unregister(cluster, args.id)
    return 0


def _unregister(cluster: Cluster, broker: int) -> int:
    try:
        unregister_broker(cluster, broker)
    except KafkaError as error:
        if error.code is ErrorCode.UNSUPPORTED_VERSION:
            print("The target cluster does not support the broker unregistration API.")
        else:
            print(error.message, file=sys.stderr)
        return 1
    print(f"Broker {broker} is no longer registered.")
    return 0


def _list_endpoints(cluster: Cluster, *, with_fenced: bool) -> None:
    brokers = describe_cluster(cluster, with_fenced=with_fenced).brokers
    host_width = max(len(broker.host) for broker in brokers)
    rack_width = max(10, *(len(broker.rack or "null") for broker in brokers))
    rows: list[tuple[object, ...]] = [("ID", "HOST", "PORT", "RACK", "STATE", "ENDPOINT_TYPE")]
    for other in brokers:
        state = "fenced" if other.is_fenced else "unfenced"
        rows.append((other.broker_id, other.host, other.port, other.rack or "null", state, "broker"))
    for number, host, port, rack, label, kind in rows:
        print(f"{number!s:<10} {host!s:<{host_width}} {port!s:<10} {rack!s:<{rack_width}} {label!s:<10} {kind}")
