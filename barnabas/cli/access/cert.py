"""`barnabas cert`: the certificates of a broker that was started with `--secure`, and of any other PEM file."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import click

from barnabas.cli.command_groups import Group
from barnabas.cli.options.parameters import Function, output_option
from barnabas.terminal.tables import show_rows
from barnabas.tools.secure.authority import certificates_in, hosts_of
from barnabas.tools.secure.errors import SecureError
from barnabas.tools.secure.folder import SecureFolder, read_file

if TYPE_CHECKING:
    from cryptography import x509


@click.group(cls=Group)
def cert() -> None:
    """Show certificates; make certificates for a broker with --secure and for its clients."""


def _data_dir_option(*, required: bool) -> Callable[[Function], Function]:
    return click.option(
        "--data-dir",
        metavar="DIR",
        required=required,
        type=click.Path(file_okay=False),
        help="The data directory of a broker with --secure; DIR-secure beside it has the certificates.",
    )


@contextmanager
def _sentences() -> Iterator[None]:
    try:
        yield
    except SecureError as error:
        raise click.UsageError(str(error)) from None


@cert.command()
@click.argument("files", nargs=-1, metavar="[FILE]...", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@_data_dir_option(required=False)
@output_option
def show(files: tuple[Path, ...], data_dir: str | None, output: str) -> None:
    """Show the certificates in PEM files: subject, names, and how long they last.

    \b
    barnabas cert show ca.pem
    barnabas cert show --data-dir data     # all of a broker with --secure
    """
    if bool(files) == (data_dir is not None):
        raise click.UsageError("give either files or --data-dir DIR")
    with _sentences():
        paths = list(files) if data_dir is None else SecureFolder(data_dir).certificates()
        rows = [
            _row(path, certificate) for path in paths for certificate in certificates_in(read_file(path), str(path))
        ]
    show_rows(rows, output)


def _row(path: Path, certificate: x509.Certificate) -> dict[str, object]:
    ends = certificate.not_valid_after_utc
    return {
        "file": path.name,
        "subject": certificate.subject.rfc4514_string(),
        "names": hosts_of(certificate),
        "from": certificate.not_valid_before_utc.strftime("%Y-%m-%dT%H:%M:%SZ"),
        "until": ends.strftime("%Y-%m-%dT%H:%M:%SZ"),
        "days_left": (ends - dt.datetime.now(dt.UTC)).days,
        "issuer": certificate.issuer.rfc4514_string(),
    }


@cert.command()
@_data_dir_option(required=True)
def renew(data_dir: str) -> None:
    """Make a new certificate of the broker, with the same names and by the same CA.

    A running broker notices it within seconds; clients need not be changed.
    """
    folder = SecureFolder(data_dir)
    with _sentences():
        folder.renew()
    click.echo(f"renewed {folder.server}")


@cert.command()
@click.argument("name", metavar="NAME")
@_data_dir_option(required=True)
def client(name: str, data_dir: str) -> None:
    """Make a key and a certificate for a client, in one PEM file.

    A listener with ssl.client.auth=required accepts it.
    """
    with _sentences():
        path = SecureFolder(data_dir).client(name)
    click.echo(f"made {path}; its principal is User:CN={name} on a listener with SSL")
