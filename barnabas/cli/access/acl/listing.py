"""`barnabas acl list`."""

from __future__ import annotations

from typing import Any

import click

from barnabas.cli.access.acl.options import acl_filters, filter_options, row
from barnabas.cli.options.parameters import cluster_options, output_option
from barnabas.client.admin.acls import list_acls
from barnabas.client.cluster import Cluster
from barnabas.terminal.tables import show_rows


@click.command("list")
@filter_options
@cluster_options
@output_option
def list_(cluster: Cluster, output: str, **options: Any) -> None:
    """List ACLs: all, or those of a resource, a user, an operation ...

    \b
    barnabas acl list --user alice
    barnabas acl list topic orders --pattern match
    """
    acls = sorted({acl for filter_ in acl_filters(options) for acl in list_acls(cluster, filter_)})
    show_rows([row(acl) for acl in acls], output, empty="no ACLs")
