"""`barnabas health`: checks whether a broker answers; for HEALTHCHECK and scripts."""

from __future__ import annotations

import os

import click
from click.core import ParameterSource

from barnabas.cli.configured_address import configured_address
from barnabas.cli.failure import NOT_FOUND
from barnabas.cli.parameters import bootstrap_option, connect


@click.command()
@bootstrap_option
@click.option(
    "--timeout",
    "timeout_s",
    type=click.FloatRange(min=0, min_open=True),
    default=2.0,
    metavar="SECONDS",
    show_default=True,
    help="Timeout for the broker's answer.",
)
@click.option(
    "--config",
    "file",
    metavar="FILE",
    help="A server.properties file: without -b, the broker listens where it says, or where KAFKA_LISTENERS does.",
)
@click.option("-q", "--quiet", is_flag=True, help="Print nothing; only set the exit code.")
@click.pass_context
def health(context: click.Context, bootstrap: str, timeout_s: float, file: str | None, quiet: bool) -> int:
    """Exit 0 when a broker answers Metadata, 3 when it does not."""
    from barnabas.client.errors import ClientError
    from barnabas.wire.errors import KafkaError, ProtocolError

    if context.get_parameter_source("bootstrap") is ParameterSource.DEFAULT:
        bootstrap = _configured(file) or bootstrap
    with connect(bootstrap, timeout_s) as cluster:
        try:
            answer = cluster.retry(lambda deadline: cluster.metadata([], deadline))
        except (ClientError, KafkaError, ProtocolError) as error:
            if not quiet:
                click.echo(f"not ready: {error}", err=True)
            return NOT_FOUND
    if not quiet:
        nodes = len(answer.brokers)
        click.echo(f"ready: cluster {answer.cluster_id}, {nodes} broker{'s'[: nodes != 1]}")
    return 0


def _configured(file: str | None) -> str | None:
    from barnabas.wire.configdef import ConfigError

    try:
        return configured_address(os.environ, file)
    except ConfigError as error:
        raise click.UsageError(f"the configuration names no address: {error}") from None
