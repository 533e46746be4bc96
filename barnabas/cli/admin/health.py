"""`barnabas health`: checks whether a broker answers; for HEALTHCHECK and scripts."""

from __future__ import annotations

import time
from functools import partial

import click

from barnabas.cli.connect.configured_address import broker_address
from barnabas.cli.failure import NOT_FOUND
from barnabas.cli.options.parameters import bootstrap_option, connect, own_timeout_option
from barnabas.client.errors import ClientError
from barnabas.terminal.notes import note
from barnabas.terminal.plural import plural
from barnabas.wire.errors import KafkaError, ProtocolError

PAUSE_S = 0.1
"""Between two attempts of `--wait`."""


@click.command()
@bootstrap_option
@own_timeout_option(2.0, "Timeout for the broker's answer.")
@click.option(
    "--wait",
    "wait_s",
    type=click.FloatRange(min=0),
    default=0.0,
    metavar="SECONDS",
    help="Try again until a broker answers, for at most so many seconds.",
)
@click.option(
    "--config",
    "file",
    metavar="FILE",
    help="A server.properties file: without -b, the address is taken from its listeners, or from KAFKA_LISTENERS.",
)
@click.option("-q", "--quiet", is_flag=True, help="Print nothing; only set the exit code.")
@click.pass_context
def health(
    context: click.Context, bootstrap: str, timeout_s: float, wait_s: float, file: str | None, quiet: bool
) -> int:
    """Exit 0 when a broker answers Metadata, 3 when it does not.

    `barnabas health --wait 30` waits for a broker that is starting.
    """
    bootstrap = broker_address(context, bootstrap, file)
    until, has_noted = time.monotonic() + wait_s, quiet
    while True:
        try:
            with connect(bootstrap, timeout_s) as cluster:
                response = cluster.retry(partial(cluster.metadata, []))
            break
        except (ClientError, KafkaError, ProtocolError) as error:
            if time.monotonic() >= until:
                if not quiet:
                    note(f"not ready: {error}")
                return NOT_FOUND
            if not has_noted:
                note(f"waiting up to {wait_s:g} s: {error}")
                has_noted = True
        time.sleep(min(PAUSE_S, max(0.0, until - time.monotonic())))
    if not quiet:
        nodes = len(response.brokers)
        click.echo(f"ready: cluster {response.cluster_id}, {nodes} {plural('broker', nodes)}")
    return 0
