"""The control channel of a broker with `serve --control`, as the commands for tests find and call it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click

from barnabas.cli.options.parameters import Function
from barnabas.client.errors import ClientError, Unreachable
from barnabas.testing.channel import Channel
from barnabas.testing.errors import BrokerError, RefusedError

VARIABLE = "BARNABAS_CONTROL"


def control_options(command: Function) -> Function:
    """`--control-file FILE`, `--control URL` and `--cluster NUMBER`: which cluster of which broker."""
    command = click.option(
        "--cluster",
        "number",
        type=click.IntRange(0),
        default=0,
        show_default=True,
        metavar="NUMBER",
        help="The virtual cluster; 0 is the broker itself.",
    )(command)
    command = click.option(
        "--control",
        "url",
        envvar=VARIABLE,
        metavar="URL",
        help=f"The channel, http://TOKEN@HOST:PORT.  [env var: {VARIABLE}]",
    )(command)
    return click.option(
        "--control-file", "file", metavar="FILE", help="The file that 'barnabas serve --control-file' has written."
    )(command)


def perform(
    file: str | None, url: str | None, number: int, name: str, values: dict[str, Any] | None = None, wait_s: float = 0.0
) -> Any:
    """Do an operation of a cluster; its answer. ClientError with the broker's sentence if it refuses."""
    channel = _channel(file, url)
    try:
        return channel.call("POST", f"/v1/clusters/{number}/{name}", values, wait_s)
    except RefusedError as error:
        raise ClientError(str(error)) from error
    except BrokerError as error:
        raise Unreachable(str(error)) from error
    finally:
        channel.close()


def _channel(file: str | None, url: str | None) -> Channel:
    if file is not None:
        try:
            content = json.loads(Path(file).read_text(encoding="utf-8"))
            return Channel(content["control"], content["token"])
        except (ValueError, KeyError, TypeError):
            raise click.UsageError(f"{file} is no control file of 'barnabas serve --control-file'") from None
    if url is None:
        raise click.UsageError(f"which broker? Give --control-file FILE, or set {VARIABLE}")
    token, at, address = url.removeprefix("http://").rpartition("@")
    if not (token and at and address):
        raise click.UsageError("the control channel is given as http://TOKEN@HOST:PORT")
    return Channel(f"http://{address}", token)
