"""`barnabas doctor`: connects as a client does, and says in one sentence each what works and what does not."""

from __future__ import annotations

import sys

import click

from barnabas import __version__
from barnabas.cli.connect.configured_address import broker_address
from barnabas.cli.connect.security import security
from barnabas.cli.failure import FAILED, NOT_FOUND
from barnabas.cli.options.parameters import bootstrap_option, output_option, own_timeout_option
from barnabas.client.doctor import Doctor
from barnabas.terminal import screen
from barnabas.terminal.layout import wrap
from barnabas.terminal.tables import is_document, show

LABEL_WIDTH = 8


@click.command()
@bootstrap_option
@own_timeout_option(5.0, "How long each step may take.")
@output_option
@click.pass_context
def doctor(context: click.Context, bootstrap: str, timeout_s: float, output: str) -> int:
    """Find out why clients cannot use a broker, Apache Kafka's included.

    It connects as a client does, follows the advertised addresses, and prints a line for each check. Exit code 0 if all
    is well, 1 if something is wrong, 3 if no broker was reached: 'barnabas doctor -b kafka:9092'.
    """
    try:
        examination = Doctor(broker_address(context, bootstrap), timeout_s, __version__, security())
    except ValueError as error:
        raise click.BadParameter(str(error), param_hint="-b") from None
    done = []
    for check in examination.checks():
        done.append(check)
        if not is_document(output):
            _print("ok" if check.is_ok else "failed", check.text)
    if is_document(output):
        rows = [{"check": each.name, "result": "ok" if each.is_ok else "failed", "text": each.text} for each in done]
        show(rows, output)
    if not examination.was_reached:
        return NOT_FOUND
    return 0 if all(check.is_ok for check in done) else FAILED


def _print(label: str, text: str) -> None:
    """One check; on a terminal its text is wrapped."""
    lines = wrap(text, screen.width() - LABEL_WIDTH) if screen.is_terminal(sys.stdout) else [text]
    for number, line in enumerate(lines):
        click.echo(f"{label if not number else '':<{LABEL_WIDTH}}{line}")
