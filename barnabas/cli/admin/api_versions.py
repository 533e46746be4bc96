"""`barnabas api-versions`: the API versions of a broker, compared with this client's."""

from __future__ import annotations

import click

from barnabas.cli.options.parameters import cluster_options, output_option
from barnabas.client.cluster import Cluster
from barnabas.client.connection import NodeConnection
from barnabas.terminal.tables import show_rows
from barnabas.wire.api_keys import ApiKey


@click.command("api-versions")
@cluster_options
@output_option
def api_versions(cluster: Cluster, output: str) -> None:
    """Show the APIs and versions that a broker supports."""

    def ask(deadline: float) -> NodeConnection:
        return cluster.any_node(deadline)

    offered = dict(cluster.retry(ask).versions)
    names = {int(key): key.name for key in ApiKey}
    rows = [
        {
            "key": key,
            "api": names.get(key, "UNKNOWN").replace("_", " ").title().replace(" ", ""),
            "min_version": versions.min_version,
            "max_version": versions.max_version,
        }
        for key, versions in sorted(offered.items())
    ]
    show_rows(rows, output)
