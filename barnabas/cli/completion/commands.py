"""`barnabas completion`: print the script of a shell, install it, remove it."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import click

from barnabas.cli.command_groups import Group
from barnabas.cli.completion.install import INSTALLED, Places
from barnabas.cli.completion.install import install as put
from barnabas.cli.completion.install import uninstall as remove
from barnabas.cli.completion.shells import SHELLS, script
from barnabas.terminal.notes import note


@click.group(cls=Group)
def completion() -> None:
    """Complete commands, options and live names of topics and groups in your shell.

    'barnabas completion install' sets it up; new shells have it then.
    """


def _printer(shell: str) -> Callable[[], None]:
    def show() -> None:
        click.echo(script(shell), nl=False)

    show.__doc__ = f"Print the script of {shell}."
    return show


for _shell in SHELLS:
    completion.command(_shell)(_printer(_shell))

shell_option = click.option(
    "--shell", type=click.Choice(INSTALLED), help="The shell. [default: from the variable SHELL]"
)


@completion.command()
@shell_option
def install(shell: str | None) -> None:
    """Install completion for your shell; prints the changes."""
    name = shell or _users_shell()
    places = Places(name)
    for sentence in put(places, script(name)) or ["it was installed already; nothing was changed"]:
        click.echo(sentence)
    note(
        f"new shells have completion, this one after '. {places.script}'; "
        f"'barnabas completion uninstall --shell {name}' undoes it"
    )


@completion.command()
@shell_option
def uninstall(shell: str | None) -> None:
    """Remove the files and lines that install wrote."""
    for sentence in remove(Places(shell or _users_shell())) or ["it was not installed; nothing was changed"]:
        click.echo(sentence)


def _users_shell() -> str:
    name = Path(os.environ.get("SHELL", "")).name
    if name not in INSTALLED:
        raise click.UsageError(f"--shell must be one of {', '.join(INSTALLED)}; SHELL is {name or 'not set'}")
    return name
