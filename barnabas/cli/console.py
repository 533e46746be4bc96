"""`barnabas console`: the pages of the console for any cluster, in this process."""

from __future__ import annotations

import logging

import click

from barnabas.cli.connect.security import security
from barnabas.cli.options.parameters import bootstrap_option
from barnabas.cli.serve import UsageError, host_and_port
from barnabas.client.cluster import parse_addresses

LISTEN = "127.0.0.1:8080"


@click.command()
@bootstrap_option
@click.option("--listen", metavar="HOST:PORT", default=LISTEN, show_default=True, help="Address of the pages.")
@click.option("--read-only", is_flag=True, help="Refuse every change.")
@click.option("--end-with-stdin", is_flag=True, help="Stop when standard input ends.")
def console(*, bootstrap: str, listen: str, read_only: bool, end_with_stdin: bool) -> int:
    """Serve pages to look at a cluster and to change it, and a JSON API under /api."""
    from barnabas.console.server import CannotListen, run
    from barnabas.console.settings import Settings

    try:
        host, port = host_and_port(listen)
        parse_addresses(bootstrap)
    except UsageError as error:
        raise click.UsageError(str(error)) from None
    except ValueError as error:
        raise click.BadParameter(str(error), param_hint="-b") from None
    logging.basicConfig(level=logging.INFO, format="[%(asctime)s] %(levelname)s %(message)s (%(name)s)")
    settings = Settings(bootstrap, host, port, security=security(), read_only=read_only)
    try:
        return run(settings, on_ready=_ready, ends_with_stdin=end_with_stdin)
    except CannotListen as error:
        raise click.UsageError(str(error)) from None


def _ready(url: str) -> None:
    click.echo(f"Console on {url}")
