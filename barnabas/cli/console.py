"""`barnabas console`: the pages of the console for any cluster, in this process."""

from __future__ import annotations

import json
import logging
import os
import socket

import click

from barnabas.cli.connect.security import security, security_properties
from barnabas.cli.connect.settings import SettingsError
from barnabas.cli.options.parameters import bootstrap_option
from barnabas.cli.serve import UsageError, host_and_port
from barnabas.client.cluster import parse_addresses
from barnabas.console.listening import CannotListen, listen, url

LISTEN = "127.0.0.1:8080"
CONTROL_VARIABLE = "BARNABAS_CONSOLE_CONTROL"
"""What a control file has, from `serve --control --console`."""


@click.command()
@bootstrap_option
@click.option("--listen", "address", metavar="HOST:PORT", default=LISTEN, show_default=True, help="Where it serves.")
@click.option(
    "--tls-cert",
    metavar="FILE",
    help="Serve HTTPS with this certificate, a PEM file; with its private key if --tls-key is not given.",
)
@click.option("--tls-key", metavar="FILE", help="The private key of --tls-cert, a PEM file.")
@click.option(
    "--login",
    is_flag=True,
    help="People log in with their own SASL user, though the configuration has a user. Without a user in the "
    "configuration they do, if the broker has SASL.",
)
@click.option(
    "--allow-host",
    "hosts",
    metavar="NAME",
    multiple=True,
    help="Another name under which browsers reach the console; may be repeated.",
)
@click.option("--in-container", is_flag=True, hidden=True, help="The container decides who can reach the address.")
@click.option("--read-only", is_flag=True, help="Refuse every change.")
@click.option(
    "--data-dir",
    metavar="DIR",
    help="The directory of 'serve --brokers N': nodes are started, stopped and killed from the pages.",
)
@click.option(
    "--pipelines",
    metavar="DIR",
    help="The folder of the checkpoints, files, reports and logs of 'barnabas pipeline', whose runs the pages show.",
)
@click.option(
    "--schema",
    "schemas",
    metavar="FILE",
    multiple=True,
    help="A schema to decode messages with: .avsc, .proto or a descriptor set of protoc (.desc); may be repeated.",
)
@click.option(
    "--schema-registry", metavar="URL", help="Decode messages with the framing of a Schema Registry by its schemas."
)
@click.option("--control-file", metavar="FILE", help="The file that 'serve --control --control-file FILE' has written.")
@click.option("--end-with-stdin", is_flag=True, help="Stop when standard input ends.")
@click.option("--socket", "descriptor", type=int, hidden=True, help="A socket that listens, from 'serve --console'.")
def console(
    *,
    bootstrap: str,
    address: str,
    tls_cert: str | None,
    tls_key: str | None,
    login: bool,
    hosts: tuple[str, ...],
    in_container: bool,
    read_only: bool,
    data_dir: str | None,
    pipelines: str | None,
    schemas: tuple[str, ...],
    schema_registry: str | None,
    control_file: str | None,
    end_with_stdin: bool,
    descriptor: int | None,
) -> int:
    """Serve pages to look at a cluster and to change it, and a JSON API under /api."""
    from barnabas.client.security.keys import security_key
    from barnabas.console.server import checked_app, run
    from barnabas.console.settings import Settings

    host, port = _address(address)
    try:
        properties = {security_key(word) or word: value for word, value in security_properties().items()}
        parse_addresses(bootstrap)
        settings = Settings(
            bootstrap,
            host,
            port,
            security=None if is_for_log_in(properties) else security(),
            properties=properties,
            read_only=read_only,
            control=_control(control_file),
            data_dir=data_dir,
            pipelines=pipelines,
            certificate=tls_cert,
            key=tls_key,
            login=login,
            allowed_hosts=hosts,
            is_in_container=in_container,
            schema_files=schemas,
            schema_registry=schema_registry,
        )
    except ValueError as error:
        raise click.BadParameter(str(error), param_hint="-b") from None
    try:
        app = checked_app(settings)
        listener = listen(host, port) if descriptor is None else socket.socket(fileno=descriptor)
    except OSError as error:
        raise click.BadParameter(
            f"{error.filename}: {(error.strerror or str(error)).lower()}", param_hint="--schema"
        ) from None
    except (CannotListen, ValueError) as error:
        raise click.UsageError(str(error)) from None
    logging.basicConfig(level=logging.INFO, format="[%(asctime)s] %(levelname)s %(message)s (%(name)s)")
    with listener:
        if descriptor is None:
            click.echo(f"Console: {url(host, listener.getsockname()[1], has_tls=tls_cert is not None)}")
        return run(app, settings, listener, ends_with_stdin=end_with_stdin)


def is_for_log_in(properties: dict[str, str]) -> bool:
    """Whether the keys say SASL but no user: then each user of the pages logs in."""
    from barnabas.console.guard.login import has_user

    return properties.get("security.protocol", "").upper().startswith("SASL") and not has_user(properties)


def _address(text: str) -> tuple[str, int]:
    try:
        return host_and_port(text)
    except UsageError as error:
        raise click.UsageError(str(error)) from None


def _control(file: str | None) -> tuple[str, str] | None:
    """Address and token of the control channel."""
    try:
        if file is not None:
            with open(file, encoding="utf-8") as content:
                text = content.read()
        else:
            text = os.environ.pop(CONTROL_VARIABLE, "")
        values = json.loads(text) if text else None
        return None if values is None else (values["control"], values["token"])
    except OSError as error:
        raise SettingsError(f"--control-file {file}: {(error.strerror or str(error)).lower()}") from None
    except (ValueError, KeyError, TypeError):
        raise SettingsError(f"--control-file {file} is not a file of 'serve --control-file'") from None
