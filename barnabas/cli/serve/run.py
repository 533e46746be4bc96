"""`barnabas serve`: read the options, run the broker.

stdout carries the ready line and then the client configurations, nothing else; logs go to stderr. A mistake
on the command line or in the configuration is one sentence on stderr and exit code 2, never a traceback.
"""

from __future__ import annotations

import argparse
import gc
import os
from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, NoReturn

from barnabas.cli.serve import UsageError, host_and_port, sets
from barnabas.lazy_modules import OF_SERVE, import_lazily
from barnabas.terminal.notes import note
from barnabas.terminal.suggestion import suggestion

if TYPE_CHECKING:
    from barnabas.broker.config.options import Companion, ServeOptions
    from barnabas.cli.serve.console import ConsoleProcess
    from barnabas.kit.channel.host import Host
    from barnabas.kit.channel.request_watch import RequestWatch

EXIT_USAGE = 2
ABOUT = """\
Run a broker. It prints a line with "[KafkaServer id=1] started" and its address on stdout when it accepts connections,
then client configurations to copy. SIGTERM and SIGINT stop it (exit code 0)."""
EPILOGUE = """\
Any Kafka key can also be set in the environment, as in the apache/kafka image: num.partitions is KAFKA_NUM_PARTITIONS.
The command line takes precedence over the environment, the environment over the file, the file over the defaults.

Exit codes: 0 after a clean stop, 1 when the broker failed, 2 when the options or the configuration are wrong, 130 when
Ctrl-C ended it before it had started. With --check: 0 when it can start, 2 when something stands against it."""

_FORMATTER = partial(argparse.HelpFormatter, width=100)  # without a width it asks `shutil`, once for each option


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise UsageError(message)

    def known_options(self) -> list[str]:
        return list(self._option_string_actions)


class _StoreOnce(argparse.Action):
    """Stores a value; a second one and an empty one are errors."""

    may_be_empty = False

    def __call__(
        self,
        parser: argparse.ArgumentParser,  # noqa: ARG002 - argparse's signature
        namespace: argparse.Namespace,
        values: str | Sequence[object] | None,
        option_string: str | None = None,  # noqa: ARG002
    ) -> None:
        if getattr(namespace, self.dest) is not None:
            raise argparse.ArgumentError(self, "given twice")
        if not values and not self.may_be_empty:
            raise argparse.ArgumentError(self, f"needs a value: {self.metavar or self.option_strings[0]}")
        setattr(namespace, self.dest, values)


class _Once(_StoreOnce):
    """Stores a value that may be left out."""

    may_be_empty = True


def serve(arguments: Sequence[str]) -> int:
    """Run `barnabas serve` with these arguments until it is stopped; return the exit code."""
    if "-h" in arguments or "--help" in arguments:
        from barnabas.cli.app import run as run_command

        return run_command(["serve", "--help"])
    try:
        args = _parsed(arguments)
        if args.brokers is not None and args.control is not None:
            raise UsageError("--control is for one broker; it opens clusters itself")
        if args.brokers is not None and not args.secure:
            if args.check:
                raise UsageError("--check reads the --config of one broker; it cannot be used with --brokers")
            return _serve_cluster(args)
        if args.secure or args.user:
            from barnabas.cli.serve.secure import check_secure

            check_secure(args)
        options = _serve_options(args, os.environ)
        if args.check:
            return _check(options)
    except UsageError as error:
        note(f"barnabas serve: {error} ('barnabas serve -h' explains)")
        return EXIT_USAGE
    gc.disable()  # until the start is done: a tenth of it would be looking for garbage among what is imported
    import_lazily(OF_SERVE)
    from barnabas.broker.server import run

    return run(options)


def serve_options(arguments: Sequence[str], environment: Mapping[str, str]) -> ServeOptions:
    """The options in `arguments`. UsageError, one sentence, when they cannot be understood."""
    return _serve_options(_parsed(arguments), environment)


def _serve_options(args: argparse.Namespace, environment: Mapping[str, str]) -> ServeOptions:
    _check_console_options(args)
    for option, value in (("--restart", args.restart), ("--controllers", args.controllers)):
        if value:
            raise UsageError(f"{option} is for a cluster; --brokers N says how many brokers it has")
    from barnabas.broker.config.options import ServeOptions

    keys = _kafka_keys(args)
    secured = None
    if args.secure:
        from barnabas.cli.serve.secure import secure

        secured = secure(args, keys, environment)
    console = None if args.console is None else _console(args)
    options = ServeOptions(
        sets=keys,
        config_file=args.config,
        environment=environment,
        profile=args.profile or "dev",
        ready_file=args.ready_file,
        log_level=args.log_level,
        in_container=args.in_container,
        secured=secured,
        also_ready="" if console is None else console.also_ready,
    )
    host = None
    if args.control is not None:
        from barnabas.kit.channel.host import Host

        address = host_and_port(args.control, "--control")
        host = Host(address, options, args.control_file, ends_with_stdin=args.end_with_stdin)
        options.prepare, options.companion = host.prepare, host
    elif args.control_file or args.end_with_stdin:
        raise UsageError(f"{'--control-file' if args.control_file else '--end-with-stdin'} is for --control")
    if console is not None:
        from barnabas.kit.channel.request_watch import RequestWatch

        options.companion = _both(host or RequestWatch(), console)
    return options


def _console(args: argparse.Namespace) -> ConsoleProcess:
    """Listen for the console. UsageError if its address is wrong or taken."""
    from barnabas.cli.serve.console import DEFAULT, IN_CONTAINER, ConsoleProcess

    address = args.console or (IN_CONTAINER if args.in_container else DEFAULT)
    arguments = _console_arguments(args)
    return ConsoleProcess(address, is_secure=args.secure, is_in_container=args.in_container, arguments=arguments)


def _console_arguments(args: argparse.Namespace) -> list[str]:
    """The options of `barnabas console` that `serve --console` has too. UsageError for a file that cannot be read."""
    for path in args.schema:
        try:
            with open(path, "rb"):
                pass
        except OSError as error:
            raise UsageError(f"--schema {path}: {(error.strerror or str(error)).lower()}") from None
    if args.pipelines is not None and not os.path.isdir(args.pipelines):  # noqa: PTH112 - pathlib costs the start
        raise UsageError(f"--pipelines {args.pipelines}: there is no such directory")
    arguments = [word for path in args.schema for word in ("--schema", path)]
    for option, value in (("--schema-registry", args.schema_registry), ("--pipelines", args.pipelines)):
        arguments += [] if value is None else [option, value]
    return arguments


def _check_console_options(args: argparse.Namespace) -> None:
    """UsageError if an option of the console is given without it."""
    for option in ("schema", "schema_registry", "pipelines"):
        if args.console is None and getattr(args, option):
            raise UsageError(f"--{option.replace('_', '-')} is for --console")


def _both(host: Host | RequestWatch, console: ConsoleProcess) -> Companion:
    """The control channel and the console, which is told where the channel is."""

    async def start(server: Any, nursery: Any) -> None:
        await host(server, nursery)
        await console.beside(server, nursery, host.published)

    return start


def _check(options: ServeOptions) -> int:
    from barnabas.tools.takeover.check import run

    return run(options)


def _parsed(arguments: Sequence[str]) -> argparse.Namespace:
    options = parser()
    args, unknown = options.parse_known_args(arguments)
    if unknown:
        name = unknown[0].partition("=")[0]
        if not name.startswith("-"):
            raise UsageError(f"unexpected argument: {name!r}")
        raise UsageError(f"no such option: {name}{suggestion(name, options.known_options())}")
    return args


def _serve_cluster(args: argparse.Namespace) -> int:
    from barnabas.cli.serve.cluster import cluster_options

    _check_console_options(args)
    options = cluster_options(args, os.environ)
    if args.console is not None:
        from dataclasses import replace

        options = replace(options, companion=_console(args))
    gc.disable()
    from barnabas.supervise.supervisor import run

    return run(options)


def parser() -> _Parser:
    """The parser of the options; `barnabas.cli.serve.command` has them for the help page and for completion."""
    parser = _Parser(prog="barnabas serve", allow_abbrev=False, formatter_class=_FORMATTER)

    def option(name: str, metavar: str | None, text: str, choices: tuple[str, ...] | None = None) -> None:
        parser.add_argument(name, metavar=metavar, help=text, choices=choices, action=_StoreOnce)

    option("--listen", "HOST:PORT", "Address to listen on (listeners); port 0 takes a free one. [127.0.0.1:9092]")
    option("--data-dir", "DIR", "Where to keep the data (log.dirs). [a temporary directory, removed at a clean exit]")
    option("--config", "FILE", "A server.properties file.")
    parser.add_argument(
        "--set",
        metavar="KEY=VALUE",
        action="append",
        default=[],
        help="Set any Kafka broker key; may be repeated. In a cluster 2:KEY=VALUE sets it for node 2 only.",
    )
    parser.add_argument(
        "--secure",
        action="store_true",
        help="Serve with TLS, users and ACLs only. The first start with a --data-dir makes a CA, a certificate and a "
        "user 'admin', kept in DIR-secure beside it, and prints client configurations with the password; later starts "
        "use them again.",
    )
    parser.add_argument(
        "--user",
        metavar="NAME[:PASSWORD]",
        action="append",
        default=[],
        help="With --secure, a user and the password to set at this start (SCRAM-SHA-512); may be repeated. Others on "
        "this machine can see it in the list of processes. Without a password, the variable "
        "BARNABAS_USER_PASSWORD is used, or the password is asked for.",
    )
    option(
        "--profile",
        None,
        "dev: replication factors are lowered to the number of brokers, and the first rebalance has no delay; "
        "kafka: Kafka's defaults unchanged, which a broker with process.roles=broker always has. [dev]",
        ("dev", "kafka"),
    )
    option("--ready-file", "FILE", "Write HOST:PORT to this file when connections are accepted.")
    option(
        "--brokers",
        "N",
        "Run a cluster: this many brokers, each a process with a directory of its own in --data-dir, and a "
        "controller. --listen is the first broker's address; the others follow on the next ports.",
    )
    parser.add_argument("--restart", action="store_true", help="In a cluster, start a node again that died.")
    option(
        "--controllers",
        None,
        "In a cluster: ours is one controller of Barnabas; kafka is three of Apache Kafka, which need Java. [ours]",
        ("ours", "kafka"),
    )
    parser.add_argument(
        "--in-container",
        action="store_true",
        help="Unless listeners are set, listen on 9092 for the container's host, advertised as localhost:9092, and on "
        "19092 for other containers. The entry point of the image.",
    )
    parser.add_argument(
        "--check",
        action="store_true",
        help="Start nothing: say whether Barnabas can take over the --config and the directories of a Kafka broker, "
        "which may still run. Exit code 2 if something stands against it. Nothing is written.",
    )
    _add_companions(parser)
    option("--log-level", None, "[info]", ("debug", "info", "warn", "error"))
    return parser


def _add_companions(parser: _Parser) -> None:
    """The options of what serves beside the broker: the console, and the control channel of tests."""
    parser.add_argument(
        "--console",
        metavar="HOST:PORT",
        nargs="?",
        const="",
        action=_Once,
        help="Serve pages to look at the broker and to change it, from a process of its own; port 0 takes a free one. "
        "[127.0.0.1:8080]",
    )
    parser.add_argument(
        "--schema",
        metavar="FILE",
        action="append",
        default=[],
        help="With --console, a schema to decode messages with: .avsc, .proto or a descriptor set of protoc (.desc); "
        "may be repeated.",
    )
    parser.add_argument(
        "--schema-registry",
        metavar="URL",
        action=_StoreOnce,
        help="With --console, decode messages with the framing of a Schema Registry by its schemas.",
    )
    parser.add_argument(
        "--pipelines",
        metavar="DIR",
        action=_StoreOnce,
        help="With --console, show the runs of 'barnabas pipeline' whose checkpoints, reports and logs are in DIR.",
    )
    parser.add_argument(
        "--control",
        metavar="HOST:PORT",
        nargs="?",
        const="127.0.0.1:0",
        help="For tests: serve the control channel, which opens virtual clusters, reads logs and more, over HTTP with "
        "a token. Never on a broker that others can reach. [127.0.0.1:0]",
    )
    parser.add_argument(
        "--control-file",
        metavar="FILE",
        action=_StoreOnce,
        help="Write the control channel's address and token to this file, with mode 0600.",
    )
    parser.add_argument(
        "--end-with-stdin",
        action="store_true",
        help="With --control, stop when standard input ends: the process that holds its other end is gone.",
    )


def _kafka_keys(args: argparse.Namespace) -> dict[str, str]:
    """The Kafka keys of the command line: those of --set, and those that --listen and --data-dir stand for."""
    keys = sets(args.set)
    for option, key, value in (("--listen", "listeners", args.listen), ("--data-dir", "log.dirs", args.data_dir)):
        if value is None:
            continue
        if key in keys or (key == "log.dirs" and "log.dir" in keys):
            raise UsageError(f"{option} and --set {key} are the same setting; give one of them")
        keys[key] = _listener(value) if option == "--listen" else value
    return keys


def _listener(address: str) -> str:
    """`127.0.0.1:9092` as Kafka writes a listener; an empty host means every interface, as with Kafka."""
    host_and_port(address)
    return f"PLAINTEXT://{address}"
