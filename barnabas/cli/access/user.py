"""`barnabas user`: users that log in with SCRAM, and their passwords (KIP-554)."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from pathlib import Path

import click

from barnabas.cli.command_groups import Group
from barnabas.cli.options.parameters import Function, cluster_options, listing_options, output_option, yes_option
from barnabas.cli.options.patterns import ask_or_refuse, matching
from barnabas.client.admin.users import UserCredential, delete_credentials, list_credentials, set_credential
from barnabas.client.cluster import Cluster
from barnabas.client.errors import NotFound
from barnabas.client.security.scram import credential
from barnabas.terminal.question import ask_secret
from barnabas.terminal.screen import is_terminal
from barnabas.terminal.tables import show_rows

MECHANISMS = ("SCRAM-SHA-256", "SCRAM-SHA-512")


@click.group(cls=Group)
def user() -> None:
    """List users with SCRAM credentials, set their passwords, delete them."""


def _mechanism_option(text: str) -> Callable[[Function], Function]:
    return click.option("-m", "--mechanism", "mechanisms", multiple=True, type=click.Choice(MECHANISMS), help=text)


@user.command("list")
@click.argument("patterns", nargs=-1, metavar="[USER]...")
@listing_options
def list_(patterns: tuple[str, ...], regex: bool, cluster: Cluster, output: str) -> None:
    """List users with their mechanisms; names may be patterns."""
    credentials = list_credentials(cluster)
    names = list(dict.fromkeys(each.user for each in credentials))
    rows = [
        {"user": name, "mechanisms": [each.mechanism for each in credentials if each.user == name]}
        for name in matching(patterns, names, regex=regex)
    ]
    show_rows(rows, output, empty="no users with SCRAM credentials")


@user.command()
@click.argument("names", nargs=-1, required=True, metavar="USER...")
@cluster_options
@output_option
def describe(names: tuple[str, ...], cluster: Cluster, output: str) -> None:
    """Show the credentials of users: mechanism and iterations. Passwords cannot be shown."""
    show_rows(_rows(list_credentials(cluster, names)), output)


def _rows(credentials: Iterable[UserCredential]) -> list[dict[str, object]]:
    return [each._asdict() for each in credentials]


@user.command("set")
@click.argument("name", metavar="USER")
@_mechanism_option("A mechanism of the credential; may be repeated.  [default: SCRAM-SHA-512]")
@click.option(
    "-i",
    "--iterations",
    type=click.IntRange(4096, 16384),
    default=4096,
    show_default=True,
    help="How often the password is hashed.",
)
@click.option("--password", metavar="TEXT", help="The password; others can see it in the list of processes.")
@click.option(
    "--password-file",
    type=click.Path(exists=True, dir_okay=False, allow_dash=True, path_type=Path),
    metavar="FILE",
    help="The file whose first line is the password; - is stdin.",
)
@cluster_options
def set_(
    name: str,
    mechanisms: tuple[str, ...],
    iterations: int,
    password: str | None,
    password_file: Path | None,
    cluster: Cluster,
) -> None:
    """Add a user, or change the password of one.

    \b
    barnabas user set alice                                       # asks for the password
    barnabas user set alice --password-file secret.txt -m SCRAM-SHA-256
    """
    if password is not None and password_file is not None:
        raise click.UsageError("--password and --password-file exclude each other")
    text = _password(name, password, password_file)
    chosen = list(dict.fromkeys(mechanisms)) or [MECHANISMS[1]]
    before = {existing.mechanism for existing in list_credentials(cluster) if existing.user == name}
    for mechanism in chosen:
        set_credential(cluster, name, credential(mechanism, text, iterations))
        done = "changed the password of" if mechanism in before else "added"
        click.echo(f"{done} user {name} ({mechanism})")


def _password(name: str, password: str | None, file: Path | None) -> str:
    """The password: given, of a file, or typed twice. A usage error if there is none, or nobody to ask."""
    if file is not None:
        text = sys.stdin.readline() if str(file) == "-" else _first_line(file)
        password = text.rstrip("\r\n")
    elif password is None:
        if not (is_terminal(sys.stdin) and is_terminal(sys.stderr)):
            raise click.UsageError("there is no terminal to ask for the password: give --password-file FILE")
        password = ask_secret(f"Password of {name}")
    if not password:
        raise click.UsageError("the password is empty")
    return password


def _first_line(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8").partition("\n")[0]
    except UnicodeDecodeError:
        raise click.BadParameter(f"{file} is not UTF-8", param_hint="--password-file") from None


@user.command()
@click.argument("names", nargs=-1, required=True, metavar="USER...")
@_mechanism_option("Only the credential of this mechanism; may be repeated.")
@yes_option
@cluster_options
def delete(names: tuple[str, ...], mechanisms: tuple[str, ...], yes: bool, cluster: Cluster) -> None:
    """Delete the credentials of users, so that they cannot log in with SCRAM. Their ACLs and quotas stay.

    It asks first.
    """
    credentials = list_credentials(cluster, list(dict.fromkeys(names)))
    selected = [each for each in credentials if not mechanisms or each.mechanism in mechanisms]
    chosen = {name: [each.mechanism for each in selected if each.user == name] for name in dict.fromkeys(names)}
    for name, has in chosen.items():
        if not has:
            raise NotFound(f"user {name!r} has no credential of {', '.join(mechanisms)}")
    what = f"the credentials of {', '.join(chosen)}"
    ask_or_refuse(f"Delete {what}?", f"this deletes {what}", yes=yes)
    for name, has in chosen.items():
        delete_credentials(cluster, name, has)
        click.echo(f"deleted user {name} ({', '.join(has)})")
