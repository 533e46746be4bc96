"""`barnabas serve` as a command of click: its help page, completion, and `barnabas --profile x serve`.

Its arguments are parsed by `barnabas.cli.serve.run`; the options here mirror that parser.
"""

from __future__ import annotations

import argparse

import click

from barnabas.cli.serve.run import ABOUT, EPILOGUE, parser
from barnabas.cli.serve.run import serve as run_serve


class ServeCommand(click.Command):
    """Passes all arguments on."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse the options for completion and help only."""
        if ctx.resilient_parsing or args == ["--help"]:
            return super().parse_args(ctx, args)
        ctx.args = list(args)
        return ctx.args

    def invoke(self, ctx: click.Context) -> int:
        """Run the broker."""
        return run_serve(ctx.args)


def _mirrored(action: argparse.Action) -> click.Option:
    kind = None if action.choices is None else click.Choice([str(choice) for choice in action.choices])
    return click.Option(
        list(action.option_strings),
        type=kind,
        metavar=action.metavar if isinstance(action.metavar, str) else None,
        is_flag=action.nargs == 0,
        multiple=isinstance(action, argparse._AppendAction),
        help=action.help,
    )


serve = ServeCommand(
    "serve",
    help=ABOUT,
    epilog=EPILOGUE,
    short_help="Run a broker.",
    params=[_mirrored(action) for action in parser()._actions if action.dest != "help"],
)
