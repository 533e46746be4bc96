"""Every command but `serve`, on click. A command's module is imported only when that command runs.

Exit codes: 0 ok, 1 failed, 2 usage, 3 not found or not ready, 4 timeout, 5 not authorized, 130 interrupted.
Every failure is one sentence on stderr; stdout carries data and nothing else.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Sequence

import click

from barnabas import __version__
from barnabas.cli.command_groups import LazyGroup, Table
from barnabas.cli.options.parameters import settings_options
from barnabas.terminal.notes import note
from barnabas.terminal.suggestion import suggestion

COMMANDS: Table = {
    "serve": ("barnabas.cli.serve.command:serve", "Run a broker."),
    "console": ("barnabas.cli.console:console", "Serve pages to look at a cluster and to change it."),
    "topic": ("barnabas.cli.topic:topic", "List, create, change, trim, analyze, delete topics."),
    "produce": ("barnabas.cli.records.produce:produce", "Send records from a file or stdin."),
    "consume": ("barnabas.cli.records.consume:consume", "Read records."),
    "cat": ("barnabas.cli.cat.command:cat", "Do what kcat does, with its options."),
    "perf": ("barnabas.cli.perf:perf", "Measure producing, consuming and latency."),
    "group": ("barnabas.cli.group:group", "List, describe, seek and delete consumer groups."),
    "top": ("barnabas.cli.top.command:top", "Watch brokers, topics, groups and transactions on a full screen."),
    "profile": ("barnabas.cli.profiles:profile", "Addresses and preferences under a name."),
    "config": ("barnabas.cli.admin.config:config", "Read and change configuration."),
    "user": ("barnabas.cli.access.user:user", "Users that log in with SCRAM, and their passwords."),
    "acl": ("barnabas.cli.access.acl:acl", "List, add, remove and test ACLs."),
    "quota": ("barnabas.cli.access.quota:quota", "Quotas of users, client ids and addresses."),
    "token": ("barnabas.cli.access.token:token", "Create, list, renew and expire delegation tokens."),
    "cert": ("barnabas.cli.access.cert:cert", "Certificates of a broker with --secure, and of its clients."),
    "cluster": ("barnabas.cli.cluster:cluster", "Brokers, controller, features; partitions that are not served."),
    "log-dirs": ("barnabas.cli.admin.log_dirs:log_dirs", "Sizes by log directory, topic or partition."),
    "txn": ("barnabas.cli.admin.txn:txn", "List, describe and abort transactions."),
    "producers": ("barnabas.cli.admin.producers:producers", "Idempotent and transactional producers of partitions."),
    "features": ("barnabas.cli.admin.features:features", "List, upgrade and downgrade feature levels."),
    "api-versions": ("barnabas.cli.admin.api_versions:api_versions", "The APIs and versions that a broker supports."),
    "health": ("barnabas.cli.admin.health:health", "Exit 0 when a broker is ready, 3 when it is not."),
    "doctor": ("barnabas.cli.admin.doctor:doctor", "Find out why clients cannot use a broker."),
    "clock": ("barnabas.cli.testkit.clock:clock", "Freeze and advance the clock of a broker with --control."),
    "fault": ("barnabas.cli.testkit.fault:fault", "Make clients' requests fail, at a broker with --control."),
    "record": (
        "barnabas.cli.testkit.record:record",
        "Record the requests of clients and the responses of a broker, for tests.",
    ),
    "replay": ("barnabas.cli.testkit.record:replay", "Answer clients from a recording, without a broker."),
    "dump-log": ("barnabas.cli.files.dump_log:dump_log", "Print the contents of segment files."),
    "pipeline": ("barnabas.cli.pipeline:pipeline", "Run Spark jobs: etl, analytics, logs, events, archive, copy."),
    "completion": ("barnabas.cli.completion.commands:completion", "Complete commands and names in your shell."),
    "storage": ("barnabas.cli.files.storage:storage", "Check and repair data directories."),
    "wire": ("barnabas.cli.files.wire:wire", "Decode, encode and check protocol messages."),
}
CONTEXT = {"help_option_names": ["-h", "--help"], "max_content_width": 100}


def _use_bootstrap(ctx: click.Context, param: click.Parameter, value: str | None) -> None:  # noqa: ARG001
    if value is not None:
        os.environ["BARNABAS_BOOTSTRAP_SERVERS"] = value  # read by the commands' -b


@click.group(
    cls=LazyGroup,
    lazy=COMMANDS,
    context_settings=CONTEXT,
    epilog="'barnabas COMMAND -h' or 'barnabas help COMMAND' explains a command. Kafka's tools are there under their "
    "own names, as 'barnabas kafka-topics --help'. Exit codes: 0 ok, 1 failed, 2 usage, 3 not found or not ready, "
    "4 timeout, 5 not authorized, 130 interrupted.",
)
@click.version_option(__version__, "--version", message="barnabas %(version)s")
@click.option(
    "-b",
    "--bootstrap",
    metavar="HOST:PORT",
    is_eager=True,
    expose_value=False,
    callback=_use_bootstrap,
    help="Broker address; every command has this option too.",
)
@settings_options
def app() -> None:
    """A broker that speaks Kafka's protocol, and the commands to work with one."""


def run(arguments: Sequence[str]) -> int:
    """Run one command; errors are printed as one sentence on stderr. Returns the exit code."""
    if "_BARNABAS_COMPLETE" in os.environ:
        from barnabas.cli.completion import shells  # noqa: F401 - registers them

        app.main(list(arguments), prog_name="barnabas", complete_var="_BARNABAS_COMPLETE")
    try:
        with app.make_context("barnabas", list(arguments) or ["--help"]) as context:
            result = app.invoke(context)
        sys.stdout.flush()
        return result if isinstance(result, int) else 0
    except click.exceptions.Exit as stop:
        return stop.exit_code
    except click.exceptions.NoArgsIsHelpError as error:
        click.echo(error.format_message())  # a group without a command shows its help, as barnabas alone does
        return 0
    except click.ClickException as error:
        return _usage(error, arguments)
    except (click.Abort, KeyboardInterrupt):
        return 130
    except BrokenPipeError:
        # The reader of stdout was closed (`| head`): a new descriptor avoids an error message at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except Exception as error:
        from barnabas.cli.failure import explain

        known = explain(error)
        if known is None:
            raise
        sentence, code = known
        note(f"barnabas: {sentence}")
        return code


def _usage(error: click.ClickException, arguments: Sequence[str]) -> int:
    context = getattr(error, "ctx", None)
    command = context.command_path if context is not None else _command_path(arguments)
    text = _sentence(error, context).rstrip(".")
    if not text[:2].isupper():
        text = text[:1].lower() + text[1:]
    note(f"{command}: {text} ('{command} -h' explains)")
    return error.exit_code


def _command_path(arguments: Sequence[str]) -> str:
    """The command that the words name, as `barnabas topic list`: click has no context where an option lacks its value.

    The words before it may be options of `barnabas` itself.
    """
    path: list[str] = ["barnabas"]
    command: click.Group = app
    for word in arguments:
        inner = command.get_command(click.Context(command), word)
        if inner is None:
            continue
        path.append(word)
        if not isinstance(inner, click.Group):
            break
        command = inner
    return " ".join(path)


def _sentence(error: click.ClickException, context: click.Context | None) -> str:
    """Click's message, with suggestions in the form of all others."""
    if isinstance(error, click.NoSuchOption):
        known = (
            [] if context is None else [name for param in context.command.get_params(context) for name in param.opts]
        )
        return f"no such option: {error.option_name}{suggestion(error.option_name, known)}"
    if isinstance(error, click.NoSuchCommand):
        group = None if context is None else context.command
        known = group.list_commands(context) if context is not None and isinstance(group, click.Group) else []
        return f"no such command: {error.command_name}{suggestion(error.command_name, known)}"
    text = error.format_message()
    kind = error.param.type if isinstance(error, click.BadParameter) and error.param is not None else None
    if isinstance(kind, click.Choice):
        wrong = re.search(r": '([^']*)' is not one of", text)
        return text.rstrip(".") + suggestion(wrong[1], kind.choices) if wrong else text
    return text
